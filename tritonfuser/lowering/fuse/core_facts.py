"""Facts of core ops, the ops that kernels are built around, by their lowering form.

There is one such form so far: ``ProductFacts`` answers for matrix products.
"""

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

    def materialized_operands(self, node: Node) -> list[Value]:
        """The operands that must be in memory before the op starts."""

    def prologue_operands(self, node: Node) -> list[Value]:
        """The operands that its kernel computes where it reads them, in a prologue."""

    def core(self, group: FusionGroup, node: Node, traffic: list[Traffic]) -> Core:
        """What schedulers are told of the op and of what is fused with it."""


class CoreFacts:
    """Answers about the core ops of a fusion.

    Parameters
    ----------
    fusion : Fusion
        The fusion.
    device : DeviceProperties
        The device to schedule for.
    fuse_all : bool
        Whether all that can be in such a kernel is, whatever that costs.
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes; an attribute too.
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

    def materialized_operands(self, node: Node) -> list[Value]:
        """The operands that must be in memory before an op starts."""
        return self.of(node).materialized_operands(node)

    def prologue_operands(self, node: Node) -> list[Value]:
        """The operands that its kernel computes where it reads them, in a prologue."""
        return self.of(node).prologue_operands(node)

    def core(self, group: FusionGroup, traffic: list[Traffic]) -> Core | None:
        """What schedulers are told of the op that a group is built around, if it is."""
        return None if group.core is None else self.of(group.core).core(group, group.core, traffic)

    def of(self, node: Node) -> FactsOfForm:
        """The facts of ops with the lowering form of ``node``."""
        return self._by_form[type(op_of(node).form)]
