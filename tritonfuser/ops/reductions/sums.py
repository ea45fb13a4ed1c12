"""Rows of the reductions: sum, prod, max, min; and, joined in, the moments and the scans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from ...dtypes import Category, DataType
from ...errors import DefinitionError
from ...ir import Dim, TensorType, Value
from ...symbolic.queries import assume_equal, assume_less
from ...symbolic.sizes import is_integer
from ..complex import pairs
from ..complex.terms import Rule
from ..forms import Reduction
from ..parameters import Kind, Param
from ..shape_rules import fail, flags, reduced_dims, with_attrs, with_operands, without
from ..table import Call, Op
from . import moments, scans

_PARAMS = (
    Param("arg", Kind.TENSOR),
    Param("dims", Kind.DIMS, None),
    Param("keepdim", Kind.BOOL, False),
    Param("dtype", Kind.DTYPE, DataType.Null),
)


def _infer(call: Call) -> tuple[TensorType, ...]:
    """The dims that are left; the dtype is the operand's, which recording has cast."""
    arg = call.value("arg").tensor
    return (TensorType(without(arg.dims, call.dims()), arg.dtype),)


# --- recording: dims made plain, size-1 and stretched dims taken away, keepdim written out ---


def _record(
    builder: Any,
    call: Call,
    *,
    result: Callable[[Call], DataType],
    repeated: str | None,
) -> Value:
    """Record ``sum(x, dims, keepdim, dtype)`` as cast, squeeze, sum, broadcast as needed.

    Parameters
    ----------
    result : callable
        The dtype of the result, checked.
    repeated : str, optional
        For ops that accumulate: the op that stands for n equal elements, ``x * n`` for a sum.
    """
    arg = call.value("arg")
    rank = arg.tensor.rank
    dims = reduced_dims(call, rank)
    dtype = result(call)
    if arg.dtype is not dtype:
        arg = builder.call("cast", arg, dtype)
    elif not rank:
        arg = builder.call("set", arg)
    if not rank:
        return arg
    out, copies, left = _take_away(builder, arg, dims)
    if left:
        bare = with_attrs(call, dims=left, keepdim=False)
        bare = with_attrs(bare, dtype=dtype) if repeated is not None else bare
        out = builder.append(with_operands(bare, arg=out))
    if repeated is not None and assume_less(1, copies):
        out = builder.call(repeated, out, copies)
    if out.dtype is not dtype:
        out = builder.call("cast", out, dtype)
    if call.attrs["keepdim"]:
        out = builder.call("broadcast", out, flags(dims, rank))
    return out


def _take_away(
    builder: Any, arg: Value, dims: tuple[int, ...]
) -> tuple[Value, int, tuple[int, ...]]:
    """Squeeze the dims that hold one element, once or repeated.

    Returns the squeezed tensor, how often each element counts, and the dims left to reduce, in
    the squeezed tensor. A stretched dim of no or unknown extent is reduced like any other: an
    empty sum is 0 even where the repeated element is inf.
    """
    counts = {d: n for d in dims if (n := _copies(arg.tensor.dims[d])) is not None}
    gone, copies = list(counts), math.prod(counts.values())
    left = tuple(d - sum(g < d for g in gone) for d in dims if d not in gone)
    if gone:
        arg = builder.call("squeeze", arg, gone, squeeze_expanded=assume_less(1, copies))
    return arg, copies, left


def _copies(dim: Dim) -> int | None:
    """How often a dim holds its only element; None where it holds several or none."""
    if not is_integer(dim.size):
        return None
    once = assume_equal(dim.size, 1)
    return dim.size if once or (dim.expanded and assume_less(1, dim.size)) else None


def _summed(call: Call) -> DataType:
    """Given, else Int for bool and int operands, else the operand's."""
    asked, own = call.attrs["dtype"], call.value("arg").dtype
    assert isinstance(asked, DataType)
    if asked is not DataType.Null:
        return asked
    whole = own.info.category in (Category.BOOL, Category.INT)
    return DataType.Int if whole else own


def _chosen(call: Call) -> DataType:
    """The operand's: an extremum is one of the elements."""
    own = call.value("arg").dtype
    if call.attrs["dtype"] is not DataType.Null:
        raise DefinitionError(
            f"{call.op.name}: A dtype other than Null is not currently supported.",
            hint="Cast the operand or the result instead.",
        )
    if own.info.category is Category.COMPLEX:
        raise fail(call.op.name, "numbers that have an order", own)
    return own


# --- torch references ----------------------------------------------------------------------


