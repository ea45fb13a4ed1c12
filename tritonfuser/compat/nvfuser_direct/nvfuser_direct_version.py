"""``Version``: the version of nvFuser that we stand for, compared as versions are."""

from __future__ import annotations

import re
from typing import Any


class Version(str):
    """A version as a string; compares with strings and ``packaging`` versions by number.

    >>> Version("0.2.36+tritonfuser") >= "0.2.34"
    True
    """

    __slots__ = ()

    @staticmethod
    def _key(version: Any) -> tuple[tuple[int, ...], str]:
        """Release numbers without trailing zeros, then the local part."""
        public, _, local = str(version).partition("+")
        numbers = [int(number) for number in re.findall(r"\d+", public)]
        while numbers and not numbers[-1]:
            numbers.pop()
        return tuple(numbers), local

    def __lt__(self, other: Any) -> bool:
        return self._key(self) < self._key(other)

    def __le__(self, other: Any) -> bool:
        return self._key(self) <= self._key(other)

    def __gt__(self, other: Any) -> bool:
        return self._key(self) > self._key(other)

    def __ge__(self, other: Any) -> bool:
        return self._key(self) >= self._key(other)

    def __eq__(self, other: object) -> bool:
        return self._key(self) == self._key(other)

    def __ne__(self, other: object) -> bool:
        return self._key(self) != self._key(other)

    def __hash__(self) -> int:
        return hash(self._key(self))


__version__ = Version("0.2.36+tritonfuser")


def version() -> Version:
    """The version of nvFuser's frontend that is understood."""
    return __version__
