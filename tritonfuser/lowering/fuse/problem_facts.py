"""The facts of a fusion group that schedulers decide by (``Problem``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...device import DeviceProperties
from ...heuristics.problem import Problem
from ...ir import Fusion, Value
from ...ops.builder import op_of
from ...ops.forms import Moments, Scan
from ...symbolic.index_expr import Axis, extent
from ...symbolic.sizes import hint, is_size
from ..access.bytes_moved import known_bytes
from ..access.streams import ProblemAxes, stream_of, streams_of
from ..access.traffic import Traffic, order_axes
from ..groups.anchor_maker import AnchorMaker
from ..groups.axis_numbers import numbered_axes
from ..groups.fusion_group import FusionGroup
from ..groups.online_pairs import online_pairs
from ..legality.row_sharing import why_not_published
from ..segments.member import Member
from ..segments.store import Store
from ..tile.aligned_rows import vector_of_rows
from .core_facts import CoreFacts


def problem_of(
    group: FusionGroup,
    maker: AnchorMaker,
    facts: CoreFacts,
    device: DeviceProperties,
    partial: frozenset[Value] | None = None,
) -> Problem:
    """The facts of a group by which schedulers decide, but for the second side of flat tiles.

    Sizes that vary stay sizes: ``scheduler_queries`` asks the schedulers about such facts.

    Parameters
    ----------
    group : FusionGroup
        The group.
    maker : AnchorMaker
        Made the anchors of its fusion.
    facts : CoreFacts
        The facts of core ops.
    device : DeviceProperties
        The device to schedule for.
    partial : frozenset of Value or None
        The results of the first steps of reductions that were split. None where none was split yet.
    """
    traffic = maker.traffic(group.reads, group.stores)
    axes = _axes_of(group, maker, traffic)
    known = known_bytes(maker.fusion, traffic, device)
    late = _loads_after_reductions(group, maker, traffic)
    rows_split = any(m.node.out in (partial or ()) for m in group.outer)
    nest = Problem(
        parallel=extent(axes.parallel),
        reduced=extent(axes.reduced),
        order=axes.order,
        axes=tuple(axis.extent for axis in axes.every),
        row_axes=len(axes.reduced),
        streams=streams_of(maker.fusion, traffic, axes, known, late),
        result_bytes=_result_bytes(group, maker.fusion),
        ops_per_element=len(group.nodes),
        draws_random=group.draws_random,
        rows_split=rows_split,
        may_split=partial is None,
        vector_elements=_aligned_vector_elements(group, traffic, facts, axes.reduced, rows_split),
        one_run=_are_runs({member.across for member in group.members}, traffic),
        row_varies=is_size(extent(axes.reduced)),
        rows_vary=is_size(extent(axes.parallel)),
        core=facts.core(group, traffic),
        device=device,
    )
    return _with_reductions(nest, group, maker)


def _with_reductions(problem: Problem, group: FusionGroup, maker: AnchorMaker) -> Problem:
    """The facts of a group's loop nest, with those of its reductions and scans."""
    shares = [m.share for m in group.outer if m.share is not None]
    return replace(
        problem,
        reduction_depth=group.depth,
        reduction_passes=group.row_passes,
        full_outputs=group.full_outputs,
        dependent_outputs=group.dependent_outputs,
        independent_outputs=group.independent_outputs,
        scans=group.scans,
        outer_members=len(group.outer),
        outer_loops=group.loops_over_rows if group.outer else 1,
        outer_batch=extent(group.batch_axes) * (shares[0].part.extent if shares else 1),
        co_reduced=extent(group.co_reduced),
        accumulators=sum(_accumulators(m) for m in group.members if m.across != group.co_reduced),
        published_sums=_published_sums(group),
        online_softmax=_is_online_softmax(group, maker),
    )


def _aligned_vector_elements(
    group: FusionGroup,
    traffic: list[Traffic],
    facts: CoreFacts,
    reduced: tuple[Axis, ...],
    rows_split: bool,
) -> int:
    """Elements of a vector, if tiles can begin at vectors although rows do not; else 1."""
    if group.scans or group.co_reduced or any(t.value in facts.misaligned for t in traffic):
        return 1
    shares = [m.share for m in group.outer if m.share is not None]
    if shares:
        separate = (*group.batch_axes, shares[0].part)
        return vector_of_rows(traffic, group.parallel, reduced, separate, shares[0].places)
    # Rows that are not split yet can be divided so that all rows of a program begin alike.
    separate = group.batch_axes if rows_split else ()
    return vector_of_rows(traffic, group.parallel, reduced, separate)


