"""Facts of a fusion's matrix products: sizes, how operands are fetched, and their prologues."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property

from ...device import DeviceProperties
from ...dtypes import DataType
from ...heuristics import matmul
from ...heuristics.integers import ceil_div
from ...heuristics.product import Product
from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.forms import Pointwise
from ...ops.mma import product_sizes
from ...ops.table import View
from ...symbolic.index_expr import Affine
from ...symbolic.queries import assume_constant, assume_equal, assume_multiple
from ...symbolic.sizes import hint
from ..access.aliases import buffer_strides, resolve
from ..access.node_kinds import is_library
from ..access.traffic import Traffic
from ..groups.fusion_group import FusionGroup
from ..groups.product_core import reduced_columns
from ..tile.descriptors import ALIGNMENT, has_descriptors

MOST_PROLOGUES = 2
"""Most times that a prologue is computed: each tile that reads its operand computes it again."""


class ProductFacts:
    """Answers about the matrix products of a fusion.

    Attributes
    ----------
    fusion : Fusion
        The fusion.
    device : DeviceProperties
        The device to schedule for.
    fuse_all : bool
        Prologues are fused whatever they cost.
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes.
    loads : mapping of str to collection of str, optional
        By the name of each product: the operands that its kernel loads, where a schedule says so.
    """

    def __init__(
        self,
        fusion: Fusion,
        device: DeviceProperties,
        fuse_all: bool,
        misaligned: frozenset[Value],
        loads: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.fusion = fusion
        self.device = device
        self.fuse_all = fuse_all
        self.misaligned = misaligned
        self.loads = loads

    def product(self, node: Node) -> Product:
        """Sizes, and whether both operands can be fetched by descriptors."""
        call = as_call(node)
        found = self._sizes(node)
        may_fetch = found.batch == 1 and has_descriptors(self.device)
        operands = (call.value("arg1"), call.value("arg2"))
        fetches = may_fetch and all(self._fits_descriptor(node, value) for value in operands)
        return replace(found, descriptors=fetches)

    def core(self, group: FusionGroup, node: Node, traffic: list[Traffic]) -> Product:
        """What schedulers are told of a product, and of what its kernel fuses with it."""
        whole = [t for t in traffic if t.axes >= frozenset(group.parallel)]
        found = self.product(node)
        *_, row, column = group.members[0].index
        batch, m, _, _ = product_sizes(as_call(node))
        return replace(
            found,
            batch=1 if found.batch == 1 else batch,
            m=m,
            left_bytes=max(found.left_bytes, _operand_bytes(group, row, traffic)),
            right_bytes=max(found.right_bytes, _operand_bytes(group, column, traffic)),
            reduced_columns=assume_constant(reduced_columns(group)),
            epilogue_bytes=sum(item.item_bytes for item in whole),
            epilogue_draws_random=group.draws_random,
        )

    def _sizes(self, node: Node) -> Product:
        """The product as its shapes and dtypes say, without what is fused."""
        call = as_call(node)
        left, right = call.value("arg1"), call.value("arg2")
        batch, m, n, k = product_sizes(call)
        # Kernels have masks along the rows; along the columns and K they count on the sizes.
        return Product(
            batch=1 if assume_equal(batch, 1) else hint(batch),
            m=hint(m),
            n=assume_constant(n),
            k=assume_constant(k),
            left_bytes=left.dtype.info.bytes,
            right_bytes=right.dtype.info.bytes,
            is_k_part=call.attrs["dtype"] is DataType.Float,
        )

    def _fits_descriptor(self, node: Node, value: Value) -> bool:
        """Whether a matrix is in memory when the product starts, as descriptors describe it."""
        (place,) = resolve(self.fusion, [value])
        computed = self._elementwise_results(value) and self._has_prologue(node, value)
        if place.root in self.misaligned or computed or self._is_view(place.root):
            return False
        strides = place.memory.strides if place.memory else buffer_strides(self.fusion, place.root)
        rows = [s for s in strides[-2:] if not assume_equal(s, 1)]
        return len(rows) == 1 and assume_multiple(rows[0] * value.dtype.info.bytes, ALIGNMENT)

    def materialized_operands(self, node: Node) -> list[Value]:
        """The operands that must be in memory before the product starts."""
        return [v for v in self._elementwise_operands(node) if not self._has_prologue(node, v)]

    def prologue_operands(self, node: Node) -> list[Value]:
        """The operands that a prologue computes where they are read."""
        return [v for v in self._elementwise_operands(node) if self._has_prologue(node, v)]

    def _elementwise_operands(self, node: Node) -> list[Value]:
        """The operands that elementwise ops make; others are in memory anyway."""
        call = as_call(node)
        both = dict.fromkeys((call.value("arg1"), call.value("arg2")))
        return [v for v in both if self._elementwise_results(v)]

    def _elementwise_results(self, value: Value) -> frozenset[Value]:
        """The elementwise results that a matrix is a view of. Empty where it is in memory."""
        found: set[Value] = set()
        stack = [value]
        while stack:
            value = stack.pop()
            node = self.fusion.producers.get(value)
            if node is not None and self._is_view(value):
                stack.extend(v for v in node.operands() if v.is_tensor and v.dtype is value.dtype)
            elif node is not None and isinstance(as_call(node).op.form, Pointwise):
                found.add(value)
        return frozenset(found)

    def _is_view(self, value: Value) -> bool:
        node = self.fusion.producers.get(value)
        return node is not None and isinstance(as_call(node).op.form, View)

    @cached_property
    def _in_memory_anyway(self) -> frozenset[Value]:
        """The buffers that are in memory whoever computes the products."""
        values = [out.value for out in self.fusion.outputs]
        for node in filter(is_library, self.fusion.nodes):
            values += [v for v in node.operands() if v.is_tensor]
        return frozenset(place.root for place in resolve(self.fusion, values))

    def _has_prologue(self, node: Node, value: Value) -> bool:
        """Whether the kernel computes an operand: a schedule says so, or few tiles read it."""
        if self.loads is not None:
            (place,) = resolve(self.fusion, [value])
            return place.root.name not in self.loads.get(node.out.name, ())
        if not self.fuse_all and self._elementwise_results(value) <= self._in_memory_anyway:
            return False
        call = as_call(node)
        product = self._sizes(node)
        block_m, block_n, *_ = matmul.tile(product, self.device)
        times = ceil_div(product.n, block_n)
        if value == call.value("arg2"):
            times = ceil_div(product.m, block_m)
        return self.fuse_all or times <= MOST_PROLOGUES


def _operand_bytes(group: FusionGroup, side: Affine, traffic: list[Traffic]) -> int:
    """Bytes that a product's kernel loads for each element of the operand on one side."""
    along = [t for t in traffic if not t.axes.isdisjoint(group.reduced)]
    return sum(t.item_bytes for t in along if not t.axes.isdisjoint(side.axes()))
