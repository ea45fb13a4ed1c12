"""The bounds of what torch runs: matrix products, and by trial everything else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ....dtypes import DataType, compute_dtype
from ....ir import Node
from ....ops.table import Call
from .bounded import (
    WithErrorBound,
    distance,
    is_arithmetic,
    magnitude,
    overflowed,
    rounded,
    roundoff,
    underflow,
)
from .sums import partly_overflowed

TRIALS = 4
"""Directions in which operands are moved to see what that does to a result."""
MARGIN = 4.0
"""How much more than in the trials an error may be."""
TF32 = 2.0**-11
"""The unit roundoff of the operands of a Float product where torch may round them to TF32."""


def product(call: Call, operands: Sequence[WithErrorBound | None], out: DataType) -> WithErrorBound:
    """``A @ B``: off by at most ``k u |A| @ |B|``, ``k`` being the length of the rows.

    N. Higham, Accuracy and Stability of Numerical Algorithms, section 3.5.
    """
    center = call.op.oracle(*(None if x is None else x.center for x in operands), **call.attrs)
    if not is_arithmetic(out):
        return _whole(call, operands, center)
    size = call.op.oracle(*(None if x is None else magnitude(x.center) for x in operands))
    grown = call.op.oracle(
        *(None if x is None else magnitude(x.center) + x.bound for x in operands)
    )
    left = operands[0]
    assert left is not None
    accumulated = compute_dtype(out)
    length = left.center.shape[-1] + 1
    own = (length * roundoff(accumulated) + _rounding_of_operands(out, left)) * size
    own = own + length * underflow(size, accumulated)
    if len(operands) > 2 and operands[2] is not None:
        # A product may be rounded before the bias is added.
        own = own + roundoff(out) * (magnitude(center) + magnitude(operands[2].center))
    if _partial_sums_are_narrow(out, left):
        squares = call.op.oracle(*(None if x is None else x.center**2 for x in operands))
        own = own + 4 * roundoff(out) * squares.sqrt()
    bound = distance(grown, size) + torch.where(center.isfinite(), own, 0.0)
    found = overflowed(WithErrorBound(center, bound), accumulated)
    return partly_overflowed(found, center, size, accumulated)


def _whole(
    call: Call, operands: Sequence[WithErrorBound | None], center: torch.Tensor
) -> WithErrorBound:
    """Integers: exact, and undecided where a factor is."""
    known = [None if x is None else torch.ones_like(x.bound) for x in operands]
    marked = [None if x is None else 1.0 + (x.bound != 0) for x in operands]
    doubtful = call.op.oracle(*marked) != call.op.oracle(*known)
    bound = torch.zeros_like(center, dtype=torch.float64).masked_fill(doubtful, math.inf)
    return WithErrorBound(center, bound)


def _rounding_of_operands(out: DataType, left: WithErrorBound) -> float:
    allowed = torch.get_float32_matmul_precision() != "highest"
    return 2 * TF32 if out is DataType.Float and left.center.is_cuda and allowed else 0.0


def _partial_sums_are_narrow(out: DataType, left: WithErrorBound) -> bool:
    """Whether cuBLAS may add parts of a product in the dtype of the result."""
    if not left.center.is_cuda:
        return False
    matmul = torch.backends.cuda.matmul
    if out is DataType.Half:
        return bool(matmul.allow_fp16_reduced_precision_reduction)
    return out is DataType.BFloat16 and bool(matmul.allow_bf16_reduced_precision_reduction)


def tried(
    call: Call, node: Node, operands: Sequence[Any], narrow: Sequence[Any]
) -> list[WithErrorBound]:
    """The results of an op without a rule, their bounds by trial.

    The op is run in float64, in its own dtypes, and with operands moved within their bounds. A
    result is as far off as the farthest of its elements, with a margin. All of it is undecided
    where an element of an operand is: that may be any number.

    Parameters
    ----------
    narrow : sequence
        The operands in their own dtypes.
    """
    centers = _run(call, [_part(x) for x in operands])
    bounds = [x.bound for x in _bounded(operands)]
    if any(bool(bound.isinf().any()) for bound in bounds):
        return [_undecided(x, out.dtype) for x, out in zip(centers, node.outs, strict=True)]
    others = [_run(call, list(narrow))]
    doubtful = any(bool(bound.any()) for bound in bounds)
    for seed in range(TRIALS if doubtful else 0):
        others.append(_run(call, [_part(x, seed + 1) for x in operands]))
    found = []
    for place, center in enumerate(centers):
        apart = [distance(other[place].to(center.dtype), center) for other in others]
        dtype = node.outs[place].dtype
        if not is_arithmetic(dtype):
            lost = doubtful and any(bool(a.any()) for a in apart[1:])
            bound = torch.full(center.shape, math.inf if lost else 0.0, dtype=torch.float64)
            found.append(WithErrorBound(center, bound.to(center.device)))
            continue
        largest = torch.stack(
            [a[a.isfinite()].max() for a in apart if a.isfinite().any()]
            or [torch.zeros((), dtype=torch.float64)]
        ).sum()
        bound = torch.full_like(center, float(largest) * MARGIN, dtype=torch.float64)
        bound = torch.where(apart[0].isfinite(), bound, math.inf)
        wide = WithErrorBound(center.double(), bound)
        found.append(rounded(wide, compute_dtype(dtype)))
    return found


def _undecided(center: torch.Tensor, dtype: DataType) -> WithErrorBound:
    bound = torch.full_like(center, math.inf, dtype=torch.float64)
    return WithErrorBound(center.double() if is_arithmetic(dtype) else center, bound)


def _run(call: Call, operands: list[Any]) -> tuple[torch.Tensor, ...]:
    found = call.op.oracle(*operands, **call.attrs)
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _bounded(operands: Sequence[Any]) -> list[WithErrorBound]:
    flat = (item for x in operands for item in (x if isinstance(x, tuple) else (x,)))
    return [item for item in flat if isinstance(item, WithErrorBound)]


def _part(operand: Any, seed: int = 0) -> Any:
    """The center of an operand, or a number of its interval."""
    if isinstance(operand, tuple):
        return tuple(_part(item, seed) for item in operand)
    if not isinstance(operand, WithErrorBound):
        return operand
    if not seed or not operand.is_float:
        return operand.center
    generator = torch.Generator("cpu").manual_seed(seed)
    side = torch.randint(0, 2, operand.center.shape, generator=generator, device="cpu") * 2 - 1
    step = operand.bound.nan_to_num(posinf=0.0)
    return operand.center + step * side.to(operand.center.device)
