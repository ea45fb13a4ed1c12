"""Whether memory that a run writes overlaps memory that it reads or writes elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import torch

Pair = tuple[int, int]


class Near:
    """Says of where tensors start whether what is written is too near to something else.

    It goes by ranges: from the first byte of a tensor to its last. Where it found all apart it
    keeps in ``apart``, so that a call with the same memory as the one before need not ask.

    Parameters
    ----------
    lengths : sequence of int
        Bytes from the first element of each tensor to the end of its last.
    written : sequence of int
        Which of them are written.
    same : collection of (int, int)
        Which may be one and the same, but not overlap otherwise.
    """

    def __init__(
        self, lengths: Sequence[int], written: Sequence[int], same: Sequence[Pair] = ()
    ) -> None:
        self.apart: tuple[int, ...] = ()
        self._lengths = tuple(lengths)
        others = [place for place, length in enumerate(lengths) if length]
        pairs = [(own, other) for own in written for other in others if own != other]
        self._pairs = [(*pair, pair in same) for pair in pairs if lengths[pair[0]]]

    def __call__(self, starts: tuple[int, ...]) -> bool:
        if self.overlap(starts) is not None:
            return True
        self.apart = starts
        return False

    def overlap(self, starts: Sequence[int]) -> Pair | None:
        """The first two that overlap, the one that is written first."""
        for own, other, may_be_same in self._pairs:
            start, begin = starts[own], starts[other]
            if may_be_same and start == begin:
                continue
            if start < begin + self._lengths[other] and begin < start + self._lengths[own]:
                return own, other
        return None


def is_apart(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether each element has a place of its own, as far as strides in order tell."""
    reached = 1
    for stride, size in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if stride < reached and size:
            return False
        reached = stride * size
    return True


def share(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether two tensors share memory: exact where they step alike, else by their ranges."""
    start = y.data_ptr() - x.data_ptr()
    if start >= _bytes(x) or -start >= _bytes(y) or x.device != y.device:
        return False
    if x.dtype != y.dtype or x.stride() != y.stride() or start % x.itemsize:
        return True
    dims = zip(x.stride(), x.shape, y.shape, strict=True)
    return _meets(start // x.itemsize, sorted((d for d in dims if d[0]), reverse=True))


def _meets(distance: int, dims: Sequence[tuple[int, int, int]]) -> bool:
    """Whether some steps along dims of (stride, size, size of the other) make up a distance."""
    if not dims:
        return distance == 0
    (stride, size, other), *rest = dims
    if stride <= 0:
        return True
    most = sum((max(n, m) - 1) * s for s, n, m in rest)
    low, high = -((most - distance) // stride), (distance + most) // stride
    steps = range(max(low, 1 - other), min(high, size - 1) + 1)
    return any(_meets(distance - step * stride, rest) for step in steps)


def _bytes(tensor: torch.Tensor) -> int:
    return reach(tensor.shape, tensor.stride(), tensor.dtype)


def reach(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> int:
    """Bytes from the first element to the end of the last."""
    if 0 in shape:
        return 0
    elements = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    return elements * dtype.itemsize