def with_results(
    problem: Problem, group: FusionGroup, maker: AnchorMaker, stores: Sequence[Store]
) -> Problem:
    """The facts with the stores of results of reductions, one for each row, that others load.

    Until all groups are made it is not known which of them are loaded: other kernels may compute
    from a result what its own computes from it.
    """
    if not stores:
        return replace(problem, result_bytes=0) if problem.result_bytes else problem
    axes = _axes_of(group, maker, maker.traffic(group.reads, group.stores))
    members = (m for m in group.members if not isinstance(op_of(m.node).form, Scan))
    reduced_to = {value for member in members for value in member.node.outs}
    along = (maker.traffic.of_store(store) for store in stores if store.value in reduced_to)
    return replace(
        problem,
        results=tuple(stream_of(item, axes) for item in along),
        result_bytes=sum(s.value.tensor.numel * s.value.dtype.info.bytes for s in stores),
    )


def _result_bytes(group: FusionGroup, fusion: Fusion) -> int:
    """Bytes of the results of the group's reductions that other kernels or the caller use, as far
    as it is known from the group: see ``with_results``."""
    members = (*group.members, *group.outer)
    own = {*group.nodes, *(member.node for member in members)}
    given = {output.value for output in fusion.outputs}
    values = (value for member in members for value in member.node.outs)
    used = (
        value
        for value in values
        if value in given or not own.issuperset(fusion.consumers.get(value, ()))
    )
    return sum(value.tensor.numel * value.dtype.info.bytes for value in used)


def _are_runs(reduced: Iterable[tuple[Axis, ...]], traffic: Sequence[Traffic]) -> bool:
    """Whether the axes of each reduction are one run of every tensor."""
    return all(_is_run(axes, item) for axes in reduced for item in traffic)


def _is_run(axes: tuple[Axis, ...], item: Traffic) -> bool:
    """Whether a tensor has one stride along all these axes together, or runs along none of them."""
    if len(axes) < 2 or not item.runs_along(axes):
        return True
    steps = [hint(item.steps.get(axis, 0)) for axis in axes]
    inner = [step * hint(axis.extent) for step, axis in zip(steps, axes, strict=True)]
    return steps[:-1] == inner[1:]


def _published_sums(group: FusionGroup) -> int:
    """The sums of a row that programs can publish to one another; 0 where they cannot."""
    return 0 if why_not_published(group.members, group.depth) else len(group.members)


def _is_online_softmax(group: FusionGroup, maker: AnchorMaker) -> bool:
    """Whether its reductions are one maximum and sums of exponentials that one loop computes."""
    members = {member.node.out: member for member in group.members}
    pairs = online_pairs(maker.fusion, members) if group.depth == 2 else {}
    tops = {top.node.out for top in pairs.values()}
    return len(tops) == 1 and set(members) == {*pairs, *tops}


def _accumulators(member: Member) -> int:
    return 2 if isinstance(op_of(member.node).form, Moments) else 1


def _axes_of(group: FusionGroup, maker: AnchorMaker, traffic: list[Traffic]) -> ProblemAxes:
    """The axes of a group's kernel, in the order of its memory."""
    parallel, reduced = order_axes(group.parallel, traffic), order_axes(group.reduced, traffic)
    numbers, free = numbered_axes(group, maker), _free_groups(group, parallel)
    rows = tuple(axis for axes in free for axis in axes) if reduced and numbers else parallel
    order = tuple(_axis_numbers(axes, numbers) for axes in free) if numbers else ()
    return ProblemAxes(parallel, reduced, (*rows, *reduced), order)


def _free_groups(group: FusionGroup, parallel: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], ...]:
    """The axes of rows in tuples, outermost first. Params may reorder axes within a tuple."""
    batch, together = group.batch_axes, group.co_reduced
    if batch:
        return batch, tuple(axis for axis in parallel if axis not in batch)
    if together:
        rest = tuple(axis for axis in parallel if axis not in together)
        return rest, tuple(axis for axis in parallel if axis in together)
    return (parallel,)


def _axis_numbers(axes: tuple[Axis, ...], numbered: tuple[Axis | None, ...]) -> tuple[int, ...]:
    return tuple(numbered.index(axis) for axis in axes)


def _loads_after_reductions(
    group: FusionGroup, maker: AnchorMaker, traffic: Sequence[Traffic]
) -> frozenset[Traffic]:
    """The loads that only results need which depend on reductions of the group."""
    if not group.dependent_outputs:
        return frozenset()
    needed = set(maker.traffic(group.reduced_reads))
    return frozenset(item for item in traffic if not item.is_store and item not in needed)
