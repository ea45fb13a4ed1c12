"""What kernels compute again and again of the results of reductions in other kernels."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ...ir import Fusion, Value
from ...symbolic.sizes import hint
from ..access.read_footprint import is_reducer
from ..access.rough_instructions import is_fused, rough_instructions
from ..passes.invariants.candidates import expanded, narrowest
from ..segments.segmented_fusion import SegmentedFusion


def computed_of_reductions(segmented: SegmentedFusion) -> tuple[str, ...]:
    """The names of values that could be computed where the reductions are.

    The backward of a batch norm multiplies sums over all pixels of a channel by three numbers of
    the channel. The kernel over the pixels does that for each of them, the kernel that ends the
    sums once a channel: it has no more to store, since the products take the place of the sums.
    """
    fusion, found = segmented.fusion, dict[str, None]()
    reduced = {out for node in fusion.nodes if is_reducer(node) for out in node.outs}
    for piece in segmented.segments:
        results = reduced.intersection(piece.inputs)
        if results:
            made = {out for node in piece.nodes for out in node.outs}
            names = _names(fusion, made, piece.inputs, results)
            found.update(dict.fromkeys(names))
    return tuple(found)


def _names(
    fusion: Fusion,
    made: Collection[Value],
    inputs: Collection[Value],
    results: Collection[Value],
) -> Iterator[str]:
    """Of the values that a kernel has ``made`` of its inputs, and for more elements than they have.

    Parameters
    ----------
    results : collection of Value
        The inputs that are results of reductions.
    """
    for value, wider in expanded(fusion):
        if value in made and wider in made:
            value = narrowest(fusion, value)
            work = _work(fusion, value, inputs)
            sizes = [hint(v.tensor.numel) for v in work.loaded if v in results]
            if work.instructions and sizes and hint(value.tensor.numel) <= max(sizes):
                yield value.name


class _Work(NamedTuple):
    """What it takes to compute an element: instructions, and what is loaded."""

    instructions: int
    loaded: set[Value]


def _work(fusion: Fusion, value: Value, inputs: Collection[Value]) -> _Work:
    count, loaded, seen, stack = 0, set[Value](), {value}, [value]
    while stack:
        value = stack.pop()
        node = fusion.producers.get(value)
        if value in inputs or node is None or not is_fused(node):
            loaded.add(value)
            continue
        count += rough_instructions(node)
        fresh = [v for v in node.operands() if v.is_tensor and v not in seen]
        seen.update(fresh)
        stack += fresh
    return _Work(count, loaded)
