"""Reductions and scans along one axis of a tile, and the functions that combine two elements."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def maximum(a, b):
    """The greater of two numbers; nan where one is nan."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    """The smaller of two numbers; nan where one is nan."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def multiply(a, b):
    """The product, as a combine function."""
    return a * b


@triton.jit
def reduce_sum(x, axis: tl.constexpr):
    """Sum along ``axis``, in the dtype of ``x``."""
    return tl.sum(x, axis, dtype=x.dtype)


@triton.jit
def add_pairs(x_a, y_a, x_b, y_b):
    """Join two pairs of sums."""
    return x_a + x_b, y_a + y_b


@triton.jit
def reduce_sums(x, y, axis: tl.constexpr):
    """Sums of two blocks along ``axis``, which warps exchange together."""
    return tl.reduce((x, y), axis, add_pairs)


@triton.jit
def reduce_prod(x, axis: tl.constexpr):
    """Product along ``axis``."""
    return tl.reduce(x, axis, multiply)


@triton.jit
def reduce_max(x, axis: tl.constexpr):
    """Maximum along ``axis``; nan where there is one."""
    return tl.reduce(x, axis, maximum)


@triton.jit
def reduce_min(x, axis: tl.constexpr):
    """Minimum along ``axis``; nan where there is one."""
    return tl.reduce(x, axis, minimum)


@triton.jit
def reduce_any(x, axis: tl.constexpr):
    """Whether any of the Bools along ``axis`` is true."""
    return tl.max(x.to(tl.int32), axis) != 0


@triton.jit
def reduce_all(x, axis: tl.constexpr):
    """Whether all of the Bools along ``axis`` are true."""
    return tl.min(x.to(tl.int32), axis) != 0


@triton.jit
def scan_sum(x, axis: tl.constexpr):
    """Inclusive running sum along ``axis``, in the dtype of ``x``."""
    return tl.cumsum(x, axis, dtype=x.dtype)


@triton.jit
def scan_prod(x, axis: tl.constexpr):
    """Inclusive running product along ``axis``."""
    return tl.associative_scan(x, axis, multiply)


@triton.jit
def scan_max(x, axis: tl.constexpr):
    """Inclusive running maximum along ``axis``; nan from the first nan on."""
    return tl.associative_scan(x, axis, maximum)


@triton.jit
def scan_min(x, axis: tl.constexpr):
    """Inclusive running minimum along ``axis``; nan from the first nan on."""
    return tl.associative_scan(x, axis, minimum)


@triton.jit
def welford_combine(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    """Join (mean, sum of squared deviations, count) of two sets; either may be empty."""
    count = count_a + count_b
    weight = count_b / tl.where(count == 0, 1.0, count)
    delta = mean_b - mean_a
    return mean_a + delta * weight, m2_a + m2_b + delta * delta * count_a * weight, count


@triton.jit
def reduce_welford(mean, m2, count, axis: tl.constexpr):
    """``welford_combine`` along ``axis``."""
    return tl.reduce((mean, m2, count), axis, welford_combine)
