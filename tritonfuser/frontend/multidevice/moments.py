"""Mean and squared deviations over a dim that is cut, as two sums: of parts they add up."""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any

from ...dtypes import DataType
from ...ir import Fusion, Node, Value
from ...lowering.passes.decompose import expand
from ...ops.builder import as_call
from ...ops.forms import Moments
from ...ops.table import Call


def dims_of(node: Node) -> tuple[int, ...]:
    """The dims that a node has statistics over and sums could be taken of; else none."""
    call = as_call(node)
    if not isinstance(call.op.form, Moments):
        return ()
    arg = call.value("arg")
    sizes = [arg.tensor.sizes[dim] for dim in call.dims()]
    return tuple(call.dims()) if all(sizes) and arg.dtype in _WIDE else ()


_WIDE = {
    DataType.Double: DataType.Double,
    DataType.Float: DataType.Float,
    DataType.Half: DataType.Float,
    DataType.BFloat16: DataType.Float,
}
"""What sums of a dtype are taken in."""


def moments_as_sums(fusion: Fusion, chosen: Container[Value]) -> Fusion:
    """The fusion with some statistics, told by their first result, as sums.

    The deviations are from the mean of all parts, so nothing cancels.
    """

    def sums(node: Node) -> Any:
        return _sums if node.out in chosen and dims_of(node) else None

    return expand(fusion, sums)


def _sums(ops: Any, call: Call) -> tuple[Value, ...]:
    arg, dims = call.value("arg"), [*call.dims()]
    wide, sizes = _WIDE[arg.dtype], arg.tensor.sizes
    count = math.prod(sizes[dim] for dim in dims)
    kept = [size for dim, size in enumerate(sizes) if dim not in dims]
    x = arg if arg.dtype is wide else ops.cast(arg, wide)
    mean = ops.div(ops.sum(x, dims), float(count))
    apart = ops.sub(x, ops.broadcast(mean, [dim in dims for dim in range(len(sizes))]))
    squares = ops.sum(ops.mul(apart, apart), dims)
    if arg.dtype is not wide:
        mean, squares = ops.cast(mean, arg.dtype), ops.cast(squares, arg.dtype)
    return mean, squares, ops.full(kept, count, DataType.Int)
