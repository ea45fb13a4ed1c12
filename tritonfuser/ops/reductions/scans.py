"""Rows of the scans along one dim: cumsum, cumprod, cummin, cummax."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ...dtypes import Category
from ...ir import Dim, TensorType
from ..complex import pairs
from ..complex.terms import Rule
from ..forms import Scan
from ..parameters import Kind, Param
from ..shape_rules import fail, int_attr, with_attrs, with_operands, wrap_dim
from ..table import Call, Op

_PARAMS = (
    Param("arg", Kind.TENSOR),
    Param("dim", Kind.INT),
    Param("init", Kind.SCALAR, None),
)


_OUT_OF_RANGE = "Tried to access out of boundary index"
"""nvFuser's phrase for a dim that the tensor does not have."""


def _infer(call: Call) -> tuple[TensorType, ...]:
    arg, along = call.value("arg").tensor, int_attr(call, "dim")
    # Running sums of one element repeated differ from each other: the dim is stretched no more.
    dims = tuple(Dim(dim.size) if d == along else dim for d, dim in enumerate(arg.dims))
    return (TensorType(dims, arg.dtype),)


def _record(builder: Any, call: Call, *, ordered: bool) -> Any:
    """Record a scan in the operand's dtype; ``init`` joins each partial result."""
    arg, init = call.value("arg"), call.arg("init")
    if not arg.tensor.rank:
        raise fail(f"{call.op.name}: {_OUT_OF_RANGE}", "a tensor with dims", "a 0-dim tensor")
    dim = wrap_dim(call.op.name, int_attr(call, "dim"), arg.tensor.rank, _OUT_OF_RANGE)
    dtype = arg.dtype
    if ordered and dtype.info.category is Category.COMPLEX:
        raise fail(call.op.name, "numbers that have an order", dtype)
    out = builder.append(with_attrs(with_operands(call, init=None), dim=dim))
    if init is not None:
        form = call.op.form
        assert isinstance(form, Scan)
        out = builder.call(form.joins, out, init)
    return out if out.dtype is dtype else builder.call("cast", out, dtype)


def _running(
    arg: torch.Tensor, init: Any = None, *, dim: int, scan: Any, join: Any
) -> torch.Tensor:
    # Bools are scanned as numbers: a running sum of them is a running *or*.
    work = arg.int() if arg.dtype is torch.bool else arg
    found: torch.Tensor = scan(work, dim)
    if init is not None:
        found = join(found, torch.as_tensor(init))
    return found.to(arg.dtype)


def _kept(scan: Callable[..., Any]) -> Callable[[torch.Tensor, int], torch.Tensor]:
    """A torch scan that keeps the dtype, where torch would turn ints into int64."""
    return lambda arg, dim: scan(arg, dim, dtype=arg.dtype)


def _values(scan: Callable[..., Any]) -> Callable[[torch.Tensor, int], torch.Tensor]:
    return lambda arg, dim: scan(arg, dim).values


def _scan(
    name: str,
    doc: str,
    form: Scan,
    oracle: tuple[Callable[..., Any], Callable[..., Any]],
    ordered: bool = False,
    complex: Rule | None = None,
) -> Op:
    reference = partial(_running, scan=oracle[0], join=oracle[1])
    record = partial(_record, ordered=ordered)
    return Op(name, _PARAMS, doc, "scan", form, _infer, reference, record, complex=complex)


ROWS: tuple[Op, ...] = (
    _scan(
        "cumsum",
        "Cumulative sum along a dim, in the operand's dtype.",
        Scan("zero", "{a} + {b}", "scan_sum({x}, {axis})", "tl.sum({x}, {axis})", "sum", "add"),
        (_kept(torch.cumsum), torch.add),
        complex=pairs.each("cumsum"),
    ),
    _scan(
        "cumprod",
        "Cumulative product along a dim, in the operand's dtype.",
        Scan(
            "one", "{a} * {b}", "scan_prod({x}, {axis})", "reduce_prod({x}, {axis})", "prod", "mul"
        ),
        (_kept(torch.cumprod), torch.mul),
        complex=pairs.cumprod,
    ),
    _scan(
        "cummin",
        "Cumulative minimum along a dim, without indices; nan from the first nan on.",
        Scan(
            "highest",
            "tl.minimum({a}, {b}, propagate_nan=tl.PropagateNan.ALL)",
            "scan_min({x}, {axis})",
            "reduce_min({x}, {axis})",
            "min",
            "minimum",
        ),
        (_values(torch.cummin), torch.minimum),
        ordered=True,
    ),
    _scan(
        "cummax",
        "Cumulative maximum along a dim, without indices; nan from the first nan on.",
        Scan(
            "lowest",
            "tl.maximum({a}, {b}, propagate_nan=tl.PropagateNan.ALL)",
            "scan_max({x}, {axis})",
            "reduce_max({x}, {axis})",
            "max",
            "maximum",
        ),
        (_values(torch.cummax), torch.maximum),
        ordered=True,
    ),
)
