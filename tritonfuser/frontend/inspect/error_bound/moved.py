"""The bounds of ops that compute nothing: views, scatters, factories, random numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ....dtypes import compute_dtype
from ....ir import Arg, Value
from ....ops.creation.fills import dtype_attr
from ....ops.forms import Factory, Random
from ....ops.table import Call
from .bounded import WithErrorBound, exact, is_arithmetic, magnitude, roundoff

FACTORY_ROUNDINGS = 4
"""Roundings of a product and a sum, in a kernel and in the reference."""

NORMAL_ROUNDINGS = 32
"""Roundings of a normal number at most: logarithm, root, and sine or cosine of a rounded angle."""


def moved(call: Call, operands: Sequence[Any], indices: Sequence[str]) -> WithErrorBound:
    """Elements put elsewhere, their bounds with them; undecided behind an undecided index.

    Parameters
    ----------
    operands : sequence
        ``WithErrorBound`` for tensors and numbers, tuples of them, None, and ints for extents.
    indices : sequence of str
        The operands that hold positions.
    """
    names = list(call.op.operands)
    places = [name in indices for name in names]
    triples = list(zip(call.args, operands, places, strict=True))
    center = call.op.oracle(*(_part(a, x, False) for a, x, _ in triples), **call.attrs)
    bound = call.op.oracle(*(_part(a, x, not place) for a, x, place in triples), **call.attrs)
    doubtful = [x for x, place in zip(operands, places, strict=True) if place and x is not None]
    if not all(x.is_exact for x in doubtful):
        bound = torch.full_like(bound, math.inf)
    return WithErrorBound(center, bound)


def scattered(call: Call, operands: Sequence[Any], indices: Sequence[str]) -> WithErrorBound:
    """A scatter; on a GPU any of the elements that are written to one place may stay there."""
    found = moved(call, operands, indices)
    index = operands[call.op.operands["index"]]
    if not found.center.is_cuda or not isinstance(call.arg("src"), Value):
        return found
    if not call.value("src").is_tensor or not found.center.dim():
        return found
    dim = call.attrs["dim"]
    assert isinstance(dim, int)
    places = index.center.long()
    writes = torch.zeros(found.bound.shape, dtype=torch.int64, device=found.bound.device)
    writes.scatter_add_(dim, places, torch.ones_like(places))
    return WithErrorBound(found.center, found.bound.masked_fill(writes > 1, math.inf))


def _part(arg: Arg, operand: Any, of_bound: bool) -> Any:
    """The center or the bound of an operand, of a scalar as a Python number."""
    if isinstance(operand, tuple):
        assert isinstance(arg, tuple)
        return tuple(_part(a, x, of_bound) for a, x in zip(arg, operand, strict=True))
    if not isinstance(operand, WithErrorBound):
        return operand
    found = operand.bound if of_bound else operand.center
    return found if isinstance(arg, Value) and arg.is_tensor else found.item()


def made(call: Call, operands: Sequence[Any], form: Factory) -> WithErrorBound:
    """Numbers made from scalars, and an index where the form has one."""
    dtype = dtype_attr(call)
    found = exact(call.op.oracle(*(_number(x) for x in operands), **call.attrs), dtype)
    scalars = [x for x in operands if isinstance(x, WithErrorBound)]
    carried = sum(float(x.bound) for x in scalars)
    if not is_arithmetic(dtype):
        return WithErrorBound(
            found.center, torch.full_like(found.bound, math.inf if carried else 0.0)
        )
    size = magnitude(found.center)
    largest = sum(float(magnitude(x.center)) for x in scalars)
    whole = all(float(x.center).is_integer() for x in scalars)
    if "{i0}" not in form.triton or (whole and bool((size <= 1 / roundoff(dtype)).all())):
        return WithErrorBound(found.center, found.bound + carried * max(size.numel(), 1))
    own = FACTORY_ROUNDINGS * roundoff(dtype) * (size + largest)
    return WithErrorBound(found.center, own + carried * max(size.numel(), 1))


def drawn(call: Call, operands: Sequence[Any], form: Random) -> WithErrorBound:
    """Random numbers of a seed: the bits are the same, their scaling is rounded."""
    dtype = dtype_attr(call)
    center = exact(call.op.oracle(*(_number(x) for x in operands), **call.attrs), dtype)
    if not form.scaled:
        return center
    scalars = [x for x in operands[:2] if isinstance(x, WithErrorBound)]
    largest = sum(float(magnitude(x.center)) for x in scalars)
    roundings = 4 if form.bounded else NORMAL_ROUNDINGS
    error = roundings * roundoff(compute_dtype(dtype)) * (magnitude(center.center) + largest)
    error = error + sum(float(x.bound) for x in scalars) * (magnitude(center.center) + 1)
    if dtype is not compute_dtype(dtype):
        error = error + 2 * roundoff(dtype) * magnitude(center.center)
    return WithErrorBound(center.center, error)


def _number(operand: Any) -> Any:
    """A scalar as a Python number."""
    if isinstance(operand, tuple):
        return tuple(map(_number, operand))
    return operand.center.item() if isinstance(operand, WithErrorBound) else operand
