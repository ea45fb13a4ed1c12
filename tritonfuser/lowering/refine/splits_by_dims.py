"""Other splits of reductions over several dims, each with the most that it may save.

Several reduced dims make one row of a kernel, with one index. A tensor along some of these dims
alone, such as a weight along the last one, is read at a remainder of that index, once for each
element. If one step reduces the inner dims and another the outer ones, each row is one dim, and
such a tensor is read once for many elements.

Kept dims may lie between reduced ones. In the sum of ``[N, C, 4]`` over ``N`` and the last dim, a
row consists of contiguous runs of 4 elements, and the rest of each sector belongs to other rows. If
the first step reduces parts of ``N`` alone, its columns ``(C, 4)`` are contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod

from ...device import CACHE_LINE_BYTES, LEAST_KERNEL_S, DeviceProperties
from ...heuristics.columns.sums import PROGRAMS_PER_SM
from ...heuristics.streams import Stream
from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.forms import Moments, Reduction
from ...symbolic.sizes import hint
from ..access.node_kinds import is_reducer
from ..fuse.scheduler_queries.splits import FIRST_RESULT_BYTES
from ..fuse.splits.common_rows import last_steps
from ..fuse.splits.split_policy import ByDims
from ..passes.splits.factors import factors_of_any, is_near
from ..passes.splits.parts import Padded, reduced_extents
from ..passes.splits.split_factors import place_of_longest, split_factors
from ..segments.segmented_fusion import SegmentedFusion
from .kernel_times import Excess, TimedKernels

LEAST_PART = 16
"""Least positions of the first dims in a part."""


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
    for each in now.excesses:
        for value in _reductions(each, fusion, made):
            node = fusion.producers[value]
            splits = [*_in_parts(node, device)]
            if _has_unlike_rows(each):
                splits += _by_dims(node, device)
            for split in splits:
                moved_s = 2 * _rows(node, split) * FIRST_RESULT_BYTES / device.bandwidth_bytes_per_s
                saved = each.seconds - LEAST_KERNEL_S - moved_s
                if saved > 0:
                    found[split] = max(found.get(split, 0.0), saved)
    return found


def _rows(node: Node, split: ByDims) -> int:
    """The number of results of the first step."""
    made = split_factors(node, split.parts)
    assert made is not None
    return hint(node.out.tensor.numel) * hint(made.parts)


def _has_unlike_rows(each: Excess) -> bool:
    """Whether the tensors of a kernel differ along its rows: some run along a subset of the row's
    axes alone, or along all of them in another order, or are read at a part of the positions, as
    those of padded parts."""
    problem = each.segment.problem
    row = {place for place in problem.places[1] if hint(problem.axes[place]) > 1} if problem else ()
    if problem is None or len(row) < 2:
        return False
    if any(stream.accessed_share < 1 for stream in problem.streams):
        return True
    found = {tuple(axis for axis in _axes(stream) if axis in row) for stream in problem.streams}
    return any(0 < len(axes) < len(row) for axes in found) or len(found - {()}) > 1


def _axes(stream: Stream) -> list[int]:
    """The axes that a tensor runs along, in order of decreasing stride."""
    terms = sorted(stream.stride_terms, key=lambda term: -abs(hint(term.step)))
    return [term.axis for term in terms]


def _made_by(segmented: SegmentedFusion) -> dict[Value, str]:
    """First step of a split reduction -> name of the reduction."""
    fusion, found = segmented.fusion, dict[Value, str]()
    split = {each.value for each in segmented.rewrites.splits}
    for value in fusion.producers:
        if value.name in split:
            for second in last_steps(fusion, (value,)):
                firsts = last_steps(fusion, fusion.producers[second].operands())
                found.update(dict.fromkeys(firsts, value.name))
    return found


def _reductions(each: Excess, fusion: Fusion, made: dict[Value, str]) -> Iterator[Value]:
    """The first results of the reductions of a kernel, named as before splits. Of reductions over
    the same extents only one, since they are split alike."""
    named = {value.name: value for value in fusion.producers}
    met = set[str]()
    for node in each.segment.nodes:
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


def _by_dims(node: Node, device: DeviceProperties) -> Iterator[ByDims]:
    """The splits whose first step reduces the last dims, or the first ones.

    Its results give each multiprocessor at least one row.
    """
    extents = reduced_extents(node)
    for place in _long(extents)[1:]:
        inner = tuple(size if at < place else 1 for at, size in enumerate(extents))
        outer = tuple(1 if at < place else size for at, size in enumerate(extents))
        for factors in (inner, outer):
            split = ByDims(node.out.name, factors)
            if _rows(node, split) >= device.sm_count:
                yield split


def _in_parts(node: Node, device: DeviceProperties) -> Iterator[ByDims]:
    """The splits whose first step reduces parts of the first dims, and whose second step reduces
    the dims behind a kept dim.

    The parts are so many that programs of one cache line of columns each fill the device.
    """
    call, extents = as_call(node), reduced_extents(node)
    source, dims = call.value("arg"), call.dims()
    line = CACHE_LINE_BYTES // source.dtype.info.bytes
    for before, place in pairwise(_long(extents)):
        if hint(prod(source.tensor.sizes[dims[before] + 1 : dims[place]])) > 1:
            rows = hint(prod(extents[:place]))
            columns = hint(source.tensor.numel) // rows
            wanted = PROGRAMS_PER_SM * device.sm_count * line // columns
            count = min(max(wanted, 2), rows // LEAST_PART)
            if count > 1:
                yield ByDims(node.out.name, _parts_of(extents, place, count))


def _parts_of(extents: tuple[int, ...], place: int, count: int) -> tuple[int, ...] | Padded:
    """``count`` parts of the dims before a place, for each position of the dims from there on."""
    factors = factors_of_any(extents[:place], count)
    if is_near(prod(factors), count):
        return (*factors, *extents[place:])
    longest = place_of_longest(tuple(map(hint, extents[:place])))
    return Padded(longest, count, second=tuple(range(place, len(extents))))


def _long(extents: tuple[int, ...]) -> list[int]:
    """The places of reduced dims with more than one position."""
    return [place for place, size in enumerate(extents) if hint(size) > 1]
