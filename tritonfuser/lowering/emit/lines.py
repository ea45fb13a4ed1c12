"""What a kernel's text is made of: lines, and names of values."""

from __future__ import annotations

from dataclasses import dataclass

from ...dtypes import DataType
from ...errors import SourceLoc


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
    op : str
        The op whose index it checks; empty if none.
    """

    text: str
    loc: SourceLoc | None = None
    depth: int = 0
    loads: str = ""
    op: str = ""


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
    """

    text: str
    dtype: DataType
    dims: frozenset[str] = frozenset()
    literal: bool = False
