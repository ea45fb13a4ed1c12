"""Fusion in, the same Fusion with chosen matrix products written as ``mma`` out.

``linear(x, w, b)`` -> ``mma(x, permute(w), b)``: what remains is run by torch, between kernels.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from enum import Enum

from ...device import DeviceProperties
from ...dtypes import DataType
from ...errors import SchedulingError
from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, OpNamespace, as_call
from ...ops.table import Contraction, Library, View
from .combine_partials import rename
from .simplify import next_free


class Products(Enum):
    """Who computes matrix products."""

    AUTO = "auto"
    """A generated kernel where that is expected to be faster, else torch."""
    KERNELS = "kernels"
    """A generated kernel wherever there can be one."""
    NO_TORCH = "no torch"
    """A generated kernel, or an error."""


_DTYPES = frozenset({DataType.Half, DataType.BFloat16})
"""Tensor cores would round Float operands to TF32, which torch does not by default."""


def is_product(node: Node) -> bool:
    """Whether a node is a matrix product that a kernel of ours computes."""
    return isinstance(as_call(node).op.form, Contraction)


def candidates(fusion: Fusion, device: DeviceProperties, products: Products) -> frozenset[Value]:
    """The products to try as kernels, by their results.

    Raises
    ------
    SchedulingError
        torch may run none, and one cannot be a kernel.
    """
    found: set[Value] = set()
    for node in fusion.nodes:
        form = as_call(node).op.form
        if not isinstance(form, Library) or form.product is None:
            continue
        refused = _reject_reason(node, device)
        if refused is None and (products is not Products.AUTO or _may_win(fusion, node, device)):
            found.add(node.out)
        elif products is Products.NO_TORCH:
            error = SchedulingError(
                f"Can not find a scheduler to schedule fusion segment: {node.op}: {refused}",
                hint="Let torch run it: leave matmul_expr_eval out of _disable_options.",
            )
            raise error.located(node.loc)
    return frozenset(found)


def _reject_reason(node: Node, device: DeviceProperties) -> str | None:
    """None, or why no kernel of ours computes a product."""
    if node.out.dtype not in _DTYPES:
        return f"kernels multiply Half and BFloat16, got {node.out.dtype}"
    sizes = [size for value in (*node.operands(), node.out) for size in value.tensor.sizes]
    if 0 in sizes:
        return "it has no elements"
    if _expanded(node, GraphBuilder(1 << 30, 1 << 30)) is None:
        return "its ranks are not those of a product of two matrices, or of a batch of them"
    return None


def _may_win(fusion: Fusion, node: Node, device: DeviceProperties) -> bool:
    """Whether there is something on the way from or to memory that a kernel could take along."""
    if device.is_cpu:
        return False
    after = fusion.consumers.get(node.out, ())
    before = [fusion.producers.get(value) for value in node.operands()]
    near = [*after, *(made for made in before if made is not None)]
    return any(not isinstance(as_call(other).op.form, Library | View) for other in near) or any(
        isinstance(as_call(other).op.form, View) for other in after
    )


def _expanded(node: Node, builder: GraphBuilder) -> Value | None:
    call = as_call(node)
    assert isinstance(call.op.form, Library) and call.op.form.product is not None
    return call.op.form.product(OpNamespace(builder), *call.args)


@dataclass(frozen=True)
class Contracted:
    """A fusion with ``mma`` in it: ``products`` leads from their results to what they stand for."""

    fusion: Fusion
    products: dict[Value, Value]


def contract(fusion: Fusion, chosen: Container[Value]) -> Contracted:
    """The fusion with the products named by their results as ``mma``."""
    builder = GraphBuilder(*next_free(fusion))
    products: dict[Value, Value] = {}
    for node in fusion.nodes:
        if node.out not in chosen:
            builder.nodes.append(node)
            continue
        builder.loc = node.loc
        mark = len(builder.nodes)
        product = _expanded(node, builder)
        assert product is not None
        rename(builder, mark, {product: node.out})
        products.update({n.out: node.out for n in builder.nodes[mark:] if is_product(n)})
    return Contracted(Fusion(fusion.inputs, tuple(builder.nodes), fusion.outputs), products)
