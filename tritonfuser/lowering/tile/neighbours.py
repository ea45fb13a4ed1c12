"""The number of adjacent elements of a tile that a thread has."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import replace

from ...device import VECTOR_BYTES
from ...heuristics.cost.draws import RANDOM_WORDS
from ...heuristics.integers import ceil_div
from ...heuristics.params import (
    HeuristicParams,
    InnerOuterPersistentParams,
    InnerPersistentParams,
    OuterPersistentParams,
    PointwiseParams,
    ReductionParams,
)
from ...heuristics.problem import Problem
from ...heuristics.streams import Stream
from ...ir import Value
from ...symbolic.choices import choose
from ...symbolic.queries import is_known_equal
from ...symbolic.sizes import hint, is_size
from ..access.traffic import offset_of
from ..problem_sizes import env_of
from ..segments.segment import Segment
from .nest import Nest
from .tile import Tile

EXCHANGE_INSTRUCTIONS = 1
"""Instructions to pass an element to another thread through shared memory."""

RANDOM_INSTRUCTIONS = 10
"""Instructions of a random number: five wide multiplies and as much logic."""

LOAD_INSTRUCTIONS = 2
"""Instructions of an additional load."""


def with_neighbours(nest: Nest, segment: Segment, outputs: Mapping[Value, tuple[int, ...]]) -> Nest:
    """The nest, with no more adjacent elements in a thread than one vector of its widest store has.

    Triton gives a thread of each store as many adjacent elements as 16 bytes hold, and of loads the
    most of any store or load. Results of several widths would be recomputed in the layout of each
    store, or converted through shared memory: a dropout with a mask of one byte and results of two
    bytes drew each random number twice.

    Parameters
    ----------
    outputs : mapping
        Strides of the buffers that are stored to, in elements.
    """
    problem = segment.problem
    if problem is None or problem.on_cpu or nest.alignment is not None:
        return nest
    if any(tile.neighbours for tile in nest.tiles):
        return nest  # params say how many
    tile = _row_tile(nest, segment, problem)
    if tile is None:
        return nest
    loads = [s for s in problem.streams if not s.is_store and s.along_x]
    loads = [s for s in loads if s.along_r or not problem.reduction_depth]
    stored = _stored_bytes(nest, segment, outputs, tile)
    most = _neighbours(problem, loads, stored)
    if problem.draws_random and _is_lone_row(nest, tile):
        all_of = most or _widest(loads, stored)
        found = _best_filling(problem, tile, loads, all_of, segment.params)
        most = most if found == all_of else found
    peeled = {t.name for t in nest.tiles if t != nest.rest and t.is_behind}
    return _limited(nest, {tile.name, *peeled}, most)


def _is_lone_row(nest: Nest, tile: Tile) -> bool:
    """Whether a program has one row in one tile, which reaches past the end of the row."""
    others = [t for t in nest.tiles if t.block is not None and t != tile]
    known = not is_size(tile.axis.extent) and nest.loop is None
    return known and not others and tile.masked


def _best_filling(
    problem: Problem, tile: Tile, loads: list[Stream], most: int, params: HeuristicParams
) -> int:
    """The number of adjacent elements, at most ``most``, with the fewest instructions behind the
    end of a row.

    All threads together take chunks of ``threads * count`` elements. The compiler drops chunks that
    begin behind the end of the row, with their random numbers.
    """
    threads = getattr(params, "num_warps", 1) * problem.device.warp_size
    each = problem.ops_per_element + RANDOM_INSTRUCTIONS
    best, least = most, math.inf
    count = most
    while count >= RANDOM_WORDS:
        times = ceil_div(tile.axis.extent, threads * count)
        computed = each * times * threads * count / tile.axis.extent
        cost = computed + _extra_load_instructions(loads, count)
        if cost < least:
            best, least = count, cost
        count //= 2
    return best


def _widest(loads: list[Stream], stored: list[int]) -> int:
    """Elements of a vector of the narrowest tensor: the number without a limit."""
    found = (*stored, *(s.item_bytes for s in loads))
    return VECTOR_BYTES // min(found, default=VECTOR_BYTES)


def _row_tile(nest: Nest, segment: Segment, problem: Problem) -> Tile | None:
    """The tile along which most tensors are contiguous. None for other kinds of kernels."""
    if isinstance(segment.params, PointwiseParams | OuterPersistentParams):
        wanted = "x"
    elif isinstance(segment.params, InnerPersistentParams | InnerOuterPersistentParams):
        wanted = "r"
    elif isinstance(segment.params, ReductionParams) and segment.params.num_stages == 1:
        # A pipeline loads into shared memory, from which each use is read in its own layout.
        wanted = "r" if choose(env_of(problem), _lies_along_rows, problem) else "x"
    else:
        return None
    return next((tile for tile in nest.tiles if tile.name == wanted and tile.block), None)


def _lies_along_rows(problem: Problem) -> bool:
    """Whether the rows of most tensors are contiguous."""
    return problem.inner


def _stored_bytes(
    nest: Nest, segment: Segment, outputs: Mapping[Value, tuple[int, ...]], tile: Tile
) -> list[int]:
    """Bytes of an element of each result that is contiguous along a tile."""
    assert segment.problem is not None
    positions = hint(segment.problem.parallel) * hint(segment.problem.reduced)
    found: list[int] = []
    for store in segment.stores:
        # Few lanes store elements of small results.
        if store.scatter is not None or 2 * hint(store.value.tensor.numel) < positions:
            continue
        offset = offset_of(nest.maps.blocks.index(store.index), outputs[store.value])
        mine = [(d.div, step) for d, step in offset.terms if d.base == tile.axis]
        if any(is_known_equal(div, 1) and is_known_equal(step, 1) for div, step in mine):
            found.append(store.value.dtype.info.bytes)
    return found


def _neighbours(problem: Problem, loads: list[Stream], stored: list[int]) -> int:
    """Elements of a vector of the widest store; 0 if no other tensor has more, or if the additional
    loads cost more instructions than this saves."""
    if not stored:
        return 0
    count = VECTOR_BYTES // max(stored)
    limits = count < _widest(loads, stored)
    if not limits or count < (RANDOM_WORDS if problem.draws_random else 2):
        return 0
    saved = EXCHANGE_INSTRUCTIONS + (RANDOM_INSTRUCTIONS if problem.draws_random else 0)
    return count if _extra_load_instructions(loads, count) < saved else 0


def _extra_load_instructions(loads: list[Stream], count: int) -> float:
    """Instructions for each element of loads that are narrower than 16 bytes."""
    more = (max(1 / count - load.item_bytes / VECTOR_BYTES, 0) for load in loads)
    return LOAD_INSTRUCTIONS * sum(more)


def _limited(nest: Nest, names: Container[str], most: int) -> Nest:
    """The nest with at most ``most`` adjacent elements in a thread along the named tiles."""

    def limited(tile: Tile) -> Tile:
        fits = tile.block is not None and not tile.scattered and tile.width > most > 1
        return replace(tile, neighbours=most) if fits and tile.name in names else tile

    grid = tuple((limited(tile), count) for tile, count in nest.grid)
    return replace(nest, tiles=tuple(map(limited, nest.tiles)), grid=grid)
