"""Quotients and remainders of positions as text; by sizes that vary, as multiplications.

Of a number that is written out the compiler makes a multiplication itself. A division by one that
it does not know takes some twenty instructions, of each element.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf

from ....device import VECTOR_BYTES
from ....dtypes import DataType
from ....symbolic.index_expr import Axis, Base, Digit
from ....symbolic.loaded_index import LoadedIndex
from ....symbolic.queries import is_known_equal, is_known_less, is_known_multiple, known_divisor
from ....symbolic.sizes import as_atom, is_size
from ...device_lib.division_functions import LEAST_DIVISOR
from ...kernel_source import InverseArg
from ...tile.tile import Tile
from ..lines import Line
from ..names import Name
from ..writer import Writer

_INVERSE = re.compile(r"\b(size\d+)(_long)?_inverse\b")


def inverses_in(text: str) -> tuple[InverseArg, ...]:
    """The arguments that a text divides with, each once."""
    found = dict.fromkeys((size, bool(long)) for size, long in _INVERSE.findall(text))
    return tuple(
        InverseArg(size, DataType.Int if long else DataType.Int32, is_shift)
        for size, long in found
        for is_shift in (False, True)
    )


class Divisions:
    """Writes quotients and remainders of positions, each once.

    Parameters
    ----------
    tiles : mapping
        The kernel axes by their names.
    wide : bool
        Whether positions are computed in 64 bits.
    """

    def __init__(self, writer: Writer, tiles: Mapping[str, Tile], wide: bool) -> None:
        self.writer = writer
        self.tiles = tiles
        self.wide = wide

    def quotient(self, item: Digit, text: str, dims: frozenset[str]) -> str:
        """``base // div``, of the base's text.

        Parameters
        ----------
        dims : frozenset of str
            The axes that it runs over.
        """
        same = self._equal_neighbours(item, dims)
        if not _is_open(item.base, item.div) or same is None:
            return f"{text} // {item.div}"
        return self._product(text, item.div, same)

    def residue(self, item: Digit, text: str, wanted: str, dims: frozenset[str]) -> str:
        """``base // div % mod``, of the quotient's text.

        Parameters
        ----------
        wanted : str
            What names of the series begin with.
        dims : frozenset of str
            The axes that it runs over.
        """
        mod, same = item.mod, self._equal_neighbours(item, dims)
        assert mod is not None
        steps = self._neighbours(item.base, mod, dims) if is_known_equal(item.div, 1) else 1
        if not _is_open(item.base, mod) or same is None or steps is None:
            return f"remainder({text}, {mod})"
        if not text.isidentifier():
            text = self.define(Digit(item.base, item.div), text, wanted, dims)
        above = Digit(item.base, item.div * mod)
        found = self.writer.find(above)
        if found is None:
            whole = self.define(above, self._product(text, mod, max(same, steps)), wanted, dims)
        else:
            whole = found.text
        if steps > 1:
            return f"residue({text}, {whole}, {mod}, {steps})"
        return f"{text} - {whole} * {mod}"

    def define(self, item: Digit, text: str, wanted: str, dims: frozenset[str]) -> str:
        """Write a digit's line, and bind its name."""
        scope = self.writer.scope_for(dims)
        name = self.writer.numbered(wanted)
        scope.lines.append(Line(f"{name} = {text}"))
        scope.names[item] = Name(name, DataType.Int32, dims)
        return name

    def _product(self, text: str, divisor: int, same: int) -> str:
        """``x // divisor`` as a multiplication; ``same`` neighbours have equal quotients."""
        size = f"{as_atom(divisor)}{'_long' if self.wide else ''}"
        told = f", {same}" if same > 1 else ""
        return f"quotient({text}, {size}_inverse, {size}_shift{told})"

    def _equal_neighbours(self, item: Digit, dims: frozenset[str]) -> int | None:
        """How many neighbours along a tile have one quotient by ``div``, from each multiple on."""
        return self._neighbours(item.base, item.div, dims)

    def _neighbours(self, base: Base, divisor: int, dims: frozenset[str]) -> int | None:
        """A power of two that divides a number, of as many neighbours as a thread may load at once.

        1 where it is not known to be even, and where a program has one position. None where Triton
        sees more of a division than is known here.
        """
        known = known_divisor(divisor)
        power = min(known & -known, VECTOR_BYTES)
        tile = self.tiles.get(base.name) if isinstance(base, Axis) else None
        if power == 1 or not dims or (tile is not None and tile.block is None):
            return 1
        if tile is None or tile.scattered or tile.part is not None:
            return None
        power = int(min(power, tile.width, tile.neighbours or inf))
        return power if is_known_multiple(tile.start, power) else None


def _is_open(base: Base, divisor: int) -> bool:
    """Whether the divisor is a size that varies, of which the host passes the inverse.

    What is read at run time may be negative.
    """
    least = is_known_less(LEAST_DIVISOR - 1, divisor)
    return is_size(divisor) and least and not isinstance(base, LoadedIndex)
