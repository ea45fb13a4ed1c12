"""Fusion groups -> segments with params, in topological order, with their launches."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...heuristics.params import ExprEvalParams
from ...heuristics.schedule import Rewrites
from ...ir import Node, Value
from ..access.aliases import buffer_strides
from ..access.bytes_moved import held_bytes, library_bytes, moved_bytes
from ..access.element_work import kernel_work
from ..access.read_footprint import ReadFootprint, is_scatter
from ..access.traffic import Traffic, order_axes
from ..axis_order import explicit
from ..groups.axis_numbers import numbered_axes
from ..groups.fusion_group import FusionGroup
from ..groups.loaded_values import footprint_of
from ..legality.finishing import kernel_before, why_no_shared_launch, why_not_in_last_programs
from ..segments.member import Member
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion
from ..segments.store import Store
from ..tile.aligned_rows import row_start
from .later_loads import with_later_loads
from .placement import Placement
from .problem_facts import with_results
from .reasons import reason_of, with_names
from .second_sides import crossing_axes

_RESULTS = -1
"""Stands for the caller of the fusion among the numbers of groups that load a value."""


def schedule(
    placed: Placement, rewrites: Rewrites, before: tuple[str, ...] = ()
) -> SegmentedFusion:
    """The groups of a fusion as segments with params, in an order in which they can run.

    Parameters
    ----------
    placed : Placement
        The groups.
    rewrites : Rewrites
        How the fusion of the groups was made from the simplified one.
    before : tuple of str
        Decisions of an earlier grouping, for reports.
    """
    order = _order(placed)
    names = {number: f"s{place}" for place, number in enumerate(order)}
    footprints = {g.number: footprint_of(g, placed.graph, placed.maker) for g in placed.groups}
    loads = _loads(placed, footprints)
    cuts = {placed.graph.owner[v]: with_names(cut, names) for v, cut in placed.cuts.items()}
    segments = [
        replace(_segment(placed, n, names[n], footprints[n], loads), cut=cuts.get(n, ""))
        for n in order
    ]
    segments = _with_last_programs(placed, segments, [footprints[n] for n in order])
    segments = _with_register_limits(placed, _with_shared_launches(placed, segments))
    if placed.device.overlaps_launches:
        segments = _with_overlaps(segments)
    segments = with_later_loads(placed.fusion, segments, placed.device)
    layouts = {out: buffer_strides(placed.fusion, out) for s in segments for out in s.outputs}
    results = tuple(placed.buffers[o.value] for o in placed.fusion.outputs)
    why = (*before, *cuts.values())
    return SegmentedFusion(placed.fusion, tuple(segments), results, layouts, why, rewrites)


def _with_last_programs(
    placed: Placement, segments: Sequence[Segment], footprints: Sequence[ReadFootprint]
) -> list[Segment]:
    """The segments; some are computed by the last programs of an earlier kernel."""
    found = list(segments)
    for place, piece in enumerate(segments):
        before = kernel_before(found, place)
        first = None if before is None else found[before]
        reason = None
        if before is not None:
            reason = why_not_in_last_programs(found, before, place, footprints[place].loads)
        found[place] = placed.with_last_programs(first, piece, reason)
    return found


def _with_shared_launches(placed: Placement, segments: Sequence[Segment]) -> list[Segment]:
    """The segments; independent ones may share a launch."""
    found = list(segments)
    first: int | None = None
    for place, piece in enumerate(segments):
        if not piece.has_launch:
            continue
        reason = None if first is None else why_no_shared_launch(found, first, place)
        found[place] = placed.with_shared_launch(found, first, place, reason)
        if not found[place].beside:
            first = None if piece.runs_torch else place
    return found


def _with_register_limits(placed: Placement, segments: Sequence[Segment]) -> list[Segment]:
    """The segments; kernels of one segment may have a limit on registers."""
    shared = {piece.launched_by for piece in segments if piece.launched_by}
    return [
        piece if piece.launched_by or piece.name in shared else placed.with_register_limit(piece)
        for piece in segments
    ]


def _with_overlaps(segments: Sequence[Segment]) -> list[Segment]:
    """The segments; a kernel may start before the previous one ends (dependent launch)."""
    found = list(segments)
    kernel: int | None = None
    for place, piece in enumerate(segments):
        if not piece.has_launch:
            continue
        if not piece.runs_torch and piece.overlap and kernel is not None:
            found[kernel] = replace(found[kernel], followed=True)
            found[place] = replace(found[place], follows=True)
        kernel = None if piece.runs_torch else place
    return found


def _order(placed: Placement) -> list[int]:
    """Group numbers in topological order; of groups that may run next, the one of lowest rank."""
    groups = placed.groups
    missing = {g.number: set(g.needs) for g in groups}
    users: dict[int, list[int]] = {}
    for group in groups:
        for number in group.needs:
            users.setdefault(number, []).append(group.number)
    ready = [(placed.rank(n), n) for n, needs in missing.items() if not needs]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        _, number = heapq.heappop(ready)
        done.append(number)
        for user in users.get(number, ()):
            missing[user].discard(number)
            if not missing[user]:
                heapq.heappush(ready, (placed.rank(user), user))
    return done


def _loads(placed: Placement, footprints: dict[int, ReadFootprint]) -> dict[Value, set[int]]:
    """The groups that load each value, and ``_RESULTS`` for a result of the fusion."""
    found: dict[Value, set[int]] = {b.root: {_RESULTS} for b in placed.buffers.values()}
    for number, footprint in footprints.items():
        for read in footprint.loads:
            found.setdefault(read.value, set()).add(number)
    return found


def _library_segment(placed: Placement, node: Node, name: str) -> Segment:
    """The segment of an op that torch runs."""
    operands = tuple(placed.buffers[v] for v in node.operands() if v.is_tensor)
    scalars = [v for v in node.operands() if not v.is_tensor]
    return Segment(
        name=name,
        scheduler="expr_eval",
        nodes=(node,),
        inputs=tuple(dict.fromkeys([*(b.root for b in operands), *scalars])),
        outputs=node.outs,
        params=ExprEvalParams(),
        reason=f"torch runs {node.op}",
        operands=operands,
        bytes_read=library_bytes(placed.fusion, operands),
        bytes_written=sum(held_bytes(placed.fusion, out) for out in node.outs),
    )


def _segment(
    placed: Placement,
    number: int,
    name: str,
    footprint: ReadFootprint,
    loads: dict[Value, set[int]],
) -> Segment:
    """The segment of a group, with the params of its scheduler.

    Parameters
    ----------
    footprint : ReadFootprint
        All that the group computes and loads.
    loads : dict of Value to set of int
        The groups that load each value.
    """
    group = placed.groups[number]
    if group.library is not None:
        return _library_segment(placed, group.library, name)
    members = _members(placed, group)
    results = _result_stores(members, loads, number)
    problem = with_results(placed.problem(group), group, placed.maker, results)
    stores = (*group.stores, *results)
    nodes = _nodes(placed, footprint, members, stores)
    work = kernel_work(nodes, footprint.computed)
    scheduled = placed.scheduled(group, problem, work)
    ordered = sorted(footprint.loads, key=lambda r: (not r.value.is_tensor, r.value.index))
    made = Segment(
        name=name,
        scheduler=scheduled.params.scheduler,
        nodes=nodes,
        inputs=tuple(dict.fromkeys(r.value for r in ordered)),
        outputs=tuple(dict.fromkeys(s.value for s in stores)),
        params=scheduled.params,
        members=members,
        stores=stores,
        problem=problem,
        loads=_loaded_not_computed(placed, group, footprint),
        work=work,
        depth=group.depth,
        overlap=placed.overlaps_previous(group),
        reason=reason_of(group, len(nodes), stores),
        refusals=scheduled.refusals,
        overruled=scheduled.overruled,
    )
    traffic = placed.maker.traffic(footprint.loads, stores)
    made = _with_bytes(placed, _with_loop_nest(placed, group, made, traffic), traffic)
    return replace(made, params=explicit(made, made.params))


def _with_loop_nest(
    placed: Placement, group: FusionGroup, piece: Segment, traffic: list[Traffic]
) -> Segment:
    """A segment with the axes of its loop nest, in the order of strides of all that it accesses."""
    moved = placed.maker.traffic(group.reads, group.stores)
    reduced = order_axes(group.reduced, traffic)
    assert piece.problem is not None
    return replace(
        piece,
        row_start=row_start(moved, group.parallel, reduced),
        parallel=order_axes(group.parallel, traffic),
        reduced=group.reduced if group.scans else reduced,
        batch_axes=group.batch_axes,
        co_reduced=order_axes(group.co_reduced, traffic),
        crossing=crossing_axes(piece.problem, order_axes(group.parallel, moved)),
        numbered=numbered_axes(group, placed.maker),
    )


def _with_bytes(placed: Placement, piece: Segment, traffic: list[Traffic]) -> Segment:
    """A segment with the bytes that it reads and writes."""
    return replace(
        piece,
        bytes_read=moved_bytes(placed.fusion, (t for t in traffic if not t.is_store)),
        bytes_written=moved_bytes(placed.fusion, (t for t in traffic if t.is_store)),
    )


def _result_stores(
    members: Sequence[Member], loads: dict[Value, set[int]], number: int
) -> list[Store]:
    """The stores of results of reductions and scans that others than group ``number`` load."""
    results = ((member, out) for member in members for out in member.node.outs)
    return [Store(out, m.index) for m, out in results if loads.get(out, set()) - {number}]


def _loaded_not_computed(
    placed: Placement, group: FusionGroup, footprint: ReadFootprint
) -> tuple[Value, ...]:
    """The values of other kernels that a kernel loads although it could compute them."""
    written, homes = placed.graph.writers, placed.maker.home_index
    loaded = {read.value for read in footprint.loads}
    found = {v for v in loaded if v in group.stored or (v in written and v not in homes)}
    return tuple(sorted(found, key=lambda v: placed.maker.ranks[v]))


def _members(placed: Placement, group: FusionGroup) -> tuple[Member, ...]:
    """The reductions and scans of a group in order of dependence, which is recording order."""
    found = {m.node: m for m in (*group.members, *group.outer)}
    return tuple(found[node] for node in _in_order(placed, found))


def _nodes(
    placed: Placement,
    footprint: ReadFootprint,
    members: Sequence[Member],
    stores: Sequence[Store],
) -> tuple[Node, ...]:
    """All nodes that a kernel computes, with those of its stores."""
    met = {*footprint.nodes, *(m.node for m in members)}
    met |= {s.scatter for s in stores if s.scatter is not None}
    makers = (placed.fusion.producers[s.value] for s in stores if s.source is not None)
    met |= {node for node in makers if not is_scatter(node)}
    return _in_order(placed, met)


def _in_order(placed: Placement, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Nodes in recording order."""
    return tuple(sorted(nodes, key=lambda n: placed.maker.ranks[n.out]))
