"""Merges loads and stores of interleaved pairs into contiguous ones of twice as many elements.

``tl.load(p + x * 2)`` and ``tl.load(p + x * 2 + 1)`` are a load for each element: no two that a
thread has are neighbours. Of the run ``tl.load(p + x_pair)`` threads load vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ....dtypes import DataType
from ....ir import Value
from ....symbolic.index_expr import Affine, Axis
from ...access.pairs import Half, half_of
from ...tile.nest import Nest
from ...tile.tile import Tile
from ..expressions import load_text
from ..index_text import IndexWriter
from ..lines import Line, Name


@dataclass(eq=False)
class _Access:
    """A load or store that is written: its line, and the variable that it loads or stores."""

    half: Half
    line: Line
    text: str


class PairWriter:
    """Merges loads and stores of both elements of pairs, after the whole kernel is written."""

    def __init__(self, index: IndexWriter, nest: Nest) -> None:
        self._index, self._writer = index, index.writer
        self._tile = _tile_of(nest)
        self._found: dict[tuple[object, ...], list[_Access]] = {}

    def add(self, value: Value, offset: Affine, line: Line, text: str, is_store: bool) -> None:
        """Take a note of a load or store that was written."""
        if self._tile is None:
            return
        half = half_of(offset, self._tile.axis)
        if half is not None and offset.axes() == {self._tile.axis} and not offset.loaded():
            rest = line.text.partition(", mask=")[2].rstrip(")")
            key = (value, half.pair, rest, is_store)
            self._found.setdefault(key, []).append(_Access(half, line, text))

    def joined(self, lines: list[Line], top: int) -> list[Line]:
        """The lines of a kernel, with both elements of pairs loaded and stored as runs.

        Parameters
        ----------
        lines : list of Line
            Of the function's outermost scope; the positions of runs are written behind them.
        top : int
            The lines that come before all loads and stores.
        """
        count, place = len(lines), {id(line): n for n, line in enumerate(lines)}
        instead: dict[int, list[Line]] = {}
        for (value, _, _, is_store), accesses in self._found.items():
            halves = [a for wanted in (False, True) for a in accesses if a.half.is_second is wanted]
            if [a.half.is_second for a in halves] != [False, True]:
                continue
            assert isinstance(value, Value) and self._tile is not None
            run = halves[0].half.run(self._tile.axis, self._positions(self._tile))
            pointer = self._index.address(value, run)
            mask = self._mask(self._tile) if ", mask=" in halves[0].line.text else ""
            first, last = sorted(place[id(access.line)] for access in halves)
            if is_store:
                instead |= {first: [], last: _stored(halves, pointer, mask)}
            else:
                run_name = self._writer.fresh(f"{value.name}_pair")
                instead |= {first: _loaded(halves, run_name, pointer, mask), last: []}
        if not instead:
            return lines
        kept = (instead.get(n, [lines[n]]) for n in range(top, count))
        return [*lines[:top], *lines[count:], *chain.from_iterable(kept)]

    def _positions(self, tile: Tile) -> Axis:
        """The positions of both elements of all pairs of a tile, as an axis; written once."""
        axis = Axis(f"{tile.name}_pair", 2 * tile.axis.extent)
        if self._writer.find(axis) is None:
            wide = replace(tile, block=f"{tile.block} * 2")
            start = f"{self._index.program_text(0)} * ({wide.block})"
            self._writer.scopes[0].lines.append(
                Line(f"{axis.name} = {start} + {self._index.range(wide)}")
            )
            self._writer.bind(axis, Name(axis.name, DataType.Int32))
            self._index.terms.add(2 * (tile.end + tile.width))
        return axis

    def _mask(self, tile: Tile) -> str:
        name = f"{tile.name}_pair_mask"
        if self._writer.find(name) is None:
            end = 2 * tile.mask_end
            self._index.terms.add_number(end)
            self._writer.scopes[0].lines.append(Line(f"{name} = {tile.name}_pair < {end}"))
            self._writer.bind(name, Name(name, DataType.Bool))
        return name


def _tile_of(nest: Nest) -> Tile | None:
    """The tile of a flat kernel whose positions may be of pairs; None of any other kernel."""
    first = [tile for tile in nest.tiles if tile != nest.rest]
    if len(first) != 1 or nest.loop or [tile for tile, _ in nest.grid] != first:
        return None
    (tile,) = first
    return tile if tile.block is not None and not tile.is_behind and tile.part is None else None


def _loaded(halves: Sequence[_Access], run: str, pointer: str, mask: str) -> list[Line]:
    """The load of a run, and its elements by their places in pairs."""
    line = halves[0].line
    names = ", ".join(access.text for access in halves)
    load = replace(line, text=f"{run} = {load_text(pointer, mask)}")
    return [load, replace(line, text=f"{names} = split_pairs({run})", loads="")]


def _stored(halves: Sequence[_Access], pointer: str, mask: str) -> list[Line]:
    """The store of both results, interleaved, as one contiguous run."""
    both = ", ".join(access.text for access in halves)
    rest = f", mask={mask}" if mask else ""
    last = halves[1].line
    return [replace(last, text=f"tl.store({pointer}, tl.interleave({both}){rest})")]
