"""Tiles rearranged by the elements that each thread has."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def by_thread(x, threads: tl.constexpr, vector: tl.constexpr):
    """``[X, R] -> [X, threads, R // threads]``: the elements of each thread on an axis of their
    own.

    No element moves between threads if these have ``vector`` adjacent elements each, in turns until
    the end of the row. The tile of one row has no X.
    """
    turns: tl.constexpr = x.shape[len(x.shape) - 1] // (threads * vector)
    if len(x.shape) == 1:
        if turns == 1:
            x = tl.reshape(x, [threads, vector])
        else:
            each = tl.permute(tl.reshape(x, [turns, threads, vector]), [1, 0, 2])
            x = tl.reshape(each, [threads, turns * vector])
    else:
        rows: tl.constexpr = x.shape[0]
        if turns == 1:
            x = tl.reshape(x, [rows, threads, vector])
        else:
            each = tl.permute(tl.reshape(x, [rows, turns, threads, vector]), [0, 2, 1, 3])
            x = tl.reshape(each, [rows, threads, turns * vector])
    return x


@triton.jit
def rows_of(run, length: tl.constexpr, width: tl.constexpr, rows: tl.constexpr):
    """``[N] -> [width, rows]``: a run of consecutive rows of ``length`` elements, one in a column.

    Each thread gets whole rows, through shared memory. A row that is shorter than ``width`` repeats
    its last element.
    """
    first = tl.arange(0, rows)[None, :] * length
    place = first + tl.minimum(tl.arange(0, width)[:, None], length - 1)
    found = tl.gather(run, tl.reshape(place, [width * rows]), 0)
    return tl.reshape(found, [width, rows])


@triton.jit
def masked_rows_of(
    run, length: tl.constexpr, width: tl.constexpr, rows: tl.constexpr, mask, other: tl.constexpr
):
    """``rows_of`` with ``other`` where a mask does not hold."""
    found = rows_of(run, length, width, rows)
    return tl.where(mask, found, tl.full([], other, run.dtype))


@triton.jit
def run_of(rows, length: tl.constexpr):
    """``[width, rows] -> [N]``: the inverse of ``rows_of``, without the repeated elements.

    Rows are consecutive in shared memory, so that threads with single elements read without bank
    conflicts.
    """
    width: tl.constexpr = rows.shape[0]
    many: tl.constexpr = rows.shape[1]
    place = tl.arange(0, width * many)
    at = tl.minimum(place // length * width + place % length, width * many - 1)
    return tl.gather(tl.reshape(tl.trans(rows), [width * many]), at, 0)
