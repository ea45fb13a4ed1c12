"""``Line``: a line of a kernel's text, with what it loads, stores or sums up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from ...dtypes import DataType
from ...errors import SourceLoc


def place_text(loc: SourceLoc) -> str:
    """A user's line as ``model.py:12``, for comments and messages in a kernel's text.

    Characters other than ASCII letters, digits and ``_.<>-`` become ``_``.
    """
    file = re.sub(r"[^A-Za-z0-9_.<>-]", "_", PurePath(loc.file).name)
    return f"{file[-_LONGEST_FILE_NAME:]}:{loc.line}"


_LONGEST_FILE_NAME = 80


@dataclass(frozen=True, slots=True)
class Block:
    """The elements that a load or a store moves at a time, as Triton gives them to threads.

    Attributes
    ----------
    places : frozenset of int
        The dims of a tile along which it has more than one element.
    fastest : int
        The dim along which neighbouring threads have neighbours in memory.
    bytes : int
        All elements together.
    dtype : DataType
        That of an element.
    """

    places: frozenset[int]
    fastest: int
    bytes: int
    dtype: DataType


@dataclass(frozen=True, slots=True)
class Summed:
    """A block that a line sums up along a dim.

    Attributes
    ----------
    text : str
        How the line does it: ``tl.sum(tv3, 1)``.
    block : str
        The block, as text.
    shape : str
        What says that two blocks have one shape.
    dtype : DataType
        What it is summed up in.
    dim : int
        The dim along which it is.
    """

    text: str
    block: str
    shape: str
    dtype: DataType
    dim: int

    def is_like(self, other: Summed) -> bool:
        """Whether another block is of the same shape, and summed up alike."""
        return (self.shape, self.dtype, self.dim) == (other.shape, other.dtype, other.dim)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a kernel's text.

    Attributes
    ----------
    text : str
        The line, without indentation.
    loc : SourceLoc or None
        The line of the user's program that it was made for.
    depth : int
        The number of blocks around it in the function body.
    loads : str
        The name of the tensor that it loads from. Empty without a load.
    stores : str
        The name of the tensor that it stores to. Empty without a store.
    op : str
        The op whose index it checks. Empty where it checks none.
    block : Block or None
        What it loads or stores. None for one element, and without a load or a store.
    sums : tuple of Summed
        The blocks whose sums it adds up, if that is all it does and it may be joined with another.
    """

    text: str
    loc: SourceLoc | None = None
    depth: int = 0
    loads: str = ""
    stores: str = ""
    op: str = ""
    block: Block | None = None
    sums: tuple[Summed, ...] = ()

    @property
    def code(self) -> str:
        """The line with string literals emptied: words of messages are not names."""
        return re.sub('"[^"]*"', '""', self.text) if '"' in self.text else self.text

    @property
    def asserts(self) -> bool:
        """Whether it is an assertion."""
        return self.code.startswith("tl.device_assert(")
