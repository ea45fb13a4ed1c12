"""``Name``: the expression of a value in a kernel's text, with what is known of the value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ...dtypes import DataType
from ..tile.tile import Tile


class Beyond(Enum):
    """The value outside of masks, as a function of ``other`` of the masked loads it comes from."""

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
