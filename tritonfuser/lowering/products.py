"""Facts of matrix products in a fusion: sizes, what is fetched how, what is computed before."""

from __future__ import annotations

import re

from ..device import DeviceProperties
from ..dtypes import DataType
from ..heuristics import matmul
from ..heuristics.problem import Product, ceil_div
from ..ir import Fusion, Node, Value
from ..ops.builder import as_call
from ..ops.products import product_sizes
from ..ops.table import Pointwise, View
from .aliases import buffer_strides, resolve
from .moved import item_bytes

ALIGNMENT = 16
"""Bytes that starts and rows of what TMA moves are multiples of (CUDA driver API,
cuTensorMapEncodeTiled)."""

MOST_TIMES = 2
"""A prologue may be computed this often: once for each tile that its operand goes into."""


class ProductFacts:
    """Answers about the products of a fusion."""

    def __init__(
        self,
        fusion: Fusion,
        device: DeviceProperties,
        fuse_all: bool,
        misaligned: frozenset[Value],
    ) -> None:
        self.fusion = fusion
        self.device = device
        self.fuse_all = fuse_all
        self.misaligned = misaligned

    def product(self, node: Node) -> Product:
        """Sizes, and whether both operands can be fetched by descriptors."""
        call = as_call(node)
        left, right = call.value("arg1"), call.value("arg2")
        batch, m, n, k = product_sizes(call)
        fetched = batch == 1 and has_descriptors(self.device)
        return Product(
            batch=batch,
            m=m,
            n=n,
            k=k,
            item_bytes=max(item_bytes(left), item_bytes(right)),
            descriptors=fetched and self._in_rows(left) and self._in_rows(right),
            partial=call.attrs["dtype"] is DataType.Float,
        )

    def _in_rows(self, value: Value) -> bool:
        """Whether a matrix lies in memory as descriptors describe it."""
        if isinstance(self._maker(value), Pointwise):
            return False
        (place,) = resolve(self.fusion, [value])
        if place.root in self.misaligned:
            return False
        strides = place.memory.strides if place.memory else buffer_strides(self.fusion, place.root)
        rows = [s for s in strides[-2:] if s != 1]
        return len(rows) == 1 and rows[0] * item_bytes(value) % ALIGNMENT == 0

    def materialised(self, node: Node) -> list[Value]:
        """The operands that must be in memory before the product starts."""
        return [v for v in self._computed(node) if not self._takes_along(node, v)]

    def computed(self, node: Node) -> list[Value]:
        """The operands that are computed where they are read."""
        return [v for v in self._computed(node) if self._takes_along(node, v)]

    def _computed(self, node: Node) -> list[Value]:
        call = as_call(node)
        both = dict.fromkeys((call.value("arg1"), call.value("arg2")))
        return [v for v in both if self._maker(v) is not None]

    def _maker(self, value: Value) -> object:
        """The form of the op that computes a matrix, views aside; None where it is in memory."""
        while (node := self.fusion.producers.get(value)) is not None:
            form = as_call(node).op.form
            if not isinstance(form, View):
                return form if isinstance(form, Pointwise) else None
            value = next(v for v in node.operands() if v.is_tensor)
        return None

    def _takes_along(self, node: Node, value: Value) -> bool:
        call = as_call(node)
        product = self.product(node)
        block_m, block_n, *_ = matmul.tile(product, self.device)
        times = ceil_div(product.n, block_n)
        if value == call.value("arg2"):
            times = ceil_div(product.m, block_m)
        return self.fuse_all or times <= MOST_TIMES


def has_descriptors(device: DeviceProperties) -> bool:
    """Whether the device has a tensor memory accelerator: NVIDIA's from Hopper on."""
    found = re.fullmatch(r"sm_(\d+)", device.arch)
    return found is not None and int(found[1]) >= 90


def bytes_of(value: Value) -> int:
    return value.tensor.numel * item_bytes(value)
