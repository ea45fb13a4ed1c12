"""Other splits of reductions over several dims, each with the most that it may save.

A row that is several dims long is one index in a kernel. What lies along some of these dims alone,
as a weight of the last one, is read there at a remainder, for each element anew. Where one step
reduces the inner dims and another the outer ones, an index is a dim: what does not lie along it is
read once for many elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...device import LEAST_KERNEL_S, DeviceProperties
from ...heuristics.streams import Stream
from ...ir import Fusion, Value
from ...ops.builder import as_call
from ...ops.forms import Moments, Reduction
from ...symbolic.sizes import hint
from ..access.read_footprint import is_reducer
from ..fuse.scheduler_queries.splits import FIRST_RESULT_BYTES
from ..fuse.splits.common_rows import last_steps
from ..fuse.splits.split_policy import ByDims
from ..passes.splits.split_factors import reduced_extents
from ..segments.segmented_fusion import SegmentedFusion
from .kernel_times import Excess, TimedKernels


def splits_by_dims(
    fusion: Fusion, now: TimedKernels, device: DeviceProperties
) -> dict[ByDims, float]:
    """The splits by dims of the reductions of slow kernels, each with the seconds it may save.

    Parameters
    ----------
    fusion : Fusion
        Before reductions are split.
    now : TimedKernels
        The kernels without these splits.
    """
    made = _made_by(now.segmented)
    found: dict[ByDims, float] = {}
    for each in filter(_reads_rows_apart, now.excesses):
        for value in _reductions(each, fusion, made):
            for split in _by_dims(fusion, value):
                rows = hint(value.tensor.numel) * prod(map(hint, split.factors))
                moved_s = 2 * rows * FIRST_RESULT_BYTES / device.bandwidth_bytes_per_s
                saved = each.seconds - LEAST_KERNEL_S - moved_s
                if rows >= device.sm_count and saved > 0:
                    found[split] = max(found.get(split, 0.0), saved)
    return found


def _reads_rows_apart(each: Excess) -> bool:
    """Whether tensors lie along some of the axes of a kernel's row alone, or along all of them in
    another order than others do, or are read at a part of the positions: of padded parts."""
    problem = each.piece.problem
    row = {place for place in problem.places[1] if hint(problem.axes[place]) > 1} if problem else ()
    if problem is None or len(row) < 2:
        return False
    if any(stream.accessed_share < 1 for stream in problem.streams):
        return True
    found = {tuple(axis for axis in _axes(stream) if axis in row) for stream in problem.streams}
    return any(0 < len(axes) < len(row) for axes in found) or len(found - {()}) > 1


def _axes(stream: Stream) -> list[int]:
    """The axes that a tensor lies along, the one of the longest steps first."""
    terms = sorted(stream.stride_terms, key=lambda term: -abs(hint(term.step)))
    return [term.axis for term in terms]


def _made_by(segmented: SegmentedFusion) -> dict[Value, str]:
    """For each first step of a split reduction, the name of that reduction."""
    fusion, found = segmented.fusion, dict[Value, str]()
    split = {each.value for each in segmented.rewrites.splits}
    for value in fusion.producers:
        if value.name in split:
            for second in last_steps(fusion, (value,)):
                firsts = last_steps(fusion, fusion.producers[second].operands())
                found.update(dict.fromkeys(firsts, value.name))
    return found


def _reductions(each: Excess, fusion: Fusion, made: dict[Value, str]) -> Iterator[Value]:
    """The first results of the reductions of a kernel, as they were before they were split: one of
    those over the same extents, which are split alike."""
    named = {value.name: value for value in fusion.producers}
    met = set[str]()
    for node in each.piece.nodes:
        name = made.get(node.out, node.out.name)
        value = named.get(name) if is_reducer(node) else None
        if value is None:
            continue
        producer = fusion.producers[value]
        if isinstance(as_call(producer).op.form, Reduction | Moments):
            extents = repr(reduced_extents(producer))
            if extents not in met:
                yield value
            met.add(extents)


def _by_dims(fusion: Fusion, value: Value) -> Iterator[ByDims]:
    """The splits of which the first step reduces the last dims, or the first ones."""
    extents = reduced_extents(fusion.producers[value])
    long = [place for place, size in enumerate(extents) if hint(size) > 1]
    for place in long[1:]:
        inner = tuple(size if at < place else 1 for at, size in enumerate(extents))
        outer = tuple(1 if at < place else size for at, size in enumerate(extents))
        yield from (ByDims(value.name, factors) for factors in (inner, outer))
