"""Index expressions, masks and guards as Triton text."""

from __future__ import annotations

from ...dtypes import DataType
from ...symbolic.index_expr import Affine, Axis, Base, Bounded, Digit, Loaded, digit, unbound
from ...symbolic.sizes import hint, same, surely_below
from ..tile.tile import Tile
from .writer import Line, Name, Writer


def signed(number: int) -> tuple[str, int]:
    """A term's sign and what comes behind it; a size of whatever sign is added."""
    return ("-", -number) if surely_below(number, 0) else ("+", number)


def _covers(positions: int, extent: int) -> bool:
    return surely_below(extent - 1, positions)


class IndexWriter:
    """Writes index expressions, naming each digit once; in 64 bits where ``wide``."""

    def __init__(self, writer: Writer, tiles: tuple[Tile, ...], wide: bool) -> None:
        self.writer = writer
        self.wide = wide
        self.tiles = {tile.name: tile for tile in tiles}

    @property
    def rank(self) -> int:
        """Dims of a block."""
        places = (tile.place for tile in self.tiles.values() if tile.block is not None)
        return 1 + max(places, default=-1)

    def met(self, expr: Affine) -> tuple[Tile, ...]:
        """The tiles, of those that share a row the one that an expression runs over."""
        names = {axis.name for axis in expr.axes()}
        row = [tile for tile in self.tiles.values() if tile.start or tile.stop is not None]
        return tuple(t for t in self.tiles.values() if t not in row or t.name in names)

    def dims(self, expr: Affine) -> frozenset[str]:
        """The tile axes an expression runs over, one-position axes included."""
        names = {axis.name for axis in expr.axes()}
        for loaded in expr.loaded():
            found = self.writer.find(loaded.key)
            names |= found.dims if found is not None else frozenset()
        return frozenset(names)

    def text(self, expr: Affine) -> str:
        """``x * 4096 + r1 - 3``."""
        expr = unbound(expr)
        parts: list[str] = []
        for item, coefficient in sorted(expr.terms, key=lambda term: -abs(hint(term[1]))):
            name = self._digit(item)
            sign, number = signed(coefficient)
            factor = "" if same(number, 1) else f" * {number}"
            parts.append(f"{sign} {name}{factor}")
        if not same(expr.const, 0) or not parts:
            parts.append(" ".join(map(str, signed(expr.const))))
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else f"-{text[2:]}"

    def _digit(self, item: Digit) -> str:
        found = self.writer.find(item)
        if found is not None:
            return found.text
        base = item.base
        if isinstance(base, Axis):
            text, wanted, dims = base.name, base.name, frozenset((base.name,))
            whole = item.mod is None or _covers(item.div * item.mod, base.extent)
        else:
            dims = self.dims(Affine(((item, 1),)))
            wanted = "i"
            whole = item.mod is None or (
                isinstance(base, Bounded) and _covers(item.div * item.mod, base.extent)
            )
            text = self._base(base)
        if same(item.div, 1) and whole:
            return text
        if not same(item.div, 1):
            text = f"{text} // {item.div}"
        if not whole:
            text = f"{text} % {item.mod}"
        scope = self.writer.scope_for(dims)
        name = self.writer.numbered(wanted)
        scope.lines.append(Line(f"{name} = {text}"))
        scope.names[item] = Name(name, DataType.Int32, dims)
        return name

    def _base(self, base: Base) -> str:
        if isinstance(base, Loaded):
            found = self.writer.find(base.key)
            assert found is not None, "an index is written before the value it reads"
            short = self.wide and found.dtype.info.bits < 64
            return f"{found.text}.to(tl.int64)" if short else found.text
        expr = base.expr if isinstance(base, Bounded) else digit(base)
        return f"({self.text(expr)})"

    def mask(self, dims: frozenset[str]) -> list[str]:
        """The names of the masks that a tile over these axes needs."""
        return [f"{d}_mask" for d in sorted(dims) if d in self.tiles and self.tiles[d].masked]

    def blocked(self, dims: frozenset[str]) -> frozenset[str]:
        """Those of the axes that a program has a whole block of positions on."""
        return frozenset(d for d in dims if d in self.tiles and self.tiles[d].block is not None)

    def shape(self, dims: frozenset[str]) -> str:
        """The block shape of a value over these axes, ``[XBLOCK, 1]``."""
        sizes = ["1"] * self.rank
        for tile in self.tiles.values():
            if tile.block is not None and tile.name in dims:
                sizes[tile.place] = str(tile.block)
        return f"[{', '.join(sizes)}]"

    def spread(self, text: str, dims: frozenset[str], always: bool = False) -> str:
        """An address as a block over these axes, all the same; ``always`` also over none."""
        if not always and not self.blocked(dims):
            return text
        return f"{text} + tl.zeros({self.shape(dims)}, tl.int32)"
