"""Loads of which neighbouring positions read the same element: one load for each run of them.

A weight of a channel lies at ``r // 12544``: 256 neighbours along ``r`` want the same element.
Loaded for each of them, it would take a load and the arithmetic of its index for every element.
"""

from __future__ import annotations

from collections.abc import Callable

from ....dtypes import DataType
from ....shapes.index_map import Guard
from ....symbolic.index_expr import Affine, Axis, Digit, digit
from ....symbolic.loaded_index import LoadedIndex
from ....symbolic.queries import is_known_equal
from ....symbolic.sizes import is_size
from ...tile.tile import Tile
from ..indexing.index_writer import IndexWriter
from ..lines import Line
from ..names import Name, Repeat, common_run

FEWEST = 4
"""Neighbours with the same offset from which on one load for all is worth its lines."""

PartOf = Callable[[Tile, int], str]
"""Of a tile and a number: the tile's positions divided by the number, each once, as text."""


def repeat_of(
    offset: Affine, guards: tuple[Guard, ...], tiles: tuple[Tile, ...], rank: int
) -> Repeat | None:
    """How a load repeats along the last tile; None where too few neighbours are at one offset."""
    blocked = [tile for tile in tiles if tile.block is not None and tile.axis in offset.axes()]
    last = max(blocked, key=lambda tile: tile.place, default=None)
    if last is None or last.place != rank - 1 or rank > 2 or last.scattered:
        return None
    if any(last.axis in guard.expr.axes() or guard.expr.loaded() for guard in guards):
        return None  # what is read at run time may differ from neighbour to neighbour
    if is_size(last.axis.extent):
        return None
    mine = [digit for digit, _ in offset.terms if digit.base == last.axis]
    others = Affine(tuple(t for t in offset.terms if t[0] not in mine))
    if last.axis in others.axes() or offset.loaded() or any(is_size(d.div) for d in mine):
        return None
    count = last.width
    while last.multiple % count or any(digit.div % count for digit in mine):
        count //= 2
    return Repeat(last, count) if count >= FEWEST else None


def without_division(position: Affine, tiles: tuple[Tile, ...]) -> tuple[Affine, Affine]:
    """A position as a sum of terms without a division and of terms that neighbours may share.

    ``r % 4096`` is ``r`` plus ``r // 4096 * -4096``. A division costs several instructions.
    """
    axes = {tile.axis for tile in tiles if tile.block is not None}
    fine, repeated = Affine((), position.const), Affine()
    for item, step in position.terms:
        base = item.base
        if not isinstance(base, Axis) or base not in axes:
            fine += Affine(((item, step),))
        elif not is_known_equal(item.div, 1):
            repeated += Affine(((item, step),))
        else:
            span = base.extent if item.mod is None else item.mod
            fine += digit(base) * step
            repeated -= digit(base, span) * (step * span)
    return fine, repeated


class RepeatWriter:
    """Writes the numbers of the runs of neighbours, and loads and positions that use them.

    Parameters
    ----------
    part : PartOf
        The positions of a tile by a number.
    """

    def __init__(self, index: IndexWriter, part: PartOf) -> None:
        self.writer = index.writer
        self.index = index
        self.part = part

    def axis(self, repeat: Repeat) -> Axis:
        """The numbers of the runs as an axis; written once, in the scope where the tile runs."""
        tile, count = repeat.tile, repeat.count
        key = ("repeat", tile.name, count)
        found = self.writer.find(key)
        if found is None:
            scope = self.writer.scope_for(frozenset({tile.name}))
            found = Name(self.writer.fresh(f"{tile.name}_lane"), DataType.Int32)
            scope.lines.append(Line(f"{found.text} = {self.part(tile, count)}"))
            scope.names[key] = found
            if tile.name in scope.axes:
                scope.axes |= {found.text}
        return Axis(found.text, -(-tile.axis.extent // count))

    def repeat(self, offset: Affine, guards: tuple[Guard, ...]) -> Repeat | None:
        """How a load repeats; None where too few neighbours are at one offset."""
        loaded = offset.loaded()
        if not loaded:
            tiles = self.index.axes.tiles_of(offset)
            return repeat_of(offset, guards, tiles, self.index.axes.rank)
        run = common_run([self.index.loaded(base) for base in loaded])
        if run is None or self.index.wide or any(base.dim is None for base in loaded):
            return None
        axis = run.repeat.tile.axis
        own = [digit for digit, _ in offset.terms if digit.base == axis]
        rest = Affine(tuple(t for t in offset.terms if t[0].base not in (axis, *loaded)))
        varies = axis in rest.axes() or rest.loaded() or any(is_size(d.div) for d in own)
        if varies or any(axis in g.expr.axes() or g.expr.loaded() for g in guards):
            return None
        return None if any(d.div % run.repeat.count for d in own) else run.repeat

    def offset(self, offset: Affine, repeat: Repeat) -> Affine:
        """An offset as a function of the run's number."""
        axis = self.axis(repeat)

        def by_run(item: Digit) -> Digit:
            if isinstance(item.base, LoadedIndex):
                return Digit(self._index(item.base), item.div, item.mod)
            if item.base != repeat.tile.axis:
                return item
            return Digit(axis, item.div // repeat.count, item.mod)

        return Affine(tuple((by_run(d), step) for d, step in offset.terms), offset.const)

    def _index(self, loaded: LoadedIndex) -> Axis:
        """An index that is read at run time, by the variable that has it for each run."""
        run = self.index.loaded(loaded).run
        assert run is not None and loaded.dim is not None
        return Axis(run.each.text, loaded.dim.extent)

    def mask(self, dims: frozenset[str], guards: tuple[Guard, ...], repeat: Repeat) -> str:
        """The mask of a load, of runs whose first element is inside."""
        if repeat.tile.name not in dims:
            return self.index.masks.name(dims, guards)
        rest = self.index.masks.name(dims - {repeat.tile.name}, guards)
        return repeat.mask(self.axis(repeat).name, rest)

    def position(self, position: Affine) -> str:
        """A position as a number; divisions are of one element of a run, not of each."""
        tiles = self.index.axes.tiles_of(position)
        fine, repeated = without_division(position, tiles)
        repeat = repeat_of(repeated, (), tiles, self.index.axes.rank)
        if repeat is None:
            return self.index.text(position)
        part = self.index.text(self.offset(repeated, repeat))
        spread = f"spread({part}, {repeat.count})"
        return spread if fine == Affine() else f"{self.index.text(fine)} + {spread}"
