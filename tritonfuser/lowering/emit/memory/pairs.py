"""Merges loads and stores of interleaved pairs into contiguous ones of twice as many elements.

By ``tl.load(p + x * 2)`` and ``tl.load(p + x * 2 + 1)`` a thread loads single elements, since no
two of a load are adjacent. By ``tl.load(p + x_pair)``, over both, it loads vectors. ``x`` may be
one side of a tile: ``tl.load(p + y * 40 + x_pair)``.
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
from ...tile.proven_runs import proven_run
from ...tile.tile import Tile
from ..expressions import load_text
from ..indexing.addresses import address, with_max_contiguous
from ..indexing.index_writer import IndexWriter
from ..lines import Line
from ..names import Name


@dataclass(eq=False)
class Access:
    """A load or store that is written.

    Attributes
    ----------
    line : Line
        Its line in the text.
    text : str
        The block that it loads or stores, as its tiles lie in registers.
    masks : frozenset of str
        The tiles whose masks it has.
    turned : Line or None
        The line that transposes what was loaded as the transposed block.
    """

    line: Line
    text: str
    masks: frozenset[str] = frozenset()
    turned: Line | None = None


@dataclass(frozen=True)
class _Pair:
    """What both elements of pairs have in common."""

    value: Value
    pair: Affine
    tile: Tile
    masks: frozenset[str]
    is_store: bool


class PairWriter:
    """Merges loads and stores of both elements of pairs, after the whole kernel is written."""

    def __init__(self, index: IndexWriter, nest: Nest) -> None:
        self._index, self._writer = index, index.writer
        self._tiles = _tiles_of(nest)
        self._grid = [tile for tile, _ in nest.grid]
        self._found: dict[_Pair, list[tuple[Half, Access]]] = {}

    def add(self, value: Value, offset: Affine, access: Access, is_store: bool) -> None:
        """Record a load or store without guards that was written."""
        if offset.loaded():
            return
        for tile in self._tiles:
            half = half_of(offset, tile.axis)
            if half is not None:
                pair = _Pair(value, half.pair, tile, access.masks, is_store)
                self._found.setdefault(pair, []).append((half, access))

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
        for pair, found in self._found.items():
            both = sorted(found, key=lambda each: each[0].is_second)
            if [half.is_second for half, _ in both] != [False, True]:
                continue
            accesses = [access for _, access in both]
            run = both[0][0].run(pair.tile.axis, self._positions(pair.tile))
            pointer = self._limited(address(self._index, pair.value, run), pair.tile, run)
            mask = self._mask(pair)
            first, last = sorted(place[id(access.line)] for access in accesses)
            instead |= {place[id(a.turned)]: [] for a in accesses if a.turned is not None}
            form = self._form(pair.tile)
            if pair.is_store:
                instead |= {first: [], last: _stored(accesses, pointer, mask, form)}
            else:
                run_name = self._writer.fresh(f"{pair.value.name}_pair")
                instead |= {first: _loaded(accesses, run_name, pointer, mask, form), last: []}
        if not instead:
            return lines
        kept = (instead.get(n, [lines[n]]) for n in range(top, count))
        return [*lines[:top], *lines[count:], *chain.from_iterable(kept)]

    def _form(self, tile: Tile) -> str:
        """Where the runs of pairs are in a block: all of it, its rows or its columns."""
        if self._index.axes.rank == 1:
            return ""
        return "row_" if tile.place == 1 else "column_"

    def _positions(self, tile: Tile) -> Axis:
        """The positions of both elements of all pairs of a tile, as an axis; written once."""
        axis = Axis(f"{tile.name}_pair", 2 * tile.axis.extent)
        if self._writer.find(axis) is None:
            text = self._index.tile_text
            wide = replace(tile, block=f"{tile.block} * 2")
            start = text.first(tile, self._grid.index(tile))
            self._writer.scopes[0].lines.append(
                Line(f"{axis.name} = {start} * 2 + {text.range(wide)}")
            )
            self._writer.bind(axis, Name(axis.name, DataType.Int32))
            self._index.terms.add(2 * (tile.end + tile.width))
        return axis

    def _limited(self, pointer: str, tile: Tile, run: Affine) -> str:
        """The addresses of runs, with no more neighbours than a thread may have."""
        wide = replace(tile, axis=self._positions(tile), width=2 * tile.width)
        is_limited = 0 < tile.neighbours < proven_run(run, wide)
        runs = {tile.place: tile.neighbours} if is_limited else {}
        return with_max_contiguous(pointer, runs, self._index.axes.rank)

    def _mask(self, pair: _Pair) -> str:
        """The mask of the runs: that of a pair's tile is of both elements."""
        names = (
            self._pair_mask(pair.tile) if name == pair.tile.name else f"{name}_mask"
            for name in sorted(pair.masks)
        )
        return " & ".join(names)

    def _pair_mask(self, tile: Tile) -> str:
        name = f"{tile.name}_pair_mask"
        if self._writer.find(name) is None:
            end = 2 * tile.mask_end
            self._index.terms.add_number(end)
            self._writer.scopes[0].lines.append(Line(f"{name} = {tile.name}_pair < {end}"))
            self._writer.bind(name, Name(name, DataType.Bool))
        return name


def _tiles_of(nest: Nest) -> tuple[Tile, ...]:
    """The tiles of a flat kernel whose positions may be of pairs; none of any other kernel."""
    first = [tile for tile in nest.tiles if tile != nest.rest]
    if nest.loop or {tile for tile, _ in nest.grid} != set(first):
        return ()
    plain = (t.block is not None and not t.is_behind and t.part is None for t in first)
    return tuple(first) if all(plain) else ()


def _loaded(accesses: Sequence[Access], run: str, pointer: str, mask: str, form: str) -> list[Line]:
    """The load of a run, and its elements by their places in pairs."""
    line = accesses[0].line
    names = ", ".join(access.text for access in accesses)
    load = replace(line, text=f"{run} = {load_text(pointer, mask)}")
    return [load, replace(line, text=f"{names} = split_{form}pairs({run})", loads="")]


def _stored(accesses: Sequence[Access], pointer: str, mask: str, form: str) -> list[Line]:
    """The store of both results, interleaved, as one contiguous run."""
    both = ", ".join(access.text for access in accesses)
    rest = f", mask={mask}" if mask else ""
    joined = "interleave_columns" if form == "column_" else "tl.interleave"
    return [replace(accesses[1].line, text=f"tl.store({pointer}, {joined}({both}){rest})")]
