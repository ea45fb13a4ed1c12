"""Functions of softmax kernels: exponentials of x <= 0, and the running sums of online softmax.

A *lane* is the elements of a row that one thread has: ``width`` of them, adjacent or ``strided``.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from .float_functions import approx_exp2, approx_reciprocal
from .power_functions import is_nvidia


@triton.jit
def exp_nonpositive(x):
    """``exp(x)`` for ``x <= 0``.

    In float32 by the hardware's ``exp2``. The absolute error is at most 3e-8: the relative error
    grows with ``|x|`` as the result falls. Results below 1.2e-38 are flushed to 0.
    """
    return approx_exp2(x * 1.4426950408889634) if x.dtype == tl.float32 else libdevice.exp(x)


@triton.jit
def div_by_sum(x, total):
    """``x / total`` for ``0 <= x <= 1 <= total``, rounded as a division is from 2 ** -100 on.

    One reciprocal a row, then a fused multiply-add corrects each quotient by its remainder
    (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990).
    The reciprocal is what the assembler's division makes, without its branch for numbers that no
    sum is: zeros, which lanes have where a load is masked, would take it with all of their warp.
    """
    if x.dtype == tl.float32:
        if is_nvidia():
            rough = approx_reciprocal(total)
            inverse = tl.fma(tl.fma(-total, rough, 1.0), rough, rough)
        else:
            inverse = tl.div_rn(1.0, total)
        near = x * inverse
        result = tl.fma(tl.fma(-near, total, x), inverse, near)
    else:
        result = x / total
    return result


@triton.jit
def _max_or_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _by_lane(x, width: tl.constexpr, strided: tl.constexpr):
    """A tile with the ``width`` elements of each lane along an axis of their own.

    ``[X, R] -> [X, R // width, width]``, or ``[X, width, R // width]`` where the elements of a lane
    are ``strided``. The tile of one row has no X.
    """
    lanes: tl.constexpr = x.shape[len(x.shape) - 1] // width
    if len(x.shape) == 1:
        if strided:
            x = tl.reshape(x, [width, lanes])
        else:
            x = tl.reshape(x, [lanes, width])
    else:
        rows: tl.constexpr = x.shape[0]
        if strided:
            x = tl.reshape(x, [rows, width, lanes])
        else:
            x = tl.reshape(x, [rows, lanes, width])
    return x


@triton.jit
def lane_max(x, width: tl.constexpr, strided: tl.constexpr):
    """``[X, R] -> [X, R // width]``: the maximum of each lane."""
    if width > 1:
        axis: tl.constexpr = len(x.shape) - 1 if strided else len(x.shape)
        x = tl.reduce(_by_lane(x, width, strided), axis, _max_or_nan)
    return x


@triton.jit
def lane_sum(x, width: tl.constexpr, strided: tl.constexpr):
    """``[X, R] -> [X, R // width]``: the sum of each lane."""
    if width > 1:
        axis: tl.constexpr = len(x.shape) - 1 if strided else len(x.shape)
        x = tl.sum(_by_lane(x, width, strided), axis, dtype=x.dtype)
    return x


@triton.jit
def lane_spread(x, width: tl.constexpr, strided: tl.constexpr):
    """``[X, R // width] -> [X, R]``: the value of each lane, repeated for its elements."""
    if width > 1:
        lanes: tl.constexpr = x.shape[len(x.shape) - 1]
        if len(x.shape) == 1:
            if strided:
                each = tl.broadcast_to(x[None, :], [width, lanes])
            else:
                each = tl.broadcast_to(x[:, None], [lanes, width])
            x = tl.reshape(each, [lanes * width])
        else:
            rows: tl.constexpr = x.shape[0]
            if strided:
                each = tl.broadcast_to(x[:, None, :], [rows, width, lanes])
            else:
                each = tl.broadcast_to(x[:, :, None], [rows, lanes, width])
            x = tl.reshape(each, [rows, lanes * width])
    return x


@triton.jit
def lane_base(top, width: tl.constexpr, strided: tl.constexpr):
    """``[X, R // width] -> [X, R]``: the running maximum of each element's lane.

    0 in place of -inf: it is subtracted before exp, and ``-inf - -inf`` would be NaN.
    """
    return lane_spread(tl.where(top == float("-inf"), 0.0, top), width, strided)


@triton.jit
def rescale(old, new):
    """The factor of a sum of exponentials when its maximum goes from ``old`` to ``new``."""
    return exp_nonpositive(tl.where(old == new, 0.0, old - new))
