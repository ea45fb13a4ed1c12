"""The arithmetic of the cost model over floats, and over arrays: an entry for each kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from .counts import Number


class Numbers(Protocol):
    """What the model calls."""

    def minimum(self, a: Number, b: Number) -> Number: ...
    def maximum(self, a: Number, b: Number) -> Number: ...
    def where(self, condition: Number, a: Number, b: Number) -> Number: ...
    def log2(self, a: Number) -> Number: ...
    def ceil(self, a: Number) -> Number: ...
    def floor(self, a: Number) -> Number: ...


class Lookups(Numbers, Protocol):
    """What counting calls beside that."""

    def any(self, conditions: Number) -> bool: ...


class Floats:
    """Of single floats."""

    minimum = staticmethod(min)
    maximum = staticmethod(max)
    log2 = staticmethod(math.log2)
    ceil = staticmethod(math.ceil)
    floor = staticmethod(math.floor)

    @staticmethod
    def where(condition: bool, a: float, b: float) -> float:
        return a if condition else b

    @staticmethod
    def any(condition: bool) -> bool:
        return condition


class Arrays:
    """Of arrays of numpy."""

    minimum: Callable[..., Number] = staticmethod(np.minimum)
    maximum: Callable[..., Number] = staticmethod(np.maximum)
    log2: Callable[..., Number] = staticmethod(np.log2)
    ceil: Callable[..., Number] = staticmethod(np.ceil)
    floor: Callable[..., Number] = staticmethod(np.floor)

    @staticmethod
    def where(condition: Number, a: Number, b: Number) -> Number:
        if isinstance(condition, np.ndarray):
            return np.where(condition, a, b)
        return a if condition else b  # the same for all kernels: no array is needed

    @staticmethod
    def any(conditions: Number) -> bool:
        return bool(np.any(conditions))

    @staticmethod
    def each(of: Callable[..., float], *given: Number) -> Number:
        """What a function of floats gives for each kernel. Kernels have few different numbers, as
        sides of tiles, so it is asked once for equal ones."""
        count = max((each.size for each in given if isinstance(each, np.ndarray)), default=0)
        if not count:
            return of(*given)
        columns = (
            each.tolist() if isinstance(each, np.ndarray) else [each] * count for each in given
        )
        numbers = [*zip(*columns, strict=True)]
        found = {key: of(*key) for key in dict.fromkeys(numbers)}
        return np.fromiter(map(found.__getitem__, numbers), float, count)


PLAIN = Floats()
ARRAYS = Arrays()
