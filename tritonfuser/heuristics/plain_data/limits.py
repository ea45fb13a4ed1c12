"""Limits of fields, as data beside their types: ``Annotated[int, Within(1, 16)]``.

``codec.py`` checks values by them, ``schema.py`` writes them into the JSON Schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...errors import ParamsError
from ..integers import is_power_of_two

MOST_INT = 2**31 - 1
"""Of numbers that nothing else limits: what an index of 32 bits holds."""


@dataclass(frozen=True, slots=True)
class Within:
    """Limits of an int.

    Attributes
    ----------
    least, most : int
        The range, both ends included.
    powers_of_two : bool
        Only powers of two.
    also : tuple of int
        Values outside of the range that have a meaning of their own.
    """

    least: int
    most: int = MOST_INT
    powers_of_two: bool = False
    also: tuple[int, ...] = ()

    def __str__(self) -> str:
        """What an error expects: ``0, or a power of two, 1 to 32``."""
        most = "or more" if self.most == MOST_INT else f"to {self.most}"
        alone = "".join(f"{value}, or " for value in self.also)
        return f"{alone}{'a power of two, ' * self.powers_of_two}{self.least} {most}"

    def has(self, value: int) -> bool:
        """Whether a value is within them."""
        fits = self.least <= value <= self.most
        return value in self.also or (fits and (not self.powers_of_two or is_power_of_two(value)))

    def check(self, value: Any, where: str) -> None:
        """Raise a ParamsError that names the field by ``where``."""
        if not self.has(value):
            raise ParamsError(f"{where}: expected {self}, got {value}")

    @property
    def values(self) -> list[int]:
        """All powers of two within them, and the others."""
        found = (1 << n for n in range(self.least.bit_length() - 1, self.most.bit_length()))
        return [*self.also, *(n for n in found if self.least <= n <= self.most)]


@dataclass(frozen=True, slots=True)
class AtMostItems:
    """The limit of the length of a tuple."""

    count: int

    def check(self, value: Any, where: str) -> None:
        """Raise a ParamsError that names the field by ``where``."""
        if len(value) > self.count:
            raise ParamsError(f"{where}: expected {self.count} items at most, got {len(value)}")


@dataclass(frozen=True, slots=True)
class Distinct:
    """No item of a tuple is there twice."""

    def check(self, value: Any, where: str) -> None:
        """Raise a ParamsError that names the field by ``where``."""
        for place, item in enumerate(value):
            if item in value[:place]:
                raise ParamsError(f"{where}[{place}]: expected each item once, got {item} again")
