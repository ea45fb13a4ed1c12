"""Fusion in, groups out: each reduction, product and result in the first kernel that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from ...device import DeviceProperties
from ...heuristics import schedulers
from ...heuristics.problem import Problem
from ...ir import Fusion, Node, Value
from ...symbolic.sizes import hint
from ..access.aliases import Buffered, resolve
from ..access.read_footprint import Reach, ends_kernel, is_anchor, is_kept, is_library, is_scatter
from ..passes.contractions_to_mma import is_product
from ..passes.split_reduction import reduced_extents, splits_well
from .fits import EXTENTS, ROWS, TOGETHER, fit, together
from .grouping import Group, Seed
from .groups import Groups, InMemory
from .problems import problem_of
from .product_facts import ProductFacts
from .seed_maker import SeedMaker

MOST_REASONS = 8
"""Kernels of which the reason of a cut says why they do not take the value in."""

CIRCLE = "the kernels would depend on each other"


class Grouper:
    """One pass of grouping: each seed joins the first group that takes it, or starts one."""

    def __init__(
        self,
        fusion: Fusion,
        device: DeviceProperties,
        fuse_all: bool = False,
        misaligned: frozenset[Value] = frozenset(),
        together: frozenset[Value] = frozenset(),
    ) -> None:
        self.fusion = fusion
        self.together = together
        self.device = device
        self.maker = SeedMaker(fusion)
        self.facts = ProductFacts(fusion, device, fuse_all, misaligned)
        self.buffers = self._buffers()
        self.made = Groups()
        self.cuts: dict[Value, str] = {}
        for item in self._ordered():
            if isinstance(item, Seed):
                self._place(item)
            elif is_kept(item):
                self._place(self.maker.kept(item))
            elif is_scatter(item):
                self._place_scatter(item)
            elif is_product(item):
                self._place_product(item)
            else:
                self._place_library(item)
        # The largest first: smaller results ride along in their kernels.
        for value in sorted(self._stored(), key=lambda v: -hint(v.tensor.numel)):
            if value not in self.made.owner:
                self._place_store(value)

    @property
    def groups(self) -> list[Group]:
        """The kernels, and what torch runs, by number."""
        return self.made.listed

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
        group = Group(len(self.made), (), (), needs=self.made.writing(roots), library=node)
        self.made.start(group)
        self.made.owner.update(dict.fromkeys(node.outs, group.number))

    def _in_memory(self, values: Sequence[Value]) -> frozenset[Value]:
        """The buffers that values lie in, stored by some kernel if they are not yet."""
        roots = frozenset(self.buffers[v].root for v in values)
        for root in sorted(roots, key=lambda v: (-hint(v.tensor.numel), self.maker.ranks[v])):
            if root not in self.made.owner and root not in self.fusion.given:
                self._place_store(root)
        return roots

    def _place_store(self, value: Value) -> None:
        """A value to be stored: its parts straight into place, where that takes no more kernels."""
        parts = self.maker.parts(value)
        if not parts or not self._place_parts(parts):
            self._place(self.maker.store(value))

    def _place_parts(self, parts: Sequence[Seed]) -> bool:
        before = self.made.copy(), {**self.cuts}
        for seed in parts:
            self._place(seed)
        if len(self.made) - len(before[0]) <= 1:
            return True
        self.made, self.cuts = before
        return False

    def _place_product(self, node: Node) -> None:
        """A matrix product starts a kernel, which what is computed from it may join."""
        roots = self._in_memory(self.facts.materialised(node))
        seed = self.maker.product(node, roots)
        group = Group(len(self.made), seed.parallel, seed.reduced, stored=roots)
        self._start(group, seed, self.made.writing(roots))

    def _place_scatter(self, node: Node) -> None:
        """Two stores into one buffer: the copy, then in a later kernel what is put into it."""
        for seed in self.maker.scatter(node):
            self._place(seed)

    def _stored(self) -> list[Value]:
        """Values that outputs lie in and that are no inputs, each once."""
        roots = dict.fromkeys(b.root for b in self.buffers.values())
        return [v for v in roots if v not in self.fusion.given]

    # -- joining -------------------------------------------------------------

    def _place(self, seed: Seed) -> None:
        refusals: dict[int, str] = {}
        for group in self.made.candidates(seed, self.made.possible(seed)):
            outcome = self._joined(seed, group)
            if isinstance(outcome, Group):
                self.made.put(outcome, seed)
                return
            refusals[group.number] = outcome
        self._cut(seed, refusals)
        self._start(Group(len(self.made), seed.parallel, seed.reduced), seed)

    def _start(self, group: Group, seed: Seed, needs: frozenset[int] = frozenset()) -> None:
        """A new group with a seed in it."""
        self.made.start(group)
        self.made.put(group.grown(seed, False, needs | self._needs(seed, group)), seed)

    def _cut(self, seed: Seed, refusals: dict[int, str]) -> None:
        """Keep why no kernel takes a seed in: of the first of many, those that it reads from."""
        kernels = self.made.kernels
        reasons: list[str] = []
        for group in islice(self.made.candidates(seed, kernels), MOST_REASONS):
            why = refusals.get(group.number) or self._refusal(seed, group)
            reasons.append(f"not in @{group.number}: {why}")
        if not reasons:
            return
        left = kernels.bit_count() - len(reasons)
        if left:
            reasons.append(f"nor in {left} more")
        name = seed.value.name
        self.cuts[seed.value] = f"{name} starts @{len(self.made)}; {'; '.join(reasons)}"

    def _refusal(self, seed: Seed, group: Group) -> str:
        """Why a seed is not in a kernel that it was not offered to: one before what it reads."""
        outcome = self._joined(seed, group)
        return CIRCLE if isinstance(outcome, Group) else outcome

    def _joined(self, seed: Seed, group: Group) -> Group | str:
        """The group with the seed in it, or why it stays out."""
        how = fit(seed, group)
        if how is None and seed.value in self.together:
            how = together(seed, group)
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
        inside = self._elsewhere(seed, group, how)
        if inside:
            return f"it reads {inside[0]} at another index than where the kernel computes it"
        whole = self._written_here(seed, group)
        if whole:
            return f"it needs all of {whole[0]} in memory, which the kernel writes"
        needs = self._needs(seed, group)
        if self.made.up_to(needs) >> group.number & 1:
            return CIRCLE
        grown = group.grown(seed, how == ROWS, needs)
        if how == TOGETHER:
            grown = replace(grown, together=seed.reduced)
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

    def _elsewhere(self, seed: Seed, group: Group, how: str) -> list[str]:
        """Results of the kernel that the seed reads, but not where the kernel computes them.

        A seed that is not moved to the kernel's axes knows nothing of results that were.
        """
        found = seed.reach.foreign
        if how != EXTENTS:
            home = self.maker.places
            found = found.union(v for v in seed.reach.native if group.places.get(v) != home[v])
        return [v.name for v in found if v in group.places]

    def _needs(self, seed: Seed, group: Group) -> frozenset[int]:
        """The other groups whose results the seed reads."""
        return self.made.owners(seed) - {group.number}

    def _written_here(self, seed: Seed, group: Group) -> list[str]:
        """The scattered values which the seed reads or writes over, and the group writes."""
        found = seed.reach.native | seed.reach.foreign
        mine = {v for v in found if self.made.owner.get(v) == group.number}
        return sorted(v.name for v in mine - group.places.keys())

    # -- facts ---------------------------------------------------------------

    def problem(self, group: Group) -> Problem:
        """What schedulers are asked about a group."""
        return problem_of(group, self.maker, self.facts, self.device)

    def close(self, group: Group) -> Reach:
        """All that the group computes and loads, results of other groups among the loads."""
        size = group.loops.row_extent * group.loops.inner_extent
        stored = InMemory(self.made, group, self.maker.places, size)
        return self.maker.walk(group.starts(), group.places, stored)
