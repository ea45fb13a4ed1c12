"""A fusion group -> its segment: nodes, loads, stores, loop nest, and params."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...heuristics.params import ExprEvalParams
from ...ir import Node, Value
from ..access.bytes_moved import held_bytes, library_bytes, moved_bytes
from ..access.element_work import kernel_work
from ..access.node_kinds import is_scatter
from ..access.read_footprint import ReadFootprint
from ..access.traffic import Traffic, order_axes
from ..axis_order import explicit
from ..groups.axis_numbers import numbered_axes
from ..groups.fusion_group import FusionGroup
from ..segments.member import Member
from ..segments.segment import Segment
from ..segments.store import Store
from ..tile.aligned_rows import row_start
from .placed_groups import PlacedGroups
from .problem_facts import with_results
from .reasons import reason_of
from .second_sides import crossing_axes


def segment_of(
    placed: PlacedGroups,
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
    made = _kernel_segment(placed, group, name, footprint, loads)
    traffic = placed.maker.traffic(footprint.loads, made.stores)
    made = _with_bytes(placed, _with_loop_nest(placed, group, made, traffic), traffic)
    return replace(made, params=explicit(made, made.params))


def _library_segment(placed: PlacedGroups, node: Node, name: str) -> Segment:
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


def _kernel_segment(
    placed: PlacedGroups,
    group: FusionGroup,
    name: str,
    footprint: ReadFootprint,
    loads: dict[Value, set[int]],
) -> Segment:
    """The segment of a group's kernel: what it computes, loads and stores, and its params."""
    members = _members(placed, group)
    results = _result_stores(members, loads, group.number)
    problem = with_results(placed.problem(group), group, placed.maker, results)
    stores = (*group.stores, *results)
    nodes = _computed_nodes(placed, footprint, members, stores)
    work = kernel_work(nodes, footprint.computed, group.parallel, group.reduced)
    scheduled = placed.scheduled(group, problem, work)
    return Segment(
        name=name,
        scheduler=scheduled.params.scheduler,
        nodes=nodes,
        inputs=_inputs(footprint),
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


def _inputs(footprint: ReadFootprint) -> tuple[Value, ...]:
    """What a kernel loads or takes as arguments: tensors, then scalars, in recording order."""
    ordered = sorted(footprint.loads, key=lambda r: (not r.value.is_tensor, r.value.index))
    return tuple(dict.fromkeys(read.value for read in ordered))


def _with_loop_nest(
    placed: PlacedGroups, group: FusionGroup, piece: Segment, traffic: list[Traffic]
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


def _with_bytes(placed: PlacedGroups, piece: Segment, traffic: list[Traffic]) -> Segment:
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
    placed: PlacedGroups, group: FusionGroup, footprint: ReadFootprint
) -> tuple[Value, ...]:
    """The values of other kernels that a kernel loads although it could compute them."""
    written, homes = placed.graph.writers, placed.maker.home_index
    loaded = {read.value for read in footprint.loads}
    found = {v for v in loaded if v in group.stored or (v in written and v not in homes)}
    return tuple(sorted(found, key=lambda v: placed.maker.ranks[v]))


def _members(placed: PlacedGroups, group: FusionGroup) -> tuple[Member, ...]:
    """The reductions and scans of a group in order of dependence, which is recording order."""
    found = {m.node: m for m in (*group.members, *group.outer)}
    return tuple(found[node] for node in _in_order(placed, found))


def _computed_nodes(
    placed: PlacedGroups,
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


def _in_order(placed: PlacedGroups, nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Nodes in recording order."""
    return tuple(sorted(nodes, key=lambda n: placed.maker.ranks[n.out]))
