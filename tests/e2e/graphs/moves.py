"""What a random definition may do next: each move picks terms that it fits, or raises Unfit."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.graphs.graph import Graph
from tests.e2e.graphs.moves_complex import COMPLEX as COMPLEX
from tests.e2e.graphs.moves_idioms import (
    backward,
    both_ways,
    crossed,
    multiplied_matrices,
    normalized,
    normed,
    one_hot,
    picked_loss,
    product,
    product_with_bias,
    rotated,
    running_stats,
    softmax,
)
from tests.e2e.graphs.moves_picks import (
    embedded,
    gathered,
    index_selected,
    scattered,
    selected,
    sorted_out,
    taken,
)
from tests.e2e.graphs.moves_pointwise import (
    angle,
    arithmetic,
    between,
    bits,
    carried,
    cast,
    chosen,
    chosen_numbers,
    clamped,
    common_divisor,
    compared,
    divided,
    logic,
    next_number,
    powered,
    quotient,
    rounded,
    shifted,
    smooth,
    tested,
    thresholded,
    with_number,
)
from tests.e2e.graphs.moves_reductions import extremum, moments, multiplied, scanned, summed
from tests.e2e.graphs.moves_views import (
    broadcast,
    broadcast_in_dim,
    counted,
    drawn,
    expanded,
    filled,
    joined,
    merged,
    ordered,
    padded,
    permuted,
    reshaped,
    sliced,
    squeezed,
    triangular,
)

Move = Callable[[Graph], None]

POINTWISE: tuple[Move, ...] = (
    carried, smooth, smooth, rounded, tested, cast, cast, arithmetic, arithmetic, arithmetic,
    quotient, compared, bits, chosen, with_number, with_number, powered, clamped, divided,
    shifted, common_divisor, between, thresholded, next_number, angle, logic, chosen_numbers,
)  # fmt: skip
VIEWS: tuple[Move, ...] = (
    permuted, crossed, reshaped, merged, broadcast, expanded, broadcast_in_dim, squeezed, sliced,
    padded, joined, ordered, rotated,
)  # fmt: skip
INDEXED: tuple[Move, ...] = (
    index_selected, gathered, taken, selected, embedded, sorted_out, one_hot, scattered,
)  # fmt: skip
REDUCTIONS: tuple[Move, ...] = (
    summed, summed, summed, multiplied, extremum, extremum, moments, moments, scanned, scanned,
    normalized, normalized, normalized, both_ways, backward, multiplied_matrices, softmax,
    product_with_bias, normed, picked_loss, running_stats,
)  # fmt: skip
PRODUCTS: tuple[Move, ...] = (product, product, product_with_bias)
FACTORIES: tuple[Move, ...] = (counted, filled, triangular, drawn, Graph.new_input)
MOVES: tuple[Move, ...] = (*POINTWISE, *VIEWS, *INDEXED, *REDUCTIONS, *REDUCTIONS, *FACTORIES)
