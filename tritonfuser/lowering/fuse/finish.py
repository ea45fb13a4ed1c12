"""Groups in, segments out: in an order in which each finds its inputs made, with their params."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...heuristics import schedulers
from ...heuristics.params import ExprEvalParams
from ...ir import Node, Value
from ...ops.builder import as_call
from ...ops.mma import product_sizes
from ...symbolic.index_expr import extent
from ..access.aliases import buffer_strides
from ..access.bytes_moved import held_bytes, library_bytes, moved_bytes
from ..access.read_footprint import Reach, is_scatter
from ..access.traffic import order_axes
from ..passes.split_reduction import Parts
from ..segments import Segment, SegmentedFusion, Store
from ..tile.aligned_rows import row_start
from .grouper import Grouper
from .grouping import Group
from .problems import crossing_axes


def before(grouper: Grouper, again: Grouper, parts: Mapping[Value, Parts]) -> tuple[str, ...]:
    """What this grouping decided that the one after it does not say."""
    split = [v for v in parts if again.fusion.producers.get(v) != grouper.fusion.producers[v]]
    steps = [f"{v.name} is done in two steps, {_purpose(parts[v])}" for v in split]
    firsts = _firsts(grouper)
    names = {number: f"the kernel of {value.name}" for number, value in firsts.items()}
    gone = {v: cut for v, cut in grouper.cuts.items() if v not in again.cuts}
    return (*steps, *(f"in one step {_named(cut, names)}" for cut in gone.values()))


def _purpose(parts: Parts) -> str:
    if isinstance(parts, tuple):
        return "the first along with other reductions of the same rows"
    return "to share it out over programs"


def _firsts(grouper: Grouper) -> dict[int, Value]:
    """The first value that each group makes; the copy of a scatter belongs to another one."""
    found = {g.number: g.stores[0].value for g in grouper.groups if g.stores}
    made: dict[int, Value] = {}
    for value, number in grouper.made.owner.items():
        made.setdefault(number, value)
    return {**found, **made}


def finish(grouper: Grouper, before: tuple[str, ...] = ()) -> SegmentedFusion:
    """The groups as segments, in an order in which each finds its inputs made."""
    order = _order(grouper.groups)
    names = {number: f"s{place}" for place, number in enumerate(order)}
    closed = {g.number: grouper.close(g) for g in grouper.groups}
    loads = _loads(grouper, closed)
    cuts = {grouper.made.owner[v]: _named(cut, names) for v, cut in grouper.cuts.items()}
    segments = [
        replace(_segment(grouper, n, names[n], closed[n], loads), cut=cuts.get(n, ""))
        for n in order
    ]
    if grouper.device.overlaps_launches:
        segments = _overlapped(segments)
    layouts = {out: buffer_strides(grouper.fusion, out) for s in segments for out in s.outputs}
    results = tuple(grouper.buffers[o.value] for o in grouper.fusion.outputs)
    why = (*before, *cuts.values())
    return SegmentedFusion(grouper.fusion, tuple(segments), results, layouts, why)


def _overlapped(segments: Sequence[Segment]) -> list[Segment]:
    """The same, with kernels that run right behind one another starting early."""
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


def _order(groups: Sequence[Group]) -> list[int]:
    """Each group behind those that it needs, and else as they are numbered."""
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


def _loads(grouper: Grouper, closed: dict[int, Reach]) -> dict[Value, set[int]]:
    """The groups that load a value; a result of the fusion is loaded by nobody's number."""
    found: dict[Value, set[int]] = {b.root: {_NOBODY} for b in grouper.buffers.values()}
    for number, reach in closed.items():
        for read in reach.loads:
            found.setdefault(read.value, set()).add(number)
    return found


_NOBODY = -1


def _library_segment(grouper: Grouper, node: Node, name: str) -> Segment:
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
        chunked=(),
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
    grouper: Grouper, number: int, name: str, own: Reach, loads: dict[Value, set[int]]
) -> Segment:
    group = grouper.groups[number]
    if group.library is not None:
        return _library_segment(grouper, group.library, name)
    problem = grouper.problem(group)
    scheduler, params = schedulers.propose(problem)

    def in_order(nodes: Iterable[Node]) -> tuple[Node, ...]:
        return tuple(sorted(nodes, key=lambda n: grouper.maker.ranks[n.out]))

    # Recording order is order of dependence: rows' and columns' reductions may alternate.
    found = {m.node: m for m in (*group.members, *group.outer)}
    members = tuple(found[node] for node in in_order(found))
    outs = ((member, out) for member in members for out in member.node.outs)
    wanted = [Store(out, m.index) for m, out in outs if loads.get(out, set()) - {number}]
    stores = [*group.stores, *wanted]
    met = {*own.nodes, *found, *(s.scatter for s in stores if s.scatter is not None)}
    makers = (grouper.fusion.producers[s.value] for s in stores if s.start or s.source is not None)
    met |= {node for node in makers if not is_scatter(node)}
    nodes = in_order(met)
    traffic = grouper.maker.traffic(own.loads, stores)
    ordered = sorted(own.loads, key=lambda r: (not r.value.is_tensor, r.value.index))
    return Segment(
        name=name,
        scheduler=scheduler,
        nodes=nodes,
        inputs=tuple(dict.fromkeys(r.value for r in ordered)),
        outputs=tuple(dict.fromkeys(s.value for s in stores)),
        parallel=order_axes(group.parallel, traffic),
        reduced=group.reduced if group.scans else order_axes(group.reduced, traffic),
        chunked=group.chunked,
        together=order_axes(group.together, traffic),
        crossing=crossing_axes(group, traffic),
        members=members,
        stores=tuple(stores),
        params=params,
        reason=_reason(group, len(nodes), stores),
        refusals=tuple(schedulers.refusals(problem)),
        depth=group.depth,
        row_start=row_start(traffic, group.parallel, order_axes(group.reduced, traffic)),
        bytes_read=moved_bytes(grouper.fusion, (t for t in traffic if not t.is_store)),
        bytes_written=moved_bytes(grouper.fusion, (t for t in traffic if t.is_store)),
    )


def _named(cut: str, names: dict[int, str]) -> str:
    """The reason of a cut with its kernels' names: ``@0`` -> ``s0``."""
    return re.sub(r"@(\d+)", lambda m: names[int(m[1])], cut)


def _reason(group: Group, ops: int, stores: Sequence[Store]) -> str:
    over = f"{extent(group.parallel)} x {extent(group.reduced)}"
    if group.product is not None:
        batch, *sizes = product_sizes(as_call(group.product))
        over = f"a matrix product of {' x '.join(str(n) for n in sizes)}"
        over += f", {batch} of them" if batch > 1 else ""
    scattered = sum(s.scatter is not None for s in stores)
    parts = [f"{_count(ops, 'op')} over {over}"]
    if scattered < len(stores):
        parts.append(f"{_count(len(stores) - scattered, 'result')} stored")
    if scattered:
        parts.append(f"{_count(scattered, 'result')} scattered into")
    if group.depth > 1 and group.product is None:
        parts.append(f"{group.depth} reductions that depend on one another")
    if group.outer:
        parts.append(f"{_count(len(group.outer), 'reduction')} over the rows")
    return ", ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
