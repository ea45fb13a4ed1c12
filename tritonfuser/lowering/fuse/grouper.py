"""Fusion in, groups out: each reduction, product and result in the first kernel that takes it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ...device import DeviceProperties
from ...heuristics.problem import Problem
from ...ir import Fusion, Node, Value
from ...symbolic.sizes import hint
from ..access.aliases import BufferView, resolve
from ..access.read_footprint import (
    ends_kernel,
    is_library,
    is_materialize,
    is_reducer,
    is_scatter,
)
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker
from ..groups.fusion_group import FusionGroup
from ..groups.group_graph import GroupGraph
from ..legality.kernel import CIRCLE
from ..passes.contract_to_mma import is_product
from .joining import Joining
from .product_facts import ProductFacts

MOST_REASONS = 8
"""The reason of a cut says of this many kernels at most why they do not take the value in."""


class Grouper:
    """Groups a fusion: each anchor joins the first group that takes it, or starts one.

    Attributes
    ----------
    fusion : Fusion
        Simplified and concrete.
    device : DeviceProperties
        The device to schedule for.
    maker : AnchorMaker
        Of the fusion.
    facts : ProductFacts
        Of its matrix products.
    joining : Joining
        Decides whether an anchor joins a group.
    buffers : dict of Value to BufferView
        Where outputs and operands of torch's ops lie in memory.
    graph : GroupGraph
        The groups.
    cuts : dict of Value to str
        The value that started a kernel, and why the kernels before took it not in. ``@0`` stands
        for the kernel of group 0.
    """

    def __init__(
        self,
        fusion: Fusion,
        device: DeviceProperties,
        fuse_all: bool = False,
        misaligned: frozenset[Value] = frozenset(),
        co_reduced: frozenset[Value] = frozenset(),
    ) -> None:
        self.fusion = fusion
        self.device = device
        self.maker = AnchorMaker(fusion)
        self.facts = ProductFacts(fusion, device, fuse_all, misaligned)
        self.buffers = self._buffers()
        self.joining = Joining(self.maker, self.facts, device, co_reduced)
        self.graph = GroupGraph()
        self.cuts: dict[Value, str] = {}
        for item in self._ordered():
            if isinstance(item, Anchor):
                self._place(item)
            elif is_materialize(item):
                self._place(self.maker.materialized(item))
            elif is_scatter(item):
                self._place_scatter(item)
            elif is_product(item):
                self._place_product(item)
            else:
                self._place_library(item)
        # The largest first: smaller results ride along in their kernels.
        for value in sorted(self._stored(), key=lambda v: -hint(v.tensor.numel)):
            if value not in self.graph.owner:
                self._place_store(value)

    @property
    def groups(self) -> list[FusionGroup]:
        """The kernels, and what torch runs, by number."""
        return self.graph.listed

    def _buffers(self) -> dict[Value, BufferView]:
        """Where values lie that must be in memory: outputs, and operands of torch's ops."""
        values = [o.value for o in self.fusion.outputs]
        for node in self.fusion.nodes:
            if is_library(node):
                values += [v for v in node.operands() if v.is_tensor]
            elif is_product(node):
                values += self.facts.materialised(node)
        return dict(zip(values, resolve(self.fusion, values), strict=True))

    def _ordered(self) -> list[Anchor | Node]:
        """Reductions, library calls and scatters by depth.

        At a depth, reductions along contiguous memory come first. Reductions over their rows can
        join them then.
        """
        depth = self.maker.depth
        found: list[tuple[int, int, Anchor | Node]] = []
        for node in self.fusion.nodes:
            if ends_kernel(node) or is_product(node):
                found.append((depth[node.out], 2, node))
            elif is_reducer(node):
                anchor = self.maker.reducer(node)
                found.append((depth[node.out], int(not self.maker.runs_inner(anchor)), anchor))
        return [item for _, _, item in sorted(found, key=lambda entry: entry[:2])]

    def _place_library(self, node: Node) -> None:
        """A library call ends a kernel: its operands are stored before it."""
        roots = self._in_memory([v for v in node.operands() if v.is_tensor])
        group = FusionGroup(len(self.graph), (), (), needs=self.graph.writing(roots), library=node)
        self.graph.start(group)
        self.graph.owner.update(dict.fromkeys(node.outs, group.number))

    def _in_memory(self, values: Sequence[Value]) -> frozenset[Value]:
        """The buffers that values lie in. Those that no kernel stores yet are placed."""
        roots = frozenset(self.buffers[v].root for v in values)
        for root in sorted(roots, key=lambda v: (-hint(v.tensor.numel), self.maker.ranks[v])):
            if root not in self.graph.owner and root not in self.fusion.given:
                self._place_store(root)
        return roots

    def _place_store(self, value: Value) -> None:
        """Place a stored value. Its parts are stored apart where that takes one kernel at most."""
        parts = self.maker.parts(value)
        if not parts or not self._place_parts(parts):
            self._place(self.maker.store(value))

    def _place_parts(self, parts: Sequence[Anchor]) -> bool:
        before = self.graph.copy(), {**self.cuts}
        for anchor in parts:
            self._place(anchor)
        if len(self.graph) - len(before[0]) <= 1:
            return True
        self.graph, self.cuts = before
        return False

    def _place_product(self, node: Node) -> None:
        """A matrix product starts a kernel. What is computed from it may join as its epilogue."""
        roots = self._in_memory(self.facts.materialised(node))
        anchor = self.maker.product(node, roots)
        group = FusionGroup(len(self.graph), anchor.parallel, anchor.reduced, stored=roots)
        self._start(group, anchor, self.graph.writing(roots))

    def _place_scatter(self, node: Node) -> None:
        """Two stores into one buffer: the copy, then in a later kernel what is put into it."""
        for anchor in self.maker.scatter(node):
            self._place(anchor)

    def _stored(self) -> list[Value]:
        """The buffers to be stored that are no inputs, each once."""
        roots = dict.fromkeys(b.root for b in self.buffers.values())
        return [v for v in roots if v not in self.fusion.given]

    # -- joining -------------------------------------------------------------

    def _place(self, anchor: Anchor) -> None:
        refusals: dict[int, str] = {}
        for group in self.graph.candidates(anchor, self.graph.possible(anchor)):
            outcome = self.joining.joined(anchor, group, self.graph)
            if isinstance(outcome, FusionGroup):
                self.graph.put(outcome, anchor)
                return
            refusals[group.number] = outcome
        self._cut(anchor, refusals)
        self._start(FusionGroup(len(self.graph), anchor.parallel, anchor.reduced), anchor)

    def _start(
        self, group: FusionGroup, anchor: Anchor, needs: frozenset[int] = frozenset()
    ) -> None:
        """A new group with an anchor in it."""
        self.graph.start(group)
        needs |= self.graph.needs(anchor, group)
        self.graph.put(group.grown(anchor, False, needs), anchor)

    def _cut(self, anchor: Anchor, refusals: dict[int, str]) -> None:
        """Record why no kernel takes an anchor in. Kernels that it reads from are named first."""
        kernels = self.graph.kernels
        reasons: list[str] = []
        for group in islice(self.graph.candidates(anchor, kernels), MOST_REASONS):
            why = refusals.get(group.number) or self._refusal(anchor, group)
            reasons.append(f"not in @{group.number}: {why}")
        if not reasons:
            return
        left = kernels.bit_count() - len(reasons)
        if left:
            reasons.append(f"nor in {left} more")
        name = anchor.value.name
        self.cuts[anchor.value] = f"{name} starts @{len(self.graph)}; {'; '.join(reasons)}"

    def _refusal(self, anchor: Anchor, group: FusionGroup) -> str:
        """Why a kernel does not take an anchor in that runs before what the anchor reads."""
        outcome = self.joining.joined(anchor, group, self.graph)
        return CIRCLE if isinstance(outcome, FusionGroup) else outcome

    def problem(self, group: FusionGroup) -> Problem:
        """What schedulers are asked about a group."""
        return self.joining.problem(group)
