"""Whether memory that a run writes overlaps other memory that it reads or writes."""

from __future__ import annotations

from collections.abc import Sequence

import torch

Pair = tuple[int, int]


class OverlapCheck:
    """Given the start addresses of tensors, says whether a written one overlaps another.

    Compared are ranges of addresses, from the first byte of a tensor to its last.

    Parameters
    ----------
    lengths : sequence of int
        Bytes from the start of the first element of each tensor to the end of its last.
    written : sequence of int
        Places of the tensors that are written.
    same : collection of (int, int)
        Pairs of places that may start at one address, but not overlap otherwise.

    Attributes
    ----------
    disjoint : tuple of int
        The addresses last found not to overlap, so that a call with the same need not check.
    """

    def __init__(
        self, lengths: Sequence[int], written: Sequence[int], same: Sequence[Pair] = ()
    ) -> None:
        self.disjoint: tuple[int, ...] = ()
        self._lengths = tuple(lengths)
        others = [place for place, length in enumerate(lengths) if length]
        pairs = [(own, other) for own in written for other in others if own != other]
        self._pairs = [(*pair, pair in same) for pair in pairs if lengths[pair[0]]]

    def __call__(self, starts: tuple[int, ...]) -> bool:
        if self.overlap(starts) is not None:
            return True
        self.disjoint = starts
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


def has_distinct_elements(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether no two elements share memory. Sufficient, not necessary: strides must nest."""
    extent = 1
    for stride, size in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if stride < extent and size:
            return False
        extent = stride * size
    return True


def tensors_overlap(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether two tensors share memory: exact for equal strides, else by their ranges."""
    start = y.data_ptr() - x.data_ptr()
    if start >= _bytes(x) or -start >= _bytes(y) or x.device != y.device:
        return False
    if x.dtype != y.dtype or x.stride() != y.stride() or start % x.itemsize:
        return True
    dims = zip(x.stride(), x.shape, y.shape, strict=True)
    return _is_reachable(start // x.itemsize, sorted((d for d in dims if d[0]), reverse=True))


def _is_reachable(distance: int, dims: Sequence[tuple[int, int, int]]) -> bool:
    """Whether steps along both tensors can add up to a distance, in elements.

    ``dims`` holds (stride, size, size of the other tensor), largest stride first.
    """
    if not dims:
        return distance == 0
    (stride, size, other), *rest = dims
    if stride <= 0:
        return True
    most = sum((max(n, m) - 1) * s for s, n, m in rest)
    low, high = -((most - distance) // stride), (distance + most) // stride
    steps = range(max(low, 1 - other), min(high, size - 1) + 1)
    return any(_is_reachable(distance - step * stride, rest) for step in steps)


def _bytes(tensor: torch.Tensor) -> int:
    return extent_bytes(tensor.shape, tensor.stride(), tensor.dtype)


def extent_bytes(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> int:
    """Bytes from the start of the first element to the end of the last."""
    if 0 in shape:
        return 0
    elements = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    return elements * dtype.itemsize
