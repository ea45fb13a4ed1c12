"""Problem facts of core ops, the ops that a kernel is built around (matrix products)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from ...device import DeviceProperties
from ...heuristics.problem import Core
from ...ir import Fusion, Node, Value
from ...ops.builder import op_of
from ...ops.forms import Contraction
from ...ops.table import Form
from ..access.traffic import Traffic
from ..groups.fusion_group import FusionGroup
from .product_facts import ProductFacts


class FactsOfForm(Protocol):
    """Answers about the ops of one lowering form."""

    def materialised(self, node: Node) -> list[Value]:
        """The operands that must be in memory before the op starts."""

    def computed(self, node: Node) -> list[Value]:
        """The operands that its kernel computes where they are read."""

    def core(self, group: FusionGroup, node: Node, traffic: list[Traffic]) -> Core:
        """What schedulers are told of the op and of what is fused with it."""


class CoreFacts:
    """Answers about the ops of a fusion that kernels are built around.

    Attributes
    ----------
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes.

    Parameters
    ----------
    fusion : Fusion
        The fusion.
    device : DeviceProperties
        The device to schedule for.
    fuse_all : bool
        All that can be in such a kernel is, whatever that costs.
    loads : mapping of str to collection of str, optional
        By the name of each op: the operands that its kernel loads, where a schedule says so.
    """

    def __init__(
        self,
        fusion: Fusion,
        device: DeviceProperties,
        fuse_all: bool,
        misaligned: frozenset[Value],
        loads: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.misaligned = misaligned
        self._by_form: dict[type[Form], FactsOfForm] = {
            Contraction: ProductFacts(fusion, device, fuse_all, misaligned, loads)
        }

    def materialised(self, node: Node) -> list[Value]:
        """The operands that must be in memory before an op starts."""
        return self.of(node).materialised(node)

    def computed(self, node: Node) -> list[Value]:
        """The operands that its kernel computes where they are read."""
        return self.of(node).computed(node)

    def core(self, group: FusionGroup, traffic: list[Traffic]) -> Core | None:
        """What schedulers are told of the op that a group is built around, if it is."""
        return None if group.core is None else self.of(group.core).core(group, group.core, traffic)

    def of(self, node: Node) -> FactsOfForm:
        """The facts of ops with the lowering form of ``node``."""
        return self._by_form[type(op_of(node).form)]
