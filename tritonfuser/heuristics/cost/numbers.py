"""The arithmetic of the cost model over floats; fitting passes the same over arrays."""

from __future__ import annotations

import math
from typing import Protocol

from .counts import Number


class Numbers(Protocol):
    """What ``kernel_time`` calls."""

    def minimum(self, a: Number, b: Number) -> Number: ...
    def maximum(self, a: Number, b: Number) -> Number: ...
    def where(self, condition: Number, a: Number, b: Number) -> Number: ...
    def log2(self, a: Number) -> Number: ...
    def ceil(self, a: Number) -> Number: ...
    def floor(self, a: Number) -> Number: ...


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


PLAIN = Floats()
