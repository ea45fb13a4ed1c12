"""Index expressions, masks and guards as Triton text."""

from __future__ import annotations

from collections.abc import Mapping

from ...dtypes import DataType
from ...heuristics.integers import ceil_div
from ...ir import Value
from ...shapes import INT32_LIMIT
from ...symbolic.index_expr import Affine, Axis, Base, Bounded, Digit, digit, strip_bounds
from ...symbolic.loaded_index import Loaded
from ...symbolic.queries import is_known_equal, is_known_less, is_known_multiple
from ...symbolic.sizes import hint, is_size
from ..access.read_footprint import Guards, Read
from ..tile.proven_runs import proven_run
from ..tile.tile import Tile
from .divisions import Divisions
from .guard_ranges import GuardRanges
from .lines import Line, Name
from .memory.loaded_indices import bounds_assertion, safe_index, safe_index_dtype
from .term_bounds import TermBounds
from .writer import Writer


def signed(number: int) -> tuple[str, int]:
    """The sign of a coefficient and its magnitude; "+" for a size of unknown sign."""
    return ("-", -number) if is_known_less(number, 0) else ("+", number)


def _covers(positions: int, extent: int) -> bool:
    return is_known_less(extent - 1, positions)


def _threshold(item: Digit) -> tuple[Affine, int] | None:
    """``(expr, least)`` where a digit is 1 for ``expr >= least`` and else 0; None for others.

    That is a quotient of a sum that is less than twice the divisor.
    """
    base = item.base
    if not isinstance(base, Affine) or item.mod is not None or base.range is None:
        return None
    low, high = base.range
    if not is_known_less(-1, low) or not is_known_less(high, 2 * item.div):
        return None
    return base - base.const, item.div - base.const


