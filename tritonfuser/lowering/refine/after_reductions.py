"""Values that depend on results of reductions alone, which could be computed once for each result.

The backward of a batch norm multiplies sums over all pixels of a channel by three numbers of the
channel. The kernel over the pixels would do so for each pixel, the kernel that completes the sums
once for each channel. It has no more to store, since the products replace the sums.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...ir import Fusion, Value
from ...symbolic.sizes import hint
from ..access.node_kinds import is_reducer
from ..access.rough_instructions import is_fused, rough_instructions
from ..passes.invariants.candidates import expanded, narrowest
from ..segments.segmented_fusion import SegmentedFusion
from .recomputation import recomputation_of


def computed_of_reductions(segmented: SegmentedFusion) -> tuple[str, ...]:
    """The names of the values that could be computed by the kernels of these reductions."""
    fusion, found = segmented.fusion, dict[str, None]()
    reduced = {out for node in fusion.nodes if is_reducer(node) for out in node.outs}
    for segment in segmented.segments:
        results = reduced.intersection(segment.inputs)
        if results:
            made = {out for node in segment.nodes for out in node.outs}
            names = _names(fusion, made, segment.inputs, results)
            found.update(dict.fromkeys(names))
    return tuple(found)


def _names(
    fusion: Fusion,
    made: Collection[Value],
    inputs: Collection[Value],
    results: Collection[Value],
) -> Iterator[str]:
    """The names of such values that one kernel computes.

    Parameters
    ----------
    made : collection of Value
        The values that the kernel computes.
    inputs : collection of Value
        The values that it loads.
    results : collection of Value
        The inputs that are results of reductions.
    """
    for value, wider in expanded(fusion):
        if value in made and wider in made:
            value = narrowest(fusion, value)
            found = recomputation_of(
                fusion, value, lambda v, node: v in inputs or not is_fused(node)
            )
            sizes = [hint(v.tensor.numel) for v in found.loaded if v in results]
            is_small = bool(sizes) and hint(value.tensor.numel) <= max(sizes)
            if is_small and any(map(rough_instructions, found.nodes)):
                yield value.name
