"""The lines of a kernel's text, and the names of values in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath

from ...dtypes import DataType
from ...errors import SourceLoc
from ..tile.tile import Tile


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


class Beyond(Enum):
    """How a value outside of masks follows from ``other``, which its masked loads give there."""

    LOADED = "what its one load gives"
    SCALED = "zero or an infinity where its one load gives that"
    ZERO = "zero where all of its loads give zero"
    DIFFERENCE = "the difference of what its one load gives and a number of its row"
    VANISHING = "zero where its one load gives -inf; NaN where all of its row is NaN"


@dataclass(frozen=True, slots=True)
class MaskedOut:
    """What is known of a value at positions where a mask is false.

    Attributes
    ----------
    loads : frozenset of str
        The variables of the masked loads that it is computed from.
    masks : frozenset of str
        The tiles with a mask. The value is known wherever one of these masks is false.
    value : Beyond
        How it follows from what the loads give.
    """

    loads: frozenset[str]
    masks: frozenset[str]
    value: Beyond


@dataclass(frozen=True, slots=True)
class Repeat:
    """Every ``count`` neighbours along a tile have the same, from the tile's start on."""

    tile: Tile
    count: int

    def mask(self, number: str, rest: str) -> str:
        """The mask of runs whose first element is inside, and ``rest``; empty for none.

        Parameters
        ----------
        number : str
            The variable of the runs' numbers.
        """
        if not self.tile.masked:
            return rest
        inside = f"({number} * {self.count} < {self.tile.mask_end})"
        return f"{rest} & {inside}" if rest else inside[1:-1]


@dataclass(frozen=True, slots=True)
class Run:
    """What neighbours have in common, as a variable with one element for each run of them.

    Attributes
    ----------
    each : Name
        The variable.
    repeat : Repeat
        Which neighbours.
    number : str
        The variable of the runs' numbers.
    """

    each: Name
    repeat: Repeat
    number: str


@dataclass(frozen=True, slots=True)
class Name:
    """A Triton expression with a value.

    Attributes
    ----------
    text : str
        The expression, in most cases a variable.
    dtype : DataType
        Its dtype in the kernel.
    dims : frozenset of str
        The kernel axes along which it varies.
    literal : bool
        Whether it is a number literal.
    held : DataType or None
        A narrower dtype that represents its values exactly.
    outside : MaskedOut or None
        What is known of it where masks are false. None where nothing is.
    run : Run or None
        What it is spread from. None where neighbours may differ.
    """

    text: str
    dtype: DataType
    dims: frozenset[str] = frozenset()
    literal: bool = False
    held: DataType | None = None
    outside: MaskedOut | None = None
    run: Run | None = None


def common_run(names: Sequence[Name]) -> Run | None:
    """How neighbours have all of these in common; None where they may differ in one."""
    found = next((name.run for name in names if name.run is not None), None)
    if found is None:
        return None
    along = [name.run for name in names if found.repeat.tile.name in name.dims]
    same = all(run is not None and run.repeat == found.repeat for run in along)
    return found if same else None
