"""Sums of tiles as a GPU makes them: by halves, which rounds as much as lanes that add in pairs.

NumPy adds rows one by one where the axis is not the innermost one in memory, and loses digits that
a kernel on a GPU keeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def tree_sum(data: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """``np.sum``, floats by halves: ``[a, b, c, d] -> [a + c, b + d] -> [a + b + c + d]``."""
    data = np.asarray(data)
    rows_last = axis is None or axis % max(data.ndim, 1) == data.ndim - 1
    if data.dtype.kind not in "fc" or (rows_last and data.flags.c_contiguous):
        return np.sum(data, axis=axis, keepdims=keepdims)  # pairwise as it is
    part = np.moveaxis(data, axis, 0) if axis is not None else data.reshape(-1)
    while len(part) > 1 and len(part) % 2 == 0:
        half = len(part) // 2
        part = part[:half] + part[half:]
    total = np.sum(part, axis=0)
    if not keepdims:
        return total
    return total.reshape((1,) * data.ndim) if axis is None else np.expand_dims(total, axis)
