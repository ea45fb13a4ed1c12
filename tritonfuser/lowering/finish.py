"""Groups in, segments out: in an order in which each finds its inputs made, with their params."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..heuristics import schedulers
from ..heuristics.params import ExprEvalParams
from ..ir import Node, Value
from ..ops.builder import as_call
from ..ops.products import product_sizes
from .aliases import buffer_strides
from .grouper import Grouper
from .grouping import Group, extent
from .moved import held_bytes, library_bytes, moved_bytes
from .problems import crossing_axes
from .reach import Reach
from .segments import Segment, SegmentedFusion, Store
from .traffic import order_axes


def before(grouper: Grouper, again: Grouper, parts: dict[Value, int]) -> tuple[str, ...]:
    """What this grouping decided that the one after it does not say."""
    split = [v for v in parts if again.fusion.producers.get(v) != grouper.fusion.producers[v]]
    steps = [f"{v.name} is done in two steps, to share it out over programs" for v in split]
    names = {g.number: f"the kernel of {_first(grouper, g).name}" for g in grouper.groups}
    gone = {v: cut for v, cut in grouper.cuts.items() if v not in again.cuts}
    return (*steps, *(f"in one step {_named(cut, names)}" for cut in gone.values()))


def _first(grouper: Grouper, group: Group) -> Value:
    """The first value that a group makes; the copy of a scatter belongs to another one."""
    made = [value for value, number in grouper.owner.items() if number == group.number]
    return made[0] if made else group.stores[0].value


def finish(grouper: Grouper, before: tuple[str, ...] = ()) -> SegmentedFusion:
    """The groups as segments, in an order in which each finds its inputs made."""
    order = _order(grouper)
    names = {number: f"s{place}" for place, number in enumerate(order)}
    closed = {g.number: grouper.close(g) for g in grouper.groups}
    cuts = {grouper.owner[v]: _named(cut, names) for v, cut in grouper.cuts.items()}
    segments = [
        replace(_segment(grouper, grouper.groups[n], names[n], closed), cut=cuts.get(n, ""))
        for n in order
    ]
    layouts = {out: buffer_strides(grouper.fusion, out) for s in segments for out in s.outputs}
    results = tuple(grouper.buffers[o.value] for o in grouper.fusion.outputs)
    why = (*before, *cuts.values())
    return SegmentedFusion(grouper.fusion, tuple(segments), results, layouts, why)


def _order(grouper: Grouper) -> list[int]:
    done: list[int] = []
    while len(done) < len(grouper.groups):
        ready = (
            g.number for g in grouper.groups if g.number not in done and g.needs.issubset(done)
        )
        done.append(next(ready))
    return done


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


def _segment(grouper: Grouper, group: Group, name: str, closed: dict[int, Reach]) -> Segment:
    if group.library is not None:
        return _library_segment(grouper, group.library, name)
    problem = grouper.problem(group)
    scheduler, params = schedulers.propose(problem)
    own = closed[group.number]
    place = {node.out: i for i, node in enumerate(grouper.fusion.nodes)}
    # Recording order is order of dependence: rows' and columns' reductions may alternate.
    members = tuple(sorted((*group.members, *group.outer), key=lambda m: place[m.node.out]))
    outside = {r.value for n, c in closed.items() if n != group.number for r in c.loads}
    outside |= {b.root for b in grouper.buffers.values()}
    stores = list(group.stores) + [
        Store(out, m.index) for m in members for out in m.node.outs if out in outside
    ]
    met = own.nodes | {m.node for m in members} | {s.scatter for s in stores}
    met |= {grouper.fusion.producers[s.value] for s in stores if s.start}
    nodes = tuple(n for n in grouper.fusion.nodes if n in met)
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
        crossing=crossing_axes(group, traffic),
        members=members,
        stores=tuple(stores),
        params=params,
        reason=_reason(group, len(nodes), stores),
        refusals=tuple(schedulers.refusals(problem)),
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
