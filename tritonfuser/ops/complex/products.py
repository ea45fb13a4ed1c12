"""Matrix products of complex numbers as one product of reals, twice as high and twice as wide.

``[re; im] @ [re | im]`` holds the four products of parts: what one complex product computes too.
"""

from __future__ import annotations

from typing import Any

from ...ir import Value
from .terms import Pair

_ROWS, _COLUMNS = -2, -1


def matmul(ops: Any, arg1: Pair, arg2: Pair) -> Pair:
    """A vector on the left is a row, one on the right a column."""
    product = ops.matmul(_stacked(ops, arg1, _ROWS), _stacked(ops, arg2, _COLUMNS))
    return _joined(ops, product, _length(arg1, _ROWS), _length(arg2, _COLUMNS))


def linear(ops: Any, arg1: Pair, arg2: Pair, bias: Pair | None) -> Pair:
    """As ``matmul`` with the weight's rows for columns; then the bias."""
    product = ops.linear(_stacked(ops, arg1, _ROWS), _stacked(ops, arg2, _ROWS))
    found = _joined(ops, product, _length(arg1, _ROWS), arg2.re.tensor.sizes[_ROWS])
    if bias is None:
        return found
    batched = arg2.re.tensor.rank > 2
    rows = arg1.re.tensor.rank - 1 if batched else 0
    parts = (_unsqueezed(ops, b, rows) if rows else b for b in (bias.re, bias.im))
    return Pair(*(ops.add(part, b) for part, b in zip((found.re, found.im), parts, strict=True)))


def _stacked(ops: Any, x: Pair, dim: int) -> Any:
    """Both parts, one behind the other along a dim; vectors get it first."""
    parts = [x.re, x.im]
    if x.re.tensor.rank == 1:
        parts = [ops.broadcast(part, [dim == _ROWS, dim == _COLUMNS]) for part in parts]
    return ops.cat(parts, dim)


def _length(x: Pair, dim: int) -> int | None:
    """The extent of the rows or columns; None for a vector, which has one and loses it."""
    return x.re.tensor.sizes[dim] if x.re.tensor.rank > 1 else None


def _joined(ops: Any, product: Value, rows: int | None, columns: int | None) -> Pair:
    """The four quarters as the two parts."""
    gone = [dim for dim, size in ((_ROWS, rows), (_COLUMNS, columns)) if size is None]
    height, width = (1 if size is None else size for size in (rows, columns))

    def quarter(i: int, j: int) -> Any:
        before = [0] * (product.tensor.rank - 2)
        ends = [*product.tensor.sizes[:-2], (i + 1) * height, (j + 1) * width]
        part = ops.slice(product, [*before, i * height, j * width], ends)
        return ops.squeeze(part, gone) if gone else part

    real = ops.sub(quarter(0, 0), quarter(1, 1))
    return Pair(real, ops.add(quarter(0, 1), quarter(1, 0)))


def _unsqueezed(ops: Any, bias: Value, rows: int) -> Any:
    """Dims for the rows of the input, before the last one."""
    last = bias.tensor.rank - 1
    return ops.broadcast(bias, [last <= place < last + rows for place in range(last + 1 + rows)])
