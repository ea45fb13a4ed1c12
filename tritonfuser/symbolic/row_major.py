"""Indices in a shape and their row-major positions, as index expressions."""

from __future__ import annotations

from .index_expr import Affine
from .queries import assume_max


def linear(index: tuple[Affine, ...], sizes: tuple[int, ...]) -> Affine:
    """The row-major position of ``index`` in a shape."""
    total = index[0] if index else Affine()
    for item, size in zip(index[1:], sizes[1:], strict=True):
        total = total * size + item
    return total


def unravel(position: Affine, sizes: tuple[int, ...]) -> tuple[Affine, ...]:
    """The index in a shape of a row-major position; the inverse of ``linear``.

    For a shape without elements the result is arbitrary.
    """
    index: list[Affine] = []
    stride = 1
    for place, size in reversed(list(enumerate(sizes))):
        item = position // stride
        index.append(item if place == 0 else item % assume_max(size, 1))
        stride *= assume_max(size, 1)
    return tuple(reversed(index))
