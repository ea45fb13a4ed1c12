"""Fusion in, SegmentedFusion out: what shares a kernel, by which scheduler, and why it was cut."""

from __future__ import annotations

import re
from dataclasses import replace

from ..affine import Axis
from ..device import DeviceProperties
from ..heuristics import schedulers
from ..heuristics.params import ExprEvalParams
from ..heuristics.problem import Problem, Stream
from ..ir import Fusion, Node, Value
from .aliases import buffer_strides, resolve
from .grouping import EXTENTS, ROWS, Group, Seed, SeedMaker, extent, fit
from .reach import Reach, is_anchor, is_library, walk
from .rfactor import reduced_extents, rfactor, splits_well
from .segments import Buffered, Segment, SegmentedFusion, Store
from .traffic import Traffic, fast_axes, order_axes


def segment(fusion: Fusion, device: DeviceProperties) -> SegmentedFusion:
    """Cut a simplified, concrete fusion into kernels for a device.

    Reductions with too few rows to fill the device are done in two steps: the fusion is
    rewritten (``sum(t)`` -> ``sum(sum(reshape(t)))``) and grouped once more.
    """
    grouper = Grouper(fusion, device)
    parts = grouper.parts()
    if parts:
        grouper = Grouper(rfactor(fusion, parts), device)
    return grouper.finish()


