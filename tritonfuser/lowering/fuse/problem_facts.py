"""The facts of a fusion group that schedulers decide by (``Problem``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from ...device import DeviceProperties
from ...heuristics.problem import Problem
from ...heuristics.streams import Stream
from ...ir import Fusion, Value
from ...ops.builder import op_of
from ...ops.table import Moments
from ...symbolic.index_expr import Axis, extent
from ...symbolic.queries import min_by_hint
from ...symbolic.sizes import hint, is_size
from ..access.bytes_moved import held_bytes, known_bytes
from ..access.pairs import pairs_in
from ..access.stride_terms import stride_terms_of
from ..access.traffic import Traffic, order_axes
from ..groups.anchor_maker import AnchorMaker
from ..groups.axis_numbers import numbered_axes
from ..groups.fusion_group import FusionGroup
from ..groups.online_pairs import online_pairs
from ..legality.row_sharing import why_not_published
from ..segments import Member
from ..tile.aligned_rows import vector_of_rows
from .core_facts import CoreFacts
from .flat_kernels import with_second_side


def problem_of(
    group: FusionGroup,
    maker: AnchorMaker,
    facts: CoreFacts,
    device: DeviceProperties,
    partial: frozenset[Value] | None = None,
) -> Problem:
    """The facts of a group. Sizes that vary stay open, see ``scheduler_queries``.

    Parameters
    ----------
    partial : frozenset of Value or None
        The results of the first steps of reductions that were split. None where none was split yet.
    """
    shares = [m.share for m in group.outer if m.share is not None]
    rows_split = any(m.node.out in (partial or ()) for m in group.outer)
    traffic = maker.traffic(group.reads, group.stores)
    parallel = order_axes(group.parallel, traffic)
    reduced = order_axes(group.reduced, traffic)
    known = known_bytes(maker.fusion, traffic, device)
    late = _late(group, maker, traffic)
    groups, numbers = _free_groups(group, parallel), numbered_axes(group, maker)
    rows = tuple(axis for free in groups for axis in free) if reduced and numbers else parallel
    axes = (*rows, *reduced)
    found = Problem(
        parallel=extent(parallel),
        reduced=extent(reduced),
        reduction_depth=group.depth,
        reduction_passes=group.row_passes,
        full_outputs=group.full_outputs,
        dependent_outputs=group.dependent_outputs,
        scans=group.scans,
        outer_members=len(group.outer),
        outer_batch=extent(group.batch_axes) * (shares[0].part.extent if shares else 1),
        rows_split=rows_split,
        may_split=partial is None,
        co_reduced=extent(group.co_reduced),
        order=tuple(_numbers(free, numbers) for free in groups) if numbers else (),
        axes=tuple(axis.extent for axis in axes),
        row_axes=len(reduced),
        streams=_streams(maker.fusion, traffic, known, late, parallel, reduced, axes),
        ops_per_element=len(group.nodes),
        accumulators=sum(_accumulators(m) for m in group.members if m.across != group.co_reduced),
        published_sums=_published(group),
        draws_random=group.draws_random,
        online_softmax=_online(group, maker),
        vector_elements=_vector(group, traffic, facts, reduced, rows_split),
        one_run=all(_is_run(m.across, t) for m in group.members for t in traffic),
        row_varies=is_size(extent(reduced)),
        rows_vary=is_size(extent(parallel)),
        core=facts.core(group, traffic),
        device=device,
    )
    return found if group.reduced else with_second_side(found)


def _vector(
    group: FusionGroup,
    traffic: list[Traffic],
    facts: CoreFacts,
    reduced: tuple[Axis, ...],
    rows_split: bool,
) -> int:
    """Elements of a vector where tiles can begin at vectors though rows do not, else 1."""
    if group.scans or group.co_reduced or any(t.value in facts.misaligned for t in traffic):
        return 1
    shares = [m.share for m in group.outer if m.share is not None]
    if shares:
        apart = (*group.batch_axes, shares[0].part)
        return vector_of_rows(traffic, group.parallel, reduced, apart, shares[0].places)
    # Before they are split, rows that begin alike can be put into the same share.
    apart = group.batch_axes if rows_split else ()
    return vector_of_rows(traffic, group.parallel, reduced, apart)


def _is_run(axes: tuple[Axis, ...], item: Traffic) -> bool:
    """Whether axes are contiguous with one another in a tensor, or it runs along none of them."""
    steps = [hint(item.steps.get(axis, 0)) for axis in axes]
    inner = [step * hint(axis.extent) for step, axis in zip(steps, axes, strict=True)]
    return not item.runs_along(axes) or steps[:-1] == inner[1:]


def _published(group: FusionGroup) -> int:
    """Sums of a row that programs can publish to one another."""
    return 0 if why_not_published(group.members, group.depth) else len(group.members)


def _online(group: FusionGroup, maker: AnchorMaker) -> bool:
    """Whether its reductions are one maximum and sums of exponentials in the same loop."""
    members = {member.node.out: member for member in group.members}
    pairs = online_pairs(maker.fusion, members) if group.depth == 2 else {}
    tops = {top.node.out for top in pairs.values()}
    return len(tops) == 1 and set(members) == {*pairs, *tops}


def _accumulators(member: Member) -> int:
    return 2 if isinstance(op_of(member.node).form, Moments) else 1


def _free_groups(group: FusionGroup, parallel: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], ...]:
    """The axes of rows, outermost first. Params may reorder axes within one of the tuples."""
    batch, together = group.batch_axes, group.co_reduced
    if batch:
        return batch, tuple(axis for axis in parallel if axis not in batch)
    if together:
        rest = tuple(axis for axis in parallel if axis not in together)
        return rest, tuple(axis for axis in parallel if axis in together)
    return (parallel,)


def _numbers(axes: tuple[Axis, ...], numbered: tuple[Axis | None, ...]) -> tuple[int, ...]:
    return tuple(numbered.index(axis) for axis in axes)


def _late(group: FusionGroup, maker: AnchorMaker, traffic: Sequence[Traffic]) -> frozenset[Traffic]:
    """The loads that no reduction of the group needs, where results depend on its reductions."""
    if not group.dependent_outputs:
        return frozenset()
    needed = set(maker.traffic(group.reduced_reads))
    return frozenset(item for item in traffic if not item.is_store and item not in needed)


def _streams(
    fusion: Fusion,
    traffic: list[Traffic],
    known: list[int],
    late: frozenset[Traffic],
    parallel: tuple[Axis, ...],
    reduced: tuple[Axis, ...],
    axes: tuple[Axis, ...],
) -> tuple[Stream, ...]:
    """The facts of loads and stores. Flat kernels load and store both elements of a pair as one."""
    found: list[Stream] = []
    seconds = {} if reduced or not parallel else pairs_in(traffic, parallel[-1])
    for item, again in zip(traffic, known, strict=True):
        half = seconds.get(item)
        held = held_bytes(fusion, item.value) if item.offset.loaded() else None
        if half is None:
            made = _stream(item, held, again, parallel, reduced, axes)
            found.append(replace(made, is_late=item in late))
        elif not half.is_second:
            one = replace(item, offset=half.in_pairs)
            made = _stream(one, held, again, parallel, reduced, axes)
            both = replace(made, item_bytes=2 * made.item_bytes, total_bytes=2 * made.total_bytes)
            found.append(both)
    return tuple(found)


def _stream(
    item: Traffic,
    held: int | None,
    known: int,
    parallel: tuple[Axis, ...],
    reduced: tuple[Axis, ...],
    axes: tuple[Axis, ...],
) -> Stream:
    return Stream(
        item_bytes=item.item_bytes,
        along_x=item.runs_along(parallel),
        along_r=item.runs_along(reduced),
        x_stride=_step(item, parallel),
        r_stride=_step(item, reduced),
        is_store=item.is_store,
        contiguous_run=_contiguous_run(item, parallel),
        x_same=_same(item, parallel),
        r_same=_same(item, reduced),
        total_bytes=item.accessed_bytes if held is None else min_by_hint(item.accessed_bytes, held),
        held_bytes=0 if held is None else held,
        accessed=item.share,
        known_bytes=known,
        stride_terms=stride_terms_of(item.offset, axes),
    )


def _contiguous_run(item: Traffic, axes: tuple[Axis, ...]) -> int:
    """Positions of the axes that are neighbours in memory too. 0 for all of them."""
    run = 1
    for axis in reversed(axes):
        if hint(item.steps.get(axis, 0)) != hint(run):
            return run
        run *= axis.extent
    return 0


def _same(item: Traffic, axes: tuple[Axis, ...]) -> int:
    """Neighbouring positions of the axes that have the same element."""
    inner = takewhile(lambda axis: axis not in item.axes, reversed(axes))
    return extent(tuple(inner))


def _step(item: Traffic, axes: tuple[Axis, ...]) -> int | None:
    """Elements of memory from one position of the innermost axis to the next."""
    return item.steps.get(axes[-1]) if axes else 0
