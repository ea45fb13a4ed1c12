"""Tiles rearranged: halves, pairs, repeated elements; which tile of a product a program has."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def grouped_tile(tile, rows: tl.constexpr, columns: tl.constexpr, group: tl.constexpr):
    """Row and column of tile number ``tile``: down ``group`` rows, then the next column.

    The order of Triton's matmul tutorial (``GROUP_SIZE_M``): tiles that run at once share operands
    in the L2 cache.
    """
    first = tile // (group * columns) * group
    height = tl.minimum(rows - first, group)
    within = tile % (group * columns)
    return first + within % height, within // height


@triton.jit
def column_halves(x):
    """The left and the right half of a tile's columns."""
    pairs = tl.reshape(x, [x.shape[0], 2, x.shape[1] // 2])
    return tl.split(tl.permute(pairs, [0, 2, 1]))


@triton.jit
def spread(x, count: tl.constexpr):
    """Each element ``count`` times: ``[X, R] -> [X, R * count]``."""
    if len(x.shape) == 1:
        wide = tl.broadcast_to(x[:, None], [x.shape[0], count])
        result = tl.max_constancy(tl.reshape(wide, [x.shape[0] * count]), [count])
    else:
        wide = tl.broadcast_to(x[:, :, None], [x.shape[0], x.shape[1], count])
        result = tl.reshape(wide, [x.shape[0], x.shape[1] * count])
        result = tl.max_constancy(result, [1, count])
    return result


@triton.jit
def left(a, b):
    """The first of two elements."""
    return a


@triton.jit
def flat_column(x):
    """A block of one column as a block with one dim: ``[X, 1] -> [X]``.

    A reduction, since Triton does not carry the layout of a store back through one, as it does
    through a reshape.
    """
    return tl.reduce(x, 1, left)


@triton.jit
def split_pairs(x):
    """Interleaved pairs apart, first and second elements: ``[2 * X] -> [X], [X]``."""
    return tl.split(tl.reshape(x, [x.shape[0] // 2, 2]))


@triton.jit
def split_row_pairs(x):
    """Interleaved pairs of rows apart: ``[Y, 2 * X] -> [Y, X], [Y, X]``."""
    return tl.split(tl.reshape(x, [x.shape[0], x.shape[1] // 2, 2]))


@triton.jit
def split_column_pairs(x):
    """Interleaved pairs of columns apart: ``[2 * X, Y] -> [X, Y], [X, Y]``."""
    first, second = split_row_pairs(tl.trans(x))
    return tl.trans(first), tl.trans(second)


@triton.jit
def interleave_columns(first, second):
    """Pairs of columns: ``[X, Y], [X, Y] -> [2 * X, Y]``."""
    return tl.trans(tl.interleave(tl.trans(first), tl.trans(second)))