class Grouper:
    """One pass of grouping: each seed joins the first group that takes it, or starts one."""

    def __init__(self, fusion: Fusion, device: DeviceProperties) -> None:
        self.fusion = fusion
        self.device = device
        self.maker = SeedMaker(fusion)
        self.buffers = self._buffers()
        self.groups: list[Group] = []
        self.owner: dict[Value, int] = {}
        self.cuts: list[str] = []
        for item in self._ordered():
            if isinstance(item, Seed):
                self._place(item)
            else:
                self._place_library(item)
        # The largest first: smaller results ride along in their kernels.
        for value in sorted(self._stored(), key=lambda v: -v.tensor.numel):
            if value not in self.owner:
                self._place(self.maker.store(value))

    def _buffers(self) -> dict[Value, Buffered]:
        """Where each value lies that must be in memory: outputs, and what torch is given."""
        values = [o.value for o in self.fusion.outputs]
        for node in self.fusion.nodes:
            if is_library(node):
                values += [v for v in node.operands() if v.is_tensor]
        return dict(zip(values, resolve(self.fusion, values), strict=True))

    def _ordered(self) -> list[Seed | Node]:
        """Reductions and library calls by depth.

        Reductions along memory come before others: reductions over their rows join them.
        """
        depth = self.maker.depth
        found: list[tuple[int, int, Seed | Node]] = []
        for node in self.fusion.nodes:
            if is_library(node):
                found.append((depth[node.out], 2, node))
            elif is_anchor(node):
                seed = self.maker.anchor(node)
                found.append((depth[node.out], int(not self.maker.runs_inner(seed)), seed))
        return [item for _, _, item in sorted(found, key=lambda entry: entry[:2])]

    def _place_library(self, node: Node) -> None:
        """A library call ends a kernel: what it is given is stored before it."""
        roots = [self.buffers[v].root for v in node.operands() if v.is_tensor]
        for root in sorted(dict.fromkeys(roots), key=lambda v: -v.tensor.numel):
            if root not in self.owner and root not in self.fusion.inputs:
                self._place(self.maker.store(root))
        needs = frozenset(self.owner[r] for r in roots if r in self.owner)
        group = Group(len(self.groups), (), (), needs=needs, library=node)
        self.groups.append(group)
        self.owner.update(dict.fromkeys(node.outs, group.number))

    def _stored(self) -> list[Value]:
        """Values that outputs lie in and that are no inputs, each once."""
        inputs = set(self.fusion.inputs)
        roots = dict.fromkeys(b.root for b in self.buffers.values())
        return [v for v in roots if v not in inputs]

    # -- joining -------------------------------------------------------------

    def _place(self, seed: Seed) -> None:
        refusals: list[str] = []
        for group in self._candidates(seed):
            outcome = self._joined(seed, group)
            if isinstance(outcome, Group):
                self._put(outcome, seed)
                return
            refusals.append(f"not in @{group.number}: {outcome}")
        group = Group(len(self.groups), seed.parallel, seed.reduced)
        self.groups.append(group)
        self._put(group.grown(seed, False, self._needs(seed, group)), seed)
        if refusals:
            self.cuts.append(f"{seed.value.name} starts @{group.number}; {'; '.join(refusals)}")

    def _put(self, group: Group, seed: Seed) -> None:
        self.groups[group.number] = group
        self.owner.update(dict.fromkeys(seed.values, group.number))

    def _candidates(self, seed: Seed) -> list[Group]:
        """Groups whose reductions the seed reads first, and the latest first."""
        touched = {self.owner[v] for v in seed.reach.native if v in self.owner}
        kernels = [g for g in self.groups if g.library is None]
        return sorted(kernels, key=lambda g: (g.number not in touched, -g.number))

    def _joined(self, seed: Seed, group: Group) -> Group | str:
        """The group with the seed in it, or why it stays out."""
        how = fit(seed, group)
        if how is None:
            return "it runs over other axes"
        if how == EXTENTS:
            if seed.member is not None and not self._same_direction(seed, group):
                return "it reduces along the other memory direction"
            if not group.places.keys().isdisjoint(seed.reach.native | seed.reach.foreign):
                return "it reads the kernel's reductions at other axes"
            seed = self.maker.moved(seed, group)
        elif not self._related(seed, group):
            return "it shares nothing with the kernel"
        inside = [v.name for v in seed.reach.foreign if v in group.places]
        if inside:
            return f"it reads {inside[0]} at another index than where the kernel computes it"
        needs = self._needs(seed, group)
        if self._reaches(needs, group.number):
            return "the kernels would depend on each other"
        grown = group.grown(seed, how == ROWS, needs)
        problem = self._problem(grown)
        refused = schedulers.reject_reason(problem)
        if refused is None and how == ROWS:
            assert seed.member is not None
            rows = reduced_extents(seed.member.node)
            if not splits_well(rows, schedulers.split(problem)):
                return f"{rows} rows cannot be shared out over programs"
        return refused or grown

    def _same_direction(self, seed: Seed, group: Group) -> bool:
        first = replace(seed, reduced=group.members[0].across, reach=self._close(group))
        return self.maker.runs_inner(seed) == self.maker.runs_inner(first)

    def _related(self, seed: Seed, group: Group) -> bool:
        """Whether being together saves a load, or work: flat kernels take any, to save a launch."""
        if not group.reduced or not seed.reach.native.isdisjoint(group.places):
            return True
        if not seed.reach.nodes.isdisjoint(group.nodes):
            return True
        loads = seed.reach.loads | seed.reach.anchors
        mine = {r.value for r in loads if r.value.is_tensor}
        return seed.member is not None or any(r.value in mine for r in group.reads)

    def _needs(self, seed: Seed, group: Group) -> frozenset[int]:
        """The other groups whose results the seed reads."""
        owners = {self.owner[v] for v in seed.reach.native | seed.reach.foreign}
        return frozenset(owners - {group.number})

    def _reaches(self, needs: frozenset[int], target: int) -> bool:
        stack, seen = list(needs), set(needs)
        while stack:
            number = stack.pop()
            if number == target:
                return True
            fresh = self.groups[number].needs - seen
            seen |= fresh
            stack.extend(fresh)
        return False

    # -- facts ---------------------------------------------------------------

    def _traffic(self, group: Group) -> list[Traffic]:
        return self.maker.traffic(group.reads, group.stores)

    def _problem(self, group: Group) -> Problem:
        traffic = self._traffic(group)
        parallel = order_axes(group.parallel, traffic)
        reduced = order_axes(group.reduced, traffic)
        return Problem(
            parallel=extent(parallel),
            reduced=extent(reduced),
            levels=group.depth,
            full_outputs=group.full_outputs,
            dependent_outputs=group.dependent_outputs,
            scans=group.scans,
            outer_members=len(group.outer),
            chunks=extent(group.chunked),
            crossing=extent(_crossing(group, traffic)),
            streams=tuple(_stream(t, parallel, reduced) for t in traffic),
            work=len(group.nodes),
            device=self.device,
        )

    def parts(self) -> dict[Value, int]:
        """Reductions to do in two steps, and in how many parts."""
        found: dict[Value, int] = {}
        for group in self.groups:
            if group.library is not None:
                continue
            parts = schedulers.split(self._problem(group))
            if parts > 1:
                members = group.outer or group.members
                found.update({member.node.out: parts for member in members})
        return found

    # -- results -------------------------------------------------------------

    def finish(self) -> SegmentedFusion:
        """The groups as segments, in an order in which each finds its inputs made."""
        order = self._order()
        names = {number: f"s{place}" for place, number in enumerate(order)}
        closed = {g.number: self._close(g) for g in self.groups}
        segments = [self._segment(self.groups[n], names[n], closed) for n in order]
        layouts = {out: buffer_strides(self.fusion, out) for s in segments for out in s.outputs}
        cuts = tuple(re.sub(r"@(\d+)", lambda m: names[int(m[1])], cut) for cut in self.cuts)
        results = tuple(self.buffers[o.value] for o in self.fusion.outputs)
        return SegmentedFusion(self.fusion, tuple(segments), results, layouts, cuts)

    def _order(self) -> list[int]:
        done: list[int] = []
        while len(done) < len(self.groups):
            ready = (
                g.number for g in self.groups if g.number not in done and g.needs.issubset(done)
            )
            done.append(next(ready))
        return done

    def _close(self, group: Group) -> Reach:
        """All that the group computes and loads, results of other groups among the loads."""
        stored = {v for v in self.maker.places if v not in group.places}
        stored |= self._worth_loading(group)
        return walk(self.fusion, group.starts(), group.places, stored)

    def _worth_loading(self, group: Group) -> set[Value]:
        """Results stored by kernels before this one, one for many of its elements."""
        before = [g for g in self.groups if self._reaches(group.needs, g.number)]
        size = extent(group.parallel) * extent(group.reduced)
        found = {s.value for g in before for s in g.stores}
        return {v for v in found if 8 * v.tensor.numel <= size}

    def _library_segment(self, node: Node, name: str) -> Segment:
        operands = tuple(self.buffers[v] for v in node.operands() if v.is_tensor)
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
        )

    def _segment(self, group: Group, name: str, closed: dict[int, Reach]) -> Segment:
        if group.library is not None:
            return self._library_segment(group.library, name)
        scheduler, params = schedulers.propose(self._problem(group))
        own = closed[group.number]
        place = {node.out: i for i, node in enumerate(self.fusion.nodes)}
        # Recording order is order of dependence: rows' and columns' reductions may alternate.
        members = tuple(sorted((*group.members, *group.outer), key=lambda m: place[m.node.out]))
        outside = {r.value for n, c in closed.items() if n != group.number for r in c.loads}
        outside |= {b.root for b in self.buffers.values()}
        stores = list(group.stores) + [
            Store(out, m.index) for m in members for out in m.node.outs if out in outside
        ]
        met = own.nodes | {m.node for m in members}
        nodes = tuple(n for n in self.fusion.nodes if n in met)
        traffic = self.maker.traffic(own.loads, stores)
        ordered = sorted(own.loads, key=lambda r: (not r.value.is_tensor, r.value.index))
        return Segment(
            name=name,
            scheduler=scheduler,
            nodes=nodes,
            inputs=tuple(dict.fromkeys(r.value for r in ordered)),
            outputs=tuple(s.value for s in stores),
            parallel=order_axes(group.parallel, traffic),
            reduced=group.reduced if group.scans else order_axes(group.reduced, traffic),
            chunked=group.chunked,
            crossing=_crossing(group, traffic),
            members=members,
            stores=tuple(stores),
            params=params,
            reason=_reason(group, len(nodes), len(stores)),
        )