def _all_dims(arg: torch.Tensor, dims: Sequence[int] | None) -> list[int]:
    return sorted(d % max(arg.dim(), 1) for d in (range(arg.dim()) if dims is None else dims))


def _torch_dtype(arg: torch.Tensor, dtype: DataType) -> torch.dtype | None:
    """None, torch's own choice, unless a type of another category is asked for.

    The reference may run in a wider type than the one recorded.
    """
    if dtype is DataType.Null:
        return None
    asked = dtype.info.torch
    same = asked is not None and asked.is_floating_point == arg.is_floating_point()
    return arg.dtype if same and arg.dtype is not torch.bool else asked


def _sum(
    arg: torch.Tensor,
    dims: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DataType = DataType.Null,
) -> torch.Tensor:
    places = _all_dims(arg, dims)
    return torch.sum(arg, places, keepdim=keepdim, dtype=_torch_dtype(arg, dtype))


def _prod(
    arg: torch.Tensor,
    dims: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DataType = DataType.Null,
) -> torch.Tensor:
    places = _all_dims(arg, dims)
    asked = _torch_dtype(arg, dtype)
    if not arg.dim():
        return torch.prod(arg, dtype=asked)
    kept = [d for d in range(arg.dim()) if d not in places]
    # One product over all dims: torch rounds after each.
    rows = arg.permute(*kept, *places).reshape(*(arg.shape[d] for d in kept), _count(arg, places))
    found = torch.prod(rows, -1, dtype=asked)
    for place in places if keepdim else ():
        found = found.unsqueeze(place)
    return found


def _count(arg: torch.Tensor, places: Sequence[int]) -> int:
    return math.prod(arg.shape[d] for d in places)


def _extremum(
    arg: torch.Tensor,
    dims: Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DataType = DataType.Null,
    *,
    largest: bool,
) -> torch.Tensor:
    """amax or amin; over no elements the identity, where torch would raise."""
    places = _all_dims(arg, dims)
    if any(arg.shape[d] == 0 for d in places):
        sizes = [1 if d in places else n for d, n in enumerate(arg.shape)]
        fill = _lowest(arg.dtype) if largest else _highest(arg.dtype)
        empty = torch.full(sizes, fill, dtype=arg.dtype, device=arg.device)
        return empty if keepdim else empty.squeeze(places)
    return (torch.amax if largest else torch.amin)(arg, places, keepdim=keepdim)


def _lowest(dtype: torch.dtype) -> float:
    if dtype is torch.bool:
        return False
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _highest(dtype: torch.dtype) -> float:
    if dtype is torch.bool:
        return True
    return math.inf if dtype.is_floating_point else torch.iinfo(dtype).max


# --- rows ----------------------------------------------------------------------------------


def _reduction(
    name: str,
    doc: str,
    form: Reduction,
    oracle: Callable[..., torch.Tensor],
    result: Callable[[Call], DataType],
    repeated: str | None = None,
    complex: Rule | None = None,
) -> Op:
    record = partial(_record, result=result, repeated=repeated)
    return Op(name, _PARAMS, doc, "reduction", form, _infer, oracle, record, complex=complex)


ROWS: tuple[Op, ...] = (
    _reduction(
        "sum",
        "Sum over dims; Int for bools and integers; half is accumulated in Float.",
        Reduction("zero", "{a} + {b}", "tl.sum({x}, {axis})", "add"),
        _sum,
        _summed,
        repeated="mul",
        complex=pairs.each("sum"),
    ),
    _reduction(
        "prod",
        "Product over dims; Int for bools and integers; half is accumulated in Float.",
        Reduction("one", "{a} * {b}", "reduce_prod({x}, {axis})", "mul"),
        _prod,
        _summed,
        repeated="pow",
        complex=pairs.prod,
    ),
    _reduction(
        "max",
        "Maximum over dims; nan if any element is nan.",
        Reduction(
            "lowest",
            "tl.maximum({a}, {b}, propagate_nan=tl.PropagateNan.ALL)",
            "reduce_max({x}, {axis})",
            "maximum",
        ),
        partial(_extremum, largest=True),
        _chosen,
    ),
    _reduction(
        "min",
        "Minimum over dims; nan if any element is nan.",
        Reduction(
            "highest",
            "tl.minimum({a}, {b}, propagate_nan=tl.PropagateNan.ALL)",
            "reduce_min({x}, {axis})",
            "minimum",
        ),
        partial(_extremum, largest=False),
        _chosen,
    ),
    *moments.ROWS,
    *scans.ROWS,
)
