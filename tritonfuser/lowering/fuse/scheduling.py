"""Groups in, segments with params out, in an order in which each finds its inputs made."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...heuristics.params import ExprEvalParams
from ...ir import Node, Value
from ..access.aliases import buffer_strides
from ..access.bytes_moved import held_bytes, library_bytes, moved_bytes
from ..access.read_footprint import ReadFootprint, is_scatter
from ..access.traffic import order_axes
from ..groups.fusion_group import FusionGroup
from ..groups.loaded_values import footprint_of
from ..segments import Member, Segment, SegmentedFusion, Store
from ..tile.aligned_rows import row_start
from . import questions
from .grouper import Grouper
from .problem_facts import crossing_axes
from .reasons import reason_of, with_names

_RESULTS = -1
"""Stands for the fusion's caller among the groups that load a value."""


def schedule(grouper: Grouper, before: tuple[str, ...] = ()) -> SegmentedFusion:
    """The groups of a fusion as scheduled segments, in an order in which they can run.

    Parameters
    ----------
    grouper : Grouper
        Its fusion is the segments' one.
    before : tuple of str
        Decisions of an earlier grouping to report.
    """
    order = _order(grouper.groups)
    names = {number: f"s{place}" for place, number in enumerate(order)}
    footprints = {g.number: footprint_of(g, grouper.graph, grouper.maker) for g in grouper.groups}
    loads = _loads(grouper, footprints)
    cuts = {grouper.graph.owner[v]: with_names(cut, names) for v, cut in grouper.cuts.items()}
    segments = [
        replace(_segment(grouper, n, names[n], footprints[n], loads), cut=cuts.get(n, ""))
        for n in order
    ]
    if grouper.device.overlaps_launches:
        segments = _overlapped(segments)
    layouts = {out: buffer_strides(grouper.fusion, out) for s in segments for out in s.outputs}
    results = tuple(grouper.buffers[o.value] for o in grouper.fusion.outputs)
    why = (*before, *cuts.values())
    return SegmentedFusion(grouper.fusion, tuple(segments), results, layouts, why)


def _overlapped(segments: Sequence[Segment]) -> list[Segment]:
    """The same, where a kernel that directly follows another starts before that one ends."""
    found = list(segments)
    kernel: int | None = None
    for place, piece in enumerate(segments):
        if piece.scheduler == "no_op":
            continue
        runs = piece.scheduler != "expr_eval"
        if runs and kernel is not None:
            found[kernel] = replace(found[kernel], followed=True)
            found[place] = replace(found[place], follows=True)
        kernel = place if runs else None
    return found


def _order(groups: Sequence[FusionGroup]) -> list[int]:
    """Group numbers in topological order. Among groups that may run next, the lowest number."""
    missing = {g.number: set(g.needs) for g in groups}
    users: dict[int, list[int]] = {}
    for group in groups:
        for number in group.needs:
            users.setdefault(number, []).append(group.number)
    ready = [number for number, needs in missing.items() if not needs]
    done: list[int] = []
    while ready:
        number = heapq.heappop(ready)
        done.append(number)
        for user in users.get(number, ()):
            missing[user].discard(number)
            if not missing[user]:
                heapq.heappush(ready, user)
    return done


def _loads(grouper: Grouper, footprints: dict[int, ReadFootprint]) -> dict[Value, set[int]]:
    """The groups that load a value, ``_RESULTS`` among them for a result of the fusion."""
    found: dict[Value, set[int]] = {b.root: {_RESULTS} for b in grouper.buffers.values()}
    for number, footprint in footprints.items():
        for read in footprint.loads:
            found.setdefault(read.value, set()).add(number)
    return found


def _library_segment(grouper: Grouper, node: Node, name: str) -> Segment:
    """The segment of an op that torch runs."""
    operands = tuple(grouper.buffers[v] for v in node.operands() if v.is_tensor)
    scalars = [v for v in node.operands() if not v.is_tensor]
    return Segment(
        name=name,
        scheduler="expr_eval",
        nodes=(node,),
        inputs=tuple(dict.fromkeys([*(b.root for b in operands), *scalars])),
        outputs=node.outs,
        parallel=(),
        reduced=(),
        batch_axes=(),
        crossing=(),
        members=(),
        stores=(),
        params=ExprEvalParams(),
        reason=f"torch runs {node.op}",
        operands=operands,
        bytes_read=library_bytes(grouper.fusion, operands),
        bytes_written=sum(held_bytes(grouper.fusion, out) for out in node.outs),
    )


def _segment(
    grouper: Grouper,
    number: int,
    name: str,
    footprint: ReadFootprint,
    loads: dict[Value, set[int]],
) -> Segment:
    """The segment of a group, by the scheduler that takes it."""
    group = grouper.groups[number]
    if group.library is not None:
        return _library_segment(grouper, group.library, name)
    problem = grouper.problem(group)
    scheduler, params = questions.propose(problem)
    members = _members(grouper, group)
    outs = ((member, out) for member in members for out in member.node.outs)
    wanted = [Store(out, m.index) for m, out in outs if loads.get(out, set()) - {number}]
    stores = (*group.stores, *wanted)
    nodes = _nodes(grouper, footprint, members, stores)
    traffic = grouper.maker.traffic(footprint.loads, stores)
    ordered = sorted(footprint.loads, key=lambda r: (not r.value.is_tensor, r.value.index))
    reduced = order_axes(group.reduced, traffic)
    return Segment(
        name=name,
        scheduler=scheduler,
        nodes=nodes,
        inputs=tuple(dict.fromkeys(r.value for r in ordered)),
        outputs=tuple(dict.fromkeys(s.value for s in stores)),
        parallel=order_axes(group.parallel, traffic),
        reduced=group.reduced if group.scans else reduced,
        batch_axes=group.batch_axes,
        co_reduced=order_axes(group.co_reduced, traffic),
        crossing=crossing_axes(group, traffic),
        members=members,
        stores=stores,
        params=params,
        reason=reason_of(group, len(nodes), stores),
        refusals=tuple(questions.refusals(problem)),
        depth=group.depth,
        row_start=row_start(traffic, group.parallel, reduced),
        bytes_read=moved_bytes(grouper.fusion, (t for t in traffic if not t.is_store)),
        bytes_written=moved_bytes(grouper.fusion, (t for t in traffic if t.is_store)),
    )


def _members(grouper: Grouper, group: FusionGroup) -> tuple[Member, ...]:
    """The reductions and scans of a group in order of dependence, which is recording order."""
    found = {m.node: m for m in (*group.members, *group.outer)}
    return tuple(found[node] for node in _in_order(grouper, found))


def _nodes(
    grouper: Grouper,
    footprint: ReadFootprint,
    members: Sequence[Member],
    stores: Sequence[Store],
) -> tuple[Node, ...]:
    """All nodes that a kernel computes, those of its stores too."""
    met = {*footprint.nodes, *(m.node for m in members)}
    met |= {s.scatter for s in stores if s.scatter is not None}
    makers = (grouper.fusion.producers[s.value] for s in stores if s.start or s.source is not None)
    met |= {node for node in makers if not is_scatter(node)}
    return _in_order(grouper, met)


def _in_order(grouper: Grouper, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Nodes in recording order."""
    return tuple(sorted(nodes, key=lambda n: grouper.maker.ranks[n.out]))
