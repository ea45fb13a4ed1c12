"""Functions of what single threads have of a tile."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def by_thread(x, threads: tl.constexpr, vector: tl.constexpr):
    """``[X, R] -> [X, threads, R // threads]``: the elements of a row by their threads.

    Nothing moves where threads have ``vector`` neighbours each, in turn, until the end of the row.
    The tile of one row has no X.
    """
    turns: tl.constexpr = x.shape[len(x.shape) - 1] // (threads * vector)
    if len(x.shape) == 1:
        if turns == 1:
            x = tl.reshape(x, [threads, vector])
        else:
            apart = tl.permute(tl.reshape(x, [turns, threads, vector]), [1, 0, 2])
            x = tl.reshape(apart, [threads, turns * vector])
    else:
        rows: tl.constexpr = x.shape[0]
        if turns == 1:
            x = tl.reshape(x, [rows, threads, vector])
        else:
            apart = tl.permute(tl.reshape(x, [rows, turns, threads, vector]), [0, 2, 1, 3])
            x = tl.reshape(apart, [rows, threads, turns * vector])
    return x
