"""Rows of scaled dot product attention, run by torch: sdpfa_fwd, sdpfa_bwd."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ...dtypes import Category, DataType
from ...ir import Const, Dim, TensorType, Value
from ...shapes.equal_extents import assume_extents_fit
from ..parameters import Kind, Param
from ..shape_rules import fail
from ..table import Call, Library, Op
from . import attention_torch, linked_dims

_HEADS = "[N, H, L, E] or [D, N, H, L, E]"


def _check_heads(call: Call, names: Sequence[str]) -> None:
    """Tensors of one floating-point dtype and one rank, 4 or 5."""
    first = call.value(names[0]).tensor
    if first.rank not in (4, 5):
        raise fail(call.op.name, f"{names[0]} of {_HEADS}", f"rank {first.rank}")
    if first.dtype.info.category is not Category.FLOAT:
        raise fail(call.op.name, "tensors of a floating-point dtype", first.dtype)
    for name in names[1:]:
        other = call.value(name).tensor
        if other.rank != first.rank:
            raise fail(call.op.name, f"{name} of rank {first.rank}, as {names[0]}", other.rank)
        if other.dtype is not first.dtype:
            raise fail(call.op.name, f"{name} of {first.dtype}, as {names[0]}", other.dtype)
        if not all(map(_same, first.dims[:-2], other.dims[:-2])):
            raise fail(
                call.op.name,
                f"{name} with the batch and head sizes {_text(first.dims[:-2])}",
                _text(other.dims[:-2]),
            )


def _same(one: Dim, other: Dim) -> bool:
    return assume_extents_fit(one.size, other.size)


def _text(dims: Sequence[Dim]) -> str:
    return "[" + ", ".join(str(dim.size) for dim in dims) + "]"


def _check_sizes(call: Call) -> None:
    """Queries and keys of one width, as many values as keys."""
    query, key, value = (call.value(n).tensor.dims for n in ("query", "key", "value"))
    if not _same(query[-1], key[-1]):
        raise fail(call.op.name, f"a key of width {query[-1].size}, the query's", key[-1].size)
    if not _same(key[-2], value[-2]):
        raise fail(call.op.name, f"{key[-2].size} values, as there are keys", value[-2].size)


def _check_options(call: Call) -> None:
    """dropout_p and scale are numbers, is_causal a Bool, where given."""
    for name in ("dropout_p", "scale"):
        found = call.arg(name)
        if found is not None and call.operand(name).dtype.info.category is Category.COMPLEX:
            raise fail(call.op.name, f"a real {name}", call.operand(name).dtype)
        if name == "dropout_p" and isinstance(found, Const) and not _is_share(found):
            raise fail(call.op.name, "a dropout_p from 0 to 1", found)
    if call.arg("is_causal") is not None and call.operand("is_causal").dtype is not DataType.Bool:
        raise fail(call.op.name, "a Bool is_causal", call.operand("is_causal").dtype)


def _is_share(number: Const) -> bool:
    return not isinstance(number.value, complex) and bool(0 <= number.value <= 1)


def _check_added(call: Call) -> None:
    """Bias and mask broadcast to the scores; the one is of a floating dtype, the other Bool."""
    query, key = call.value("query").tensor.dims, call.value("key").tensor.dims
    scores = (*query[:-1], key[-2])
    for name in ("bias", "mask"):
        added = call.arg(name)
        if not isinstance(added, Value):
            continue
        dims = added.tensor.dims
        pairs = zip(reversed(dims), reversed(scores), strict=False)
        if len(dims) > len(scores) or not all(_same(d, Dim(1)) or _same(d, s) for d, s in pairs):
            wanted = f"a {name} that broadcasts to the scores {_text(scores)}"
            raise fail(call.op.name, wanted, _text(dims))
        if name == "mask" and added.dtype is not DataType.Bool:
            raise fail(call.op.name, "a Bool mask", added.dtype)
        if name == "bias" and added.dtype.info.category is not Category.FLOAT:
            raise fail(call.op.name, "a bias of a floating-point dtype", added.dtype)


def _check_saved(call: Call) -> None:
    """The gradient and the output as the forward made it, and a sum for each row of scores."""
    query, value = call.value("query").tensor.dims, call.value("value").tensor.dims
    made = (*query[:-1], value[-1])
    for name, wanted in (("grad_output", made), ("output", made), ("logsumexp", query[:-1])):
        dims = call.value(name).tensor.dims
        if len(dims) != len(wanted) or not all(map(_same, dims, wanted)):
            raise fail(call.op.name, f"{name} of shape {_text(wanted)}", _text(dims))
    total = call.value("logsumexp").dtype
    if total.info.category is not Category.FLOAT:
        raise fail(call.op.name, "a logsumexp of a floating-point dtype", total)


def _plain(dims: Sequence[Dim]) -> tuple[Dim, ...]:
    return tuple(Dim(dim.size) for dim in dims)


def _infer_forward(call: Call) -> tuple[TensorType, ...]:
    _check_heads(call, ("query", "key", "value"))
    _check_sizes(call)
    _check_options(call)
    _check_added(call)
    query, value = call.value("query").tensor, call.value("value").tensor
    rows = _plain(query.dims[:-1])
    return (
        TensorType((*rows, Dim(value.dims[-1].size)), query.dtype),
        TensorType(rows, DataType.Float),
        TensorType((Dim(2),), DataType.UInt64),
        TensorType((), DataType.UInt64),
    )


def _infer_backward(call: Call) -> tuple[TensorType, ...]:
    _check_heads(call, ("query", "key", "value", "grad_output", "output"))
    _check_sizes(call)
    _check_saved(call)
    _check_options(call)
    operands = (call.value(name).tensor for name in ("query", "key", "value"))
    return tuple(TensorType(_plain(t.dims), t.dtype) for t in operands)


def _tensors(names: str) -> tuple[Param, ...]:
    docs = {"value": "[N, H, S, E]."}
    return tuple(Param(name, Kind.TENSOR, doc=docs.get(name, "")) for name in names.split())


def _forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
    dropout_p: float | None = None,
    is_causal: bool | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, ...]:
    return attention_torch.forward(
        query, key, value, bias, mask, dropout_p or 0.0, bool(is_causal), scale
    )


def _backward(
    grad_output: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    output: torch.Tensor,
    logsumexp: torch.Tensor,
    dropout_p: float | None,
    is_causal: bool | None,
    philox_seed: torch.Tensor,
    philox_offset: torch.Tensor,
    scale: float | None = None,
) -> tuple[torch.Tensor, ...]:
    saved = (query, key, value, output, logsumexp)
    drawn = (philox_seed, philox_offset)
    return attention_torch.backward(
        grad_output, saved, drawn, dropout_p or 0.0, bool(is_causal), scale
    )


ROWS: tuple[Op, ...] = (
    Op(
        "sdpfa_fwd",
        (
            *_tensors("query key value"),
            Param(
                "bias", Kind.TENSOR, None, doc="Added to the scores; broadcasts to [N, H, L, S]."
            ),
            Param("mask", Kind.TENSOR, None),
            Param("dropout_p", Kind.SCALAR, None),
            Param("is_causal", Kind.SCALAR, None),
            Param("scale", Kind.SCALAR, None),
        ),
        "Scaled dot product attention: output, logsumexp of the scores, Philox seed and offset.",
        "library",
        Library(like=("query", None, None, None)),
        _infer_forward,
        _forward,
        results=("output", "logsumexp", "philox_seed", "philox_offset"),
        older_order=("query", "key", "value", "dropout_p", "is_causal", "scale"),
        axes=linked_dims.attention,
    ),
    Op(
        "sdpfa_bwd",
        (
            *_tensors("grad_output query key value output logsumexp"),
            Param("dropout_p", Kind.SCALAR, takes_none=True),
            Param("is_causal", Kind.SCALAR, takes_none=True),
            *_tensors("philox_seed philox_offset"),
            Param("scale", Kind.SCALAR, None),
        ),
        "Gradients of scaled dot product attention with respect to query, key and value.",
        "library",
        Library(like=("query", "key", "value")),
        _infer_backward,
        _backward,
        results=("grad_query", "grad_key", "grad_value"),
        axes=linked_dims.attention,
    ),
)
