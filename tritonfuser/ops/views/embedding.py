"""The row of embedding_fwd: rows of a weight named by a tensor of indices."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...dtypes import Category, DataType
from ...ir import Const, Dim, TensorType, Value
from ...shapes.index_map import Pull, Source
from ...symbolic.loaded_index import Indexed, Outside
from ..parameters import Kind, Param
from ..shape_rules import check_index, check_indexed, fail, view_of, with_operands
from ..table import Call, Op, View
from .index_range import in_range

_RENORM_GUARD = 1e-7
"""What torch adds to a row's norm before it divides by it."""


def _infer_embedding(call: Call) -> tuple[TensorType, ...]:
    index, weight = check_index(call, "input"), call.value("weight").tensor
    if weight.rank != 2:
        raise fail("embedding_fwd", "a weight of rank 2", weight.rank)
    check_indexed(call, weight, 0, index.dims)
    return view_of(weight, (*(Dim(dim.size) for dim in index.dims), weight.dims[1]))


def _record_embedding(builder: Any, call: Call) -> Any:
    """The rows looked up; with max_norm, those that are longer are scaled down to it.

    Options that matter to the backward only, or not any more, leave the node.
    """
    _check_options(call)
    most, power = call.arg("max_norm"), call.arg("norm_type")
    names = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
    rows = builder.append(with_operands(call, **dict.fromkeys(names)))
    return rows if most is None else _renormalised(builder, rows, most, power)


def _check_options(call: Call) -> None:
    """The norm's options are real; those of the backward are an Int and two flags."""
    allowed = {
        "padding_idx": ("an integer", Category.INT),
        "max_norm": ("a real", Category.FLOAT),
        "norm_type": ("a real", Category.FLOAT),
        "scale_grad_by_freq": ("a Bool", Category.INT),
        "sparse": ("a Bool", Category.INT),
    }
    for name, (wanted, highest) in allowed.items():
        given = call.arg(name)
        if isinstance(given, Value | Const) and highest < given.dtype.info.category:
            raise fail("embedding_fwd", f"{wanted} {name}", given.dtype)


def _renormalised(builder: Any, rows: Value, most: Any, power: Any) -> Value:
    """``where(norm > most, rows * (most / (norm + 1e-7)), rows)`` in the rows' dtype."""
    norm = _norm(builder, rows, Const.of(2.0) if power is None else power)
    scale = builder.call("div", most, builder.call("add", norm, _RENORM_GUARD))
    scaled = builder.call("cast", builder.call("mul", rows, scale), rows.dtype)
    out = builder.call("where", builder.call("gt", norm, most), scaled, rows)
    assert isinstance(out, Value)
    return out


def _norm(builder: Any, rows: Value, power: Value | Const) -> Any:
    """The p-norm of each row, with a last dim of size 1."""
    size = builder.call("abs", rows)
    limits = {math.inf: _largest, -math.inf: _smallest, 0.0: _count}
    if isinstance(power, Const):
        assert not isinstance(power.value, complex)
        limit = limits.get(float(power.value))
        return _root(builder, size, power) if limit is None else limit(builder, size)
    found = _root(builder, size, power)
    for value, limit in limits.items():
        found = builder.call("where", builder.call("eq", power, value), limit(builder, size), found)
    return found


def _root(builder: Any, size: Value, power: Value | Const) -> Any:
    total = builder.call("sum", builder.call("pow", size, power), -1, keepdim=True)
    return builder.call("pow", total, builder.call("reciprocal", power))


def _largest(builder: Any, size: Value) -> Any:
    return builder.call("max", size, -1, keepdim=True)


def _smallest(builder: Any, size: Value) -> Any:
    return builder.call("min", size, -1, keepdim=True)


def _count(builder: Any, size: Value) -> Any:
    """How many are not zero."""
    return builder.call("sum", builder.call("ne", size, 0), -1, keepdim=True, dtype=DataType.Float)


def _pull_embedding(call: Call, pull: Pull) -> tuple[Source, ...]:
    rows = call.value("weight").tensor.sizes[0]
    dim = Indexed(rows, Outside.CLAMPED, call.op.name)
    row = pull.read(call.value("input"), pull.index[:-1], dim)
    return (Source(call.value("weight"), (row, pull.index[-1])),)


def _embedding(
    input: torch.Tensor,
    weight: torch.Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float | None = None,
    scale_grad_by_freq: bool | None = None,
    sparse: bool | None = None,
) -> torch.Tensor:
    input = in_range("embedding_fwd", input, weight, 0)
    power = 2.0 if norm_type is None else float(norm_type)
    most = None if max_norm is None else float(max_norm)
    copy = weight.detach().clone()
    return torch.nn.functional.embedding(input, copy, max_norm=most, norm_type=power)


ROWS: tuple[Op, ...] = (
    Op(
        "embedding_fwd",
        (
            Param("input", Kind.TENSOR, doc="Indices of rows of weight."),
            Param("weight", Kind.TENSOR, doc="[rows, width]."),
            Param("padding_idx", Kind.SCALAR, None),
            Param("max_norm", Kind.SCALAR, None),
            Param("norm_type", Kind.SCALAR, None),
            Param("scale_grad_by_freq", Kind.SCALAR, None),
            Param("sparse", Kind.SCALAR, None),
        ),
        "The rows of weight at the positions in input, scaled down to a norm of at most max_norm.",
        "indexing",
        View(_pull_embedding, indices=("input",)),
        _infer_embedding,
        _embedding,
        _record_embedding,
    ),
)