def _reason(group: Group, ops: int, stores: int) -> str:
    over = f"{extent(group.parallel)} x {extent(group.reduced)}"
    parts = [f"{_count(ops, 'op')} over {over}", f"{_count(stores, 'result')} stored"]
    if group.depth > 1:
        parts.append(f"{group.depth} reductions that depend on one another")
    if group.outer:
        parts.append(f"{_count(len(group.outer), 'reduction')} over the rows")
    return ", ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


CROSSING_SHARE = 0.15
"""Share of the bytes that must lie along another axis for a kernel to use square tiles."""


def _crossing(group: Group, traffic: list[Traffic]) -> tuple[Axis, ...]:
    """The axis along which many bytes lie in memory that is not the kernel's fastest one."""
    if group.reduced or not group.parallel:
        return ()
    fastest = order_axes(group.parallel, traffic)[-1]
    found = fast_axes(traffic)
    total = sum(found.values())
    others = {a: n for a, n in found.items() if a != fastest and a.extent >= 8}
    best = max(others, key=lambda a: others[a], default=None)
    if best is None or others[best] < CROSSING_SHARE * total or fastest.extent < 8:
        return ()
    return (best,)


def _stream(item: Traffic, parallel: tuple[Axis, ...], reduced: tuple[Axis, ...]) -> Stream:
    return Stream(
        item_bytes=item.item_bytes,
        along_x=item.runs_along(parallel),
        along_r=item.runs_along(reduced),
        x_stride=item.steps.get(parallel[-1]) if parallel else 0,
        r_stride=item.steps.get(reduced[-1]) if reduced else 0,
        is_store=item.is_store,
    )
