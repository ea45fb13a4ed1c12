"""The lines of a kernel's text, and the names of values in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath

from ...dtypes import DataType
from ...errors import SourceLoc


def place_text(loc: SourceLoc) -> str:
    """``model.py:12``: the file's last part with nothing but harmless characters in it.

    It becomes a comment or a part of a message: no quotes, no ``%``, nothing but ASCII.
    """
    file = re.sub(r"[^A-Za-z0-9_.<>-]", "_", PurePath(loc.file).name)
    return f"{file[-_LONGEST_FILE_NAME:]}:{loc.line}"


_LONGEST_FILE_NAME = 80


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text.

    Attributes
    ----------
    text : str
        The line, without indentation.
    loc : SourceLoc or None
        The user's line that it computes.
    depth : int
        Loops around it, within the function body.
    loads : str
        The tensor that it loads from; empty if none.
    stores : str
        The tensor that it stores to; empty if none.
    op : str
        The op whose index it checks; empty if none.
    """

    text: str
    loc: SourceLoc | None = None
    depth: int = 0
    loads: str = ""
    stores: str = ""
    op: str = ""

    @property
    def code(self) -> str:
        """The line with empty string literals: words in messages are no names."""
        return re.sub('"[^"]*"', '""', self.text) if '"' in self.text else self.text

    @property
    def asserts(self) -> bool:
        """Whether it ends the kernel with an error where a condition does not hold."""
        return self.code.startswith("tl.device_assert(")


class Beyond(Enum):
    """What a value is where a mask is off, in terms of what its loads give there."""

    LOADED = "what its one load gives"
    SCALED = "zero or an infinity where its one load gives that"
    ZERO = "zero where all of its loads give zero"
    DIFFERENCE = "that of what its one load gives and a number of its row"
    VANISHING = "zero where its one load gives -inf, or NaN as all of its row is"


@dataclass(frozen=True, slots=True)
class MaskedOut:
    """What is known of a value where masks are off.

    Attributes
    ----------
    loads : frozenset of str
        The masked loads that it is computed from.
    masks : frozenset of str
        The tiles of whose masks one not holding is enough.
    value : Beyond
        What it is, by what these loads give.
    """

    loads: frozenset[str]
    masks: frozenset[str]
    value: Beyond


@dataclass(frozen=True, slots=True)
class Name:
    """A Triton expression with a value.

    Attributes
    ----------
    text : str
        The expression: mostly a variable.
    dtype : DataType
        What it is in the kernel.
    dims : frozenset of str
        The kernel axes that it runs over.
    literal : bool
        Whether it is a number written out.
    held : DataType or None
        A narrower dtype that holds its numbers exactly.
    outside : MaskedOut or None
        What it is where masks do not hold, as far as that is known.
    """

    text: str
    dtype: DataType
    dims: frozenset[str] = frozenset()
    literal: bool = False
    held: DataType | None = None
    outside: MaskedOut | None = None
