"""Values that are read at run time and used as indices, and what such an index may be."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum

from ..errors import SourceLoc


class Outside(Enum):
    """What an index outside of its dim does, where nothing raises."""

    CLAMPED = "clamped"
    """It is clamped to the nearest index of the dim, so that no read leaves the tensor."""
    WRAPPED = "wrapped"
    """-1 is the last index; then it is clamped."""
    GUARDED = "guarded"
    """A guard keeps what is at it from being used."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The dim that a value read at run time is an index of.

    Attributes
    ----------
    extent : int
        Its elements.
    outside : Outside
        What an index outside of it does.
    op : str
        The op that indexes, for messages.
    """

    extent: int
    outside: Outside
    op: str

    def __hash__(self) -> int:
        return hash((self.extent, self.outside, self.op))

    def __eq__(self, other: object) -> bool:
        # By hash first: extents that vary may be equal without being the same expression.
        if not isinstance(other, Indexed) or hash(self) != hash(other):
            return False
        return (self.extent, self.outside, self.op) == (other.extent, other.outside, other.op)


@dataclass(frozen=True, slots=True)
class LoadedIndex:
    """A value read at run time and used as an index.

    Attributes
    ----------
    key : Hashable
        What tells the reader which value.
    dim : Indexed or None
        The dim that it is an index of. None where nothing is to be checked.
    loc : SourceLoc or None
        The user's line that indexes, for messages. Not compared.
    """

    key: Hashable
    dim: Indexed | None = None
    loc: SourceLoc | None = field(default=None, compare=False)

    @property
    def extent(self) -> int | None:
        """The elements of its dim, where what is read is made an index of one of them."""
        if self.dim is None or self.dim.outside is Outside.GUARDED:
            return None
        return self.dim.extent
