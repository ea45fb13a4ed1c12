"""Fusion in, groups out: each reduction, product and result in the first kernel that takes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..device import DeviceProperties
from ..heuristics import schedulers
from ..heuristics.problem import Problem
from ..ir import Fusion, Node, Value
from .aliases import resolve
from .contract import is_product
from .grouping import EXTENTS, ROWS, Group, Seed, SeedMaker, extent, fit
from .problems import problem_of
from .products import ProductFacts
from .reach import Reach, ends_kernel, is_anchor, is_library, is_scatter, walk
from .rfactor import reduced_extents, splits_well
from .segments import Buffered


class Grouper:
    """One pass of grouping: each seed joins the first group that takes it, or starts one."""

    def __init__(
        self,
        fusion: Fusion,
        device: DeviceProperties,
        fuse_all: bool = False,
        misaligned: frozenset[Value] = frozenset(),
    ) -> None:
        self.fusion = fusion
        self.device = device
        self.maker = SeedMaker(fusion)
        self.facts = ProductFacts(fusion, device, fuse_all, misaligned)
        self.buffers = self._buffers()
        self.groups: list[Group] = []
        self.owner: dict[Value, int] = {}
        self.shared: dict[Value, set[int]] = {}
        self.cuts: dict[Value, str] = {}
        for item in self._ordered():
            if isinstance(item, Seed):
                self._place(item)
            elif is_scatter(item):
                self._place_scatter(item)
            elif is_product(item):
                self._place_product(item)
            else:
                self._place_library(item)
        # The largest first: smaller results ride along in their kernels.
        for value in sorted(self._stored(), key=lambda v: -v.tensor.numel):
            if value not in self.owner:
                self._place_store(value)

    def _buffers(self) -> dict[Value, Buffered]:
        """Where each value lies that must be in memory: outputs, and what torch is given."""
        values = [o.value for o in self.fusion.outputs]
        for node in self.fusion.nodes:
            if is_library(node):
                values += [v for v in node.operands() if v.is_tensor]
            elif is_product(node):
                values += self.facts.materialised(node)
        return dict(zip(values, resolve(self.fusion, values), strict=True))

    def _ordered(self) -> list[Seed | Node]:
        """Reductions, library calls and scatters by depth.

        Reductions along memory come before others: reductions over their rows join them.
        """
        depth = self.maker.depth
        found: list[tuple[int, int, Seed | Node]] = []
        for node in self.fusion.nodes:
            if ends_kernel(node) or is_product(node):
                found.append((depth[node.out], 2, node))
            elif is_anchor(node):
                seed = self.maker.anchor(node)
                found.append((depth[node.out], int(not self.maker.runs_inner(seed)), seed))
        return [item for _, _, item in sorted(found, key=lambda entry: entry[:2])]

    def _place_library(self, node: Node) -> None:
        """A library call ends a kernel: what it is given is stored before it."""
        roots = self._in_memory([v for v in node.operands() if v.is_tensor])
        group = Group(len(self.groups), (), (), needs=self.writers(roots), library=node)
        self.groups.append(group)
        self.owner.update(dict.fromkeys(node.outs, group.number))

    def _in_memory(self, values: Sequence[Value]) -> frozenset[Value]:
        """The buffers that values lie in, stored by some kernel if they are not yet."""
        roots = frozenset(self.buffers[v].root for v in values)
        for root in sorted(roots, key=lambda v: (-v.tensor.numel, self.maker.ranks[v])):
            if root not in self.owner and root not in self.fusion.inputs:
                self._place_store(root)
        return roots

    def writers(self, values: Iterable[Value]) -> frozenset[int]:
        """The groups that write values, all that write parts of them."""
        found = {self.owner[v] for v in values if v in self.owner}
        return frozenset(found.union(*(self.shared.get(v, ()) for v in values)))

    def _place_store(self, value: Value) -> None:
        """A value to be stored: its parts straight into place, where that takes no more kernels."""
        before = len(self.groups), list(self.groups), dict(self.owner), dict(self.cuts)
        parts = self.maker.parts(value)
        for seed in parts:
            self._place(seed)
            self.shared.setdefault(value, set()).add(self.owner[value])
        if parts and len(self.groups) - before[0] <= 1:
            return
        _, self.groups, self.owner, self.cuts = before
        self.shared.pop(value, None)
        self._place(self.maker.store(value))

    def _place_product(self, node: Node) -> None:
        """A matrix product starts a kernel, which what is computed from it may join."""
        roots = self._in_memory(self.facts.materialised(node))
        seed = self.maker.product(node, roots)
        group = Group(len(self.groups), seed.parallel, seed.reduced, stored=roots)
        needs = self.writers(roots) | self._needs(seed, group)
        self.groups.append(group)
        self._put(group.grown(seed, False, needs), seed)

    def _place_scatter(self, node: Node) -> None:
        """Two stores into one buffer: the copy, then in a later kernel what is put into it."""
        for seed in self.maker.scatter(node):
            self._place(seed)

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
            self.cuts[seed.value] = (
                f"{seed.value.name} starts @{group.number}; {'; '.join(refusals)}"
            )

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
        whole = self._written_here(seed, group)
        if whole:
            return f"it needs all of {whole[0]} in memory, which the kernel writes"
        needs = self._needs(seed, group)
        if self._reaches(needs, group.number):
            return "the kernels would depend on each other"
        grown = group.grown(seed, how == ROWS, needs)
        problem = self.problem(grown)
        refused = schedulers.reject_reason(problem)
        if refused is None and how == ROWS:
            assert seed.member is not None
            rows = reduced_extents(seed.member.node)
            if not splits_well(rows, schedulers.split(problem)):
                return f"{rows} rows cannot be shared out over programs"
        return refused or grown

    def _same_direction(self, seed: Seed, group: Group) -> bool:
        first = replace(seed, reduced=group.members[0].across, reach=self.close(group))
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

    def _written_here(self, seed: Seed, group: Group) -> list[str]:
        """The scattered values which the seed reads or writes over, and the group writes."""
        found = seed.reach.native | seed.reach.foreign
        mine = {v for v in found if self.owner.get(v) == group.number}
        return sorted(v.name for v in mine - group.places.keys())

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

    def problem(self, group: Group) -> Problem:
        """What schedulers are asked about a group."""
        return problem_of(group, self.maker, self.facts, self.device)

    def close(self, group: Group) -> Reach:
        """All that the group computes and loads, results of other groups among the loads."""
        stored = {v for v in self.maker.places if v not in group.places}
        stored |= self._worth_loading(group) | group.stored
        return walk(self.fusion, group.starts(), group.places, stored)

    def _worth_loading(self, group: Group) -> set[Value]:
        """Results stored by kernels before this one, one for many of its elements."""
        before = [g for g in self.groups if self._reaches(group.needs, g.number)]
        size = extent(group.parallel) * extent(group.reduced)
        numbers = {g.number for g in before}
        found = {s.value for g in before for s in g.stores}
        found = {v for v in found if self.shared.get(v, numbers) <= numbers}
        return {v for v in found if 8 * v.tensor.numel <= size}