class IndexWriter:
    """Writes index expressions, masks and block shapes. Each digit of an axis gets one variable.

    Values that an expression reads at run time (``Loaded``) must be bound in ``writer`` before.

    Parameters
    ----------
    writer : Writer
        The text of the kernel.
    tiles : tuple of Tile
        The kernel axes.
    wide : bool
        Whether positions are computed in 64 bits.
    check_bounds : bool
        Whether kernels assert that values read at run time are indices of their dims.
    grid : mapping of str to int, optional
        The axes of the grid by name, each with its number (of ``tl.program_id``). Empty where no
        value is computed once for a whole tile, see ``dims``.
    program : str
        The variable with the number of the tile. Empty where that is the program id.
    terms : TermBounds, optional
        Collects the bounds of all integer terms.
    """

    def __init__(
        self,
        writer: Writer,
        tiles: tuple[Tile, ...],
        wide: bool,
        check_bounds: bool = False,
        grid: Mapping[str, int] | None = None,
        program: str = "",
        terms: TermBounds | None = None,
    ) -> None:
        self.writer = writer
        self.wide = wide
        self.check_bounds = check_bounds
        self.tiles = {tile.name: tile for tile in tiles}
        self.ranges = GuardRanges(self.tiles)
        self.divisions = Divisions(writer, self.tiles, wide)
        self.grid = grid or {}
        self.program = program
        self.terms = TermBounds() if terms is None else terms

    @property
    def rank(self) -> int:
        """The number of dims of a block in registers."""
        places = (tile.place for tile in self.tiles.values() if tile.block is not None)
        return 1 + max(places, default=-1)

    def tiles_of(self, expr: Affine) -> tuple[Tile, ...]:
        """The kernel's tiles, without those of a row that the expression does not run over."""
        names = {axis.name for axis in expr.axes()}
        row = [tile for tile in self.tiles.values() if tile.is_behind or tile.stop is not None]
        return tuple(t for t in self.tiles.values() if t not in row or t.name in names)

    def dims(self, expr: Affine) -> frozenset[str]:
        """The kernel axes along which an expression varies within a program's tile.

        Axes along which a program has one position count too.
        """
        varying = (Affine((term,)) for term in expr.terms if not self._is_same_in_tile(term[0]))
        names = {axis.name for term in varying for axis in term.axes()}
        for loaded in expr.loaded():
            found = self.writer.find(loaded.key)
            names |= found.dims if found is not None else frozenset()
        return frozenset(names)

    def text(self, expr: Affine, beyond: int = 0) -> str:
        """An expression: ``x * 4096 + r1 - 3``.

        Parameters
        ----------
        beyond : int
            The most that the kernel adds to the result, for its bounds.
        """
        expr = strip_bounds(expr)
        self.terms.add_sum(expr, beyond)
        return self._sum(expr)

    def offset_text(self, expr: Affine) -> str:
        """An expression that is added to a pointer.

        ``pointer + a + b`` is evaluated from the left: each term is extended to 64 bits by itself.
        """
        expr = strip_bounds(expr)
        self.terms.add_offset(expr)
        return self._sum(expr)

    def address(self, value: Value, offset: Affine) -> str:
        """The address of an element of a buffer: ``tv0_ptr + x * 4 + r``.

        Where Triton would give a thread more consecutive elements than ``Tile.neighbours``, the
        address is limited by ``tl.max_contiguous``. On positions that hint would hide from Triton's
        axis analysis that their quotients are equal for neighbours.
        """
        place = self.offset_text(offset)
        text = f"{value.name}_ptr" if place == "0" else f"{value.name}_ptr + {place}"
        blocked = self.blocked(self.dims(offset))
        tiles = (tile for tile in self.tiles_of(offset) if tile.neighbours and tile.name in blocked)
        runs = {t.place: t.neighbours for t in tiles if proven_run(offset, t) > t.neighbours}
        return self.with_max_contiguous(text, runs)

    def with_max_contiguous(self, pointer: str, runs: Mapping[int, int]) -> str:
        """A block of addresses in ``tl.max_contiguous``.

        Parameters
        ----------
        runs : mapping of int to int
            For dims of the block, the most consecutive addresses; 1 along all others.
        """
        if not runs:
            return pointer
        sizes = [runs.get(place, 1) for place in range(self.rank)]
        return f"tl.max_contiguous({pointer}, {sizes if self.rank > 1 else sizes[0]})"

    def _sum(self, expr: Affine) -> str:
        parts: list[str] = []
        for item, coefficient in sorted(expr.terms, key=lambda term: -abs(hint(term[1]))):
            name = self._digit(item)
            sign, number = signed(coefficient)
            factor = "" if is_known_equal(number, 1) else f" * {number}"
            parts.append(f"{sign} {name}{factor}")
        if not is_known_equal(expr.const, 0) or not parts:
            parts.append(" ".join(map(str, signed(expr.const))))
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else f"-{text[2:]}"

    def program_text(self, number: int) -> str:
        """The program id along an axis of the grid, or the tile number given to the function."""
        if not self.program:
            return f"tl.program_id({number}){self.widened}"
        return f"tl.cast({self.program}, tl.int64)" if self.wide else self.program

    def _is_same_in_tile(self, item: Digit) -> bool:
        """Whether a digit has one value in a program's whole tile.

        With tiles of 64 columns, ``x // 1024`` is a scalar. A value that varies along it alone is
        loaded once, and not once a column.
        """
        base = item.base
        tile = self.tiles.get(base.name) if isinstance(base, Axis) else None
        if tile is None or tile.name not in self.grid or tile.masked or tile.width < 2:
            return False
        return tile.place < self.rank - 1 and is_known_multiple(item.div, tile.width)

    def _digit(self, item: Digit) -> str:
        """``base // div % mod``, written once in the scope of its tile and named."""
        found = self.writer.find(item)
        if found is not None:
            return found.text
        threshold = _threshold(item)
        if threshold is not None:
            return self._compared(item, *threshold)
        text, wanted, dims = self._digit_base(item)
        whole = self._never_wraps(item)
        self.terms.add_number(item.div)
        if not whole and item.mod is not None:
            self.terms.add_number(item.mod)
        if is_known_equal(item.div, 1) and whole:
            return text
        varies = is_size(item.div) or (not whole and is_size(item.mod))
        text = self._quotient(Digit(item.base, item.div), text, wanted, dims, shared=varies)
        if not whole:
            text = self.divisions.residue(item, text, wanted, dims)
        if whole and varies:
            self.writer.bind(item, Name(text, DataType.Int32, dims))
            return text
        return self.divisions.define(item, text, wanted, dims)

    def _compared(self, item: Digit, place: Affine, least: int) -> str:
        """A digit that is 1 where ``place >= least`` and else 0: a comparison, without division."""
        dtype = "tl.int64" if self.wide else "tl.int32"
        text = f"({self.text(place)} >= {least}).to({dtype})"
        return self.divisions.define(item, text, "i", self.dims(Affine(((item, 1),))))

    def _digit_base(self, item: Digit) -> tuple[str, str, frozenset[str]]:
        """The text of a digit's base, a prefix for the digit's name, and the axes it runs over."""
        base = item.base
        if not isinstance(base, Axis):
            dims = self.dims(Affine(((item, 1),)))
            return self._base(base), "i", dims
        if self._is_same_in_tile(item):
            tile = self.tiles[base.name]
            start = f"{self.program_text(self.grid[base.name])} * {tile.block}"
            return start, base.name, frozenset()
        return base.name, base.name, frozenset((base.name,))

    def _never_wraps(self, item: Digit) -> bool:
        """Whether ``base // div`` is less than ``mod`` at every position of the base."""
        base = item.base
        if item.mod is None or not isinstance(base, Axis | Bounded):
            return item.mod is None
        return _covers(item.div * item.mod, base.extent)

    def _quotient(
        self, quotient: Digit, text: str, wanted: str, dims: frozenset[str], shared: bool
    ) -> str:
        """``text // div``; ``shared`` where the quotient is named for other digits to use."""
        known = self.writer.find(quotient) if shared else None
        if known is not None:
            return known.text
        if is_known_equal(quotient.div, 1):
            return text
        text = self.divisions.quotient(quotient, text, dims)
        is_open = is_size(quotient.div)
        return self.divisions.define(quotient, text, wanted, dims) if is_open else text

    def _base(self, base: Base) -> str:
        if isinstance(base, Loaded):
            found = self._index_in_dim(base)
            short = self.wide and found.dtype.info.bits < 64
            return f"{found.text}.to(tl.int64)" if short else found.text
        expr = base.expr if isinstance(base, Bounded) else digit(base)
        return f"({self.text(expr)})"

    def _index_in_dim(self, loaded: Loaded) -> Name:
        """A value read at run time as an index that is safe to use, written once."""
        value = self.writer.find(loaded.key)
        assert value is not None, "an index is written before the value it reads"
        dim, known = loaded.dim, self.writer.find(loaded)
        if dim is None or known is not None:
            return known or value
        assert isinstance(loaded.key, Read)
        guards = loaded.key.guards
        dims = value.dims | self.guard_dims(guards)
        mask = self.mask_name(dims, guards) or "True"
        scope, mask_scope = self.writer.scope_for(value.dims), self.writer.scope_for(dims)
        if self.check_bounds:
            mask_scope.lines.append(bounds_assertion(value.text, dim, mask, loaded.loc))
        name = self.writer.numbered("i")
        if mask_scope is not scope:
            # The mask is known in an inner loop only: there the interpreter checks the index.
            call = safe_index(value.text, dim, mask)
            mask_scope.lines.append(Line(call, loaded.loc, op=dim.op))
            mask = "False"
        call = safe_index(value.text, dim, mask)
        scope.lines.append(Line(f"{name} = {call}", loaded.loc, op=dim.op))
        scope.names[loaded] = Name(name, safe_index_dtype(value.dtype, dim), value.dims)
        return scope.names[loaded]

    # -- masks and guards ------------------------------------------------------

    def mask(self, dims: frozenset[str]) -> list[str]:
        """The names of the masks that a tile over these axes needs."""
        return [f"{d}_mask" for d in self.masked(dims)]

    def masked(self, dims: frozenset[str]) -> tuple[str, ...]:
        """The axes among ``dims`` whose tiles need masks."""
        return tuple(sorted(self._masked(dims)))

    def _masked(self, dims: frozenset[str]) -> frozenset[str]:
        return frozenset(d for d in dims if d in self.tiles and self.tiles[d].masked)

    def conditions(self, guards: Guards, given: Guards = ()) -> list[str]:
        """The conditions of guards that may fail in a tile, each in parentheses.

        Parameters
        ----------
        given : tuple of Guard
            Guards that hold wherever the value is used: what they imply is not checked again.
        """
        texts: list[str] = []
        for place, low, high in self.ranges.left(guards, given):
            text = self.text(place)
            texts += [f"({text} >= {low})"] if low is not None else []
            texts += [f"({text} < {high})"] if high is not None else []
        return list(dict.fromkeys(texts))

    def inside(self, guards: Guards, given: Guards = ()) -> str:
        """The variable of a condition that all guards hold; empty where they always do."""
        found = self.conditions(guards, given)
        return self._named(found, self.guard_dims(guards, given), "inside") if found else ""

    def mask_name(self, dims: frozenset[str], guards: Guards = ()) -> str:
        """The variable of a mask: the masks of tiles and all guards. Empty where none is needed."""
        masks, inside = self.mask(dims), self.inside(guards)
        known = self._masked(dims)  # an axis without a mask moves no mask into its loop
        if not inside:
            return self._named(masks, known, "") if masks else ""
        return self._named([*masks, inside], known | self.guard_dims(guards), "mask")

    def mask_dims(self, dims: frozenset[str], guards: Guards = ()) -> frozenset[str]:
        """The axes along which the mask of ``mask_name`` varies."""
        return self._masked(dims) | self.guard_dims(guards)

    def _named(self, parts: list[str], dims: frozenset[str], series: str) -> str:
        """The variable of a conjunction, defined in the outermost scope where its parts are known.

        Parameters
        ----------
        parts : list of str
            Variables, or conditions in parentheses.
        dims : frozenset of str
            The axes along which it varies.
        series : str
            The prefix of its numbered name. Empty for a name that is made of its parts.
        """
        if len(parts) == 1 and parts[0].isidentifier():
            return parts[0]
        key = ("mask", *parts)
        found = self.writer.find(key)
        if found is None:
            axes = [part.removesuffix("_mask") for part in parts]
            writer = self.writer
            name = writer.numbered(series) if series else writer.fresh("_".join([*axes, "mask"]))
            text = parts[0][1:-1] if len(parts) == 1 else " & ".join(parts)
            writer.scope_for(dims).lines.append(Line(f"{name} = {text}"))
            found = Name(name, DataType.Bool, dims)
            writer.bind(key, found)
        return found.text

    def guard_dims(self, guards: Guards, given: Guards = ()) -> frozenset[str]:
        """The tile axes that the conditions of guards depend on."""
        left = self.ranges.left(guards, given)
        return frozenset[str]().union(*(self.dims(place) for place, _, _ in left))

    # -- blocks ----------------------------------------------------------------

    def blocked(self, dims: frozenset[str]) -> frozenset[str]:
        """The axes among ``dims`` along which a program has a block of positions."""
        return frozenset(d for d in dims if d in self.tiles and self.tiles[d].block is not None)

    def shape(self, dims: frozenset[str]) -> str:
        """The block shape of a value over these axes, ``[XBLOCK, 1]``."""
        sizes = ["1"] * self.rank
        for tile in self.tiles.values():
            if tile.block is not None and tile.name in dims:
                sizes[tile.place] = str(tile.block)
        return f"[{', '.join(sizes)}]"

    def spread(self, text: str, dims: frozenset[str], always: bool = False) -> str:
        """An address broadcast to a block over these axes.

        Without an axis along which a program has a block it stays a scalar, unless ``always``.
        """
        if not always and not self.blocked(dims):
            return text
        return f"{text} + tl.zeros({self.shape(dims)}, tl.int32)"

    def suffix(self, place: int) -> str:
        """Indexing that turns a 1-D range into one along dim ``place`` of a block."""
        if self.rank == 1:
            return ""
        return "[" + ", ".join(":" if i == place else "None" for i in range(self.rank)) + "]"

    def range(self, tile: Tile) -> str:
        """The positions of a tile from its start on: ``tl.arange(0, RBLOCK)[None, :]``."""
        return f"tl.arange(0, {tile.block}){self.suffix(tile.place)}{self.widened}"

    def loop_end(self, tile: Tile) -> str:
        """The end of a loop over a tile, as a number of 64 bits where its last step needs them."""
        end = tile.end
        if self.wide and tile.part is None and not is_size(end):
            end = end if end + tile.width < INT32_LIMIT else ceil_div(end, tile.width) * tile.width
            return str(end)
        return tile.stop_text

    @property
    def widened(self) -> str:
        """The suffix that makes a position 64 bits wide, where positions need that."""
        return ".to(tl.int64)" if self.wide else ""
