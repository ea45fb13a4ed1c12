"""Fusion in, the same Fusion with chosen matrix products written as ``mma`` out.

``linear(x, w, b)`` -> ``mma(x, permute(w), b)``. Torch runs the others, between kernels.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from ...device import DeviceProperties
from ...dtypes import DataType
from ...errors import SchedulingError
from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, OpNamespace, as_call, op_of
from ...ops.forms import Contraction
from ...ops.table import Library, View
from ...symbolic.queries import assume_empty
from ..product_policy import ProductPolicy
from .substitution import next_free, renumber

_DTYPES = frozenset({DataType.Half, DataType.BFloat16})
"""Dtypes that kernels multiply. Tensor cores would round Float to TF32, torch by default not."""


def is_product(node: Node) -> bool:
    """Whether a node is a matrix product that a generated kernel computes."""
    return isinstance(op_of(node).form, Contraction)


def candidates(
    fusion: Fusion, device: DeviceProperties, products: ProductPolicy
) -> frozenset[Value]:
    """The results of the products to try as generated kernels.

    Raises
    ------
    SchedulingError
        Torch may run no product, and one cannot be a generated kernel.
    """
    found: set[Value] = set()
    for node in fusion.nodes:
        form = op_of(node).form
        if not isinstance(form, Library) or form.product is None:
            continue
        refused = _reject_reason(node, device)
        if refused is None and (
            products is not ProductPolicy.AUTO or _can_fuse(fusion, node, device)
        ):
            found.add(node.out)
        elif products is ProductPolicy.NO_TORCH:
            error = SchedulingError(
                f"Can not find a scheduler to schedule fusion segment: {node.op}: {refused}",
                hint="Let torch run it: leave matmul_expr_eval out of _disable_options.",
            )
            raise error.located(node.loc)
    return frozenset(found)


def _reject_reason(node: Node, device: DeviceProperties) -> str | None:
    """Why no generated kernel can compute a product; None where one can."""
    if node.out.dtype not in _DTYPES:
        return f"kernels multiply Half and BFloat16, got {node.out.dtype}"
    sizes = [size for value in (*node.operands(), node.out) for size in value.tensor.sizes]
    if assume_empty(sizes):
        return "it has no elements"
    if _as_mma(node, GraphBuilder(1 << 30, 1 << 30)) is None:
        return "its ranks are not those of a product of two matrices, or of a batch of them"
    return None


def _can_fuse(fusion: Fusion, node: Node, device: DeviceProperties) -> bool:
    """Whether a kernel could fuse a prologue or an epilogue with a product."""
    if device.is_cpu:
        return False
    after = fusion.consumers.get(node.out, ())
    before = [fusion.producers.get(value) for value in node.operands()]
    near = [*after, *(made for made in before if made is not None)]
    return any(not isinstance(op_of(other).form, Library | View) for other in near) or any(
        isinstance(op_of(other).form, View) for other in after
    )


def _as_mma(node: Node, builder: GraphBuilder) -> Value | None:
    """Record a product as views and ``mma``; None where its ranks have no such form."""
    call = as_call(node)
    assert isinstance(call.op.form, Library) and call.op.form.product is not None
    return call.op.form.product(OpNamespace(builder), *call.args)


@dataclass(frozen=True)
class Contracted:
    """A fusion with ``mma`` nodes.

    Attributes
    ----------
    fusion : Fusion
        The rewritten fusion.
    products : dict
        The result of each ``mma`` -> the result of the library op that it comes from.
    """

    fusion: Fusion
    products: dict[Value, Value]


def contract_to_mma(fusion: Fusion, chosen: Container[Value]) -> Contracted:
    """The fusion with the chosen products, given by their results, as ``mma``."""
    builder = GraphBuilder(*next_free(fusion))
    products: dict[Value, Value] = {}
    for node in fusion.nodes:
        if node.out not in chosen:
            builder.nodes.append(node)
            continue
        builder.loc = node.loc
        mark = len(builder.nodes)
        product = _as_mma(node, builder)
        assert product is not None
        renumber(builder, {product: node.out})
        products.update({n.out: node.out for n in builder.nodes[mark:] if is_product(n)})
    return Contracted(Fusion(fusion.inputs, tuple(builder.nodes), fusion.outputs), products)
