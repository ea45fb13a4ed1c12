"""Which dims of the library ops run together: rules of the ``axes`` column."""

from __future__ import annotations

from ...ir import Const, TensorType, Value
from ..shape_rules import int_attr
from ..table import Axes, Call

Names = tuple[str, ...]


def matmul(call: Call) -> Axes:
    """``[*batch, m, k] x [*batch, k, n] -> [*batch, m, n]``; 1-D operands have no m, no n."""
    left, right = call.value("arg1").tensor, call.value("arg2").tensor
    batch = max(left.rank, right.rank, 2) - 2
    padded = [_batch(tensor.sizes, batch) for tensor in (left, right)]
    sizes = tuple(map(max, *padded))

    def names(own: tuple[int, ...], rank: int) -> Names:
        found = tuple(f"b{p}" if n == sizes[p] else "" for p, n in enumerate(own))
        return found[batch - max(rank - 2, 0) :]

    m, n = ("m",) * (left.rank > 1), ("n",) * (right.rank > 1)
    operands = (
        (*names(padded[0], left.rank), *m, "k"),
        (*names(padded[1], right.rank), "k", *n),
    )
    result = (*names(sizes, batch + 2), *m, *n)
    return Axes(operands, (result,), frozenset({"k"}))


def _batch(sizes: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The batch extents, filled with leading ones."""
    own = sizes[:-2]
    return (1,) * (count - len(own)) + own


def linear(call: Call) -> Axes:
    """``[*rows, k] x [*batch, n, k] + [n] -> [*batch, *rows, n]``; the bias counts once."""
    left, weight = call.value("arg1").tensor, call.value("arg2").tensor
    rows = tuple(f"r{place}" for place in range(left.rank - 1))
    batch = tuple(f"b{place}" for place in range(weight.rank - 2))
    operands = [(*rows, "k"), (*batch, "n", "k")]
    bias = call.arg("bias")
    if isinstance(bias, Value):
        sizes = zip(batch[::-1], weight.sizes[-3::-1], bias.tensor.sizes[-2::-1], strict=False)
        stacked = tuple(name if size == own else "" for name, size, own in sizes)[::-1]
        operands.append((*("",) * (bias.tensor.rank - 1 - len(stacked)), *stacked, "n"))
    return Axes(tuple(operands), ((*batch, *rows, "n"),), frozenset({"k"}), frozenset({2}))


def along(call: Call) -> Axes:
    """Every line along ``dim`` by itself: a sort."""
    place, rank = int_attr(call, "dim"), call.value("arg").tensor.rank
    names = tuple("" if d == place else f"d{d}" for d in range(rank))
    return Axes((names,), (names,) * len(call.op.infer(call)))


def attention(call: Call) -> Axes:
    """Every head by itself; all needed whole where a dropout draws over them in order."""
    dropout = call.arg("dropout_p")
    alone = dropout is None or (isinstance(dropout, Const) and dropout.value == 0)
    sizes = call.value("query").tensor.sizes[:-2]
    heads = tuple(f"h{place}" if alone else "" for place in range(len(sizes)))

    def names(shape: tuple[int, ...], first: int = 0) -> Names:
        """``first`` is the head dim that the shape begins with; seeds have none."""
        if len(shape) + first <= len(heads):
            return ("",) * len(shape)
        own = zip(heads[first:], sizes[first:], shape, strict=False)
        found = tuple(name if mine == size else "" for name, size, mine in own)
        return (*found, *("",) * (len(shape) - len(found)))

    operands: list[Names] = []
    kinds = [param for param in call.op.params if param.kind.is_operand]
    for param, arg in zip(kinds, call.args, strict=True):
        if isinstance(arg, Value) and arg.is_tensor:
            # What is added to the scores may lack the first dims.
            missing = len(sizes) + 2 - arg.tensor.rank if param.name in ("bias", "mask") else 0
            operands.append(names(arg.tensor.sizes, missing))
    results = [names(t.sizes) for t in call.op.infer(call) if isinstance(t, TensorType)]
    return Axes(tuple(operands), tuple(results))
