"""``IndexWriter``: index expressions as text, each digit of an axis in a variable of its own."""

from __future__ import annotations

from collections.abc import Iterable

from ....dtypes import DataType
from ....shapes.index_map import Guard
from ....shapes.memory import INT32_LIMIT
from ....symbolic.index_expr import Affine, Axis, Base, Bounded, Digit, digit
from ....symbolic.loaded_index import LoadedIndex
from ....symbolic.queries import is_known_equal, is_known_less
from ....symbolic.sizes import hint, is_size
from ....symbolic.substitution import strip_bounds
from ..names import Name
from ..writer import Writer
from .divisions import Divisions
from .kernel_axes import KernelAxes
from .loaded_indices import LoadedIndexWriter
from .masks import MaskWriter
from .term_bounds import TermBounds
from .tile_text import TileText


class IndexWriter:
    """Writes index expressions. Each digit of an axis gets one variable.

    Indices that are read at run time (``LoadedIndex``) must be bound in ``writer`` before.

    Parameters
    ----------
    writer : Writer
        The text of the kernel.
    axes : KernelAxes
        The kernel axes.
    tile_text : TileText
        Their blocks and ranges.
    check_bounds : bool
        Whether kernels assert that values read at run time are indices of their dims.
    terms : TermBounds, optional
        Collects the bounds of all integer terms.

    Attributes
    ----------
    wide : bool
        Whether positions are computed in 64 bits.
    masks : MaskWriter
        Writes masks and guards, whose conditions are of index expressions.
    """

    def __init__(
        self,
        writer: Writer,
        axes: KernelAxes,
        tile_text: TileText,
        check_bounds: bool = False,
        terms: TermBounds | None = None,
    ) -> None:
        self.writer = writer
        self.axes = axes
        self.tile_text = tile_text
        self.wide = tile_text.wide
        self.terms = TermBounds() if terms is None else terms
        self.masks = MaskWriter(writer, axes, self.text)
        self._divisions = Divisions(writer, axes.tiles, self.wide)
        self._loaded = LoadedIndexWriter(writer, self.masks, check_bounds)

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

    def offset_text(self, expr: Affine, guards: Iterable[Guard] = ()) -> str:
        """An expression that is added to a pointer.

        ``pointer + a + b`` is evaluated from the left: each term is extended to 64 bits by itself.

        Parameters
        ----------
        guards : iterable of Guard
            The element is masked where these do not hold.
        """
        expr = strip_bounds(expr)
        self.terms.add_offset(expr, guards)
        return self._sum(expr)

    def _sum(self, expr: Affine) -> str:
        parts: list[str] = []
        for item, coefficient in sorted(expr.terms, key=lambda term: -abs(hint(term[1]))):
            name = self._digit(item)
            sign, number = _signed(coefficient)
            factor = "" if is_known_equal(number, 1) else f" * {number}"
            parts.append(f"{sign} {name}{factor}")
        if not is_known_equal(expr.const, 0) or not parts:
            parts.append(_constant(expr.const))
        text = " ".join(parts)
        return text[2:] if text.startswith("+ ") else f"-{text[2:]}"

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
            text = self._divisions.residue(item, text, wanted, dims)
        if whole and varies:
            self.writer.bind(item, Name(text, DataType.Int32, dims))
            return text
        return self._divisions.define(item, text, wanted, dims)

    def _compared(self, item: Digit, place: Affine, least: int) -> str:
        """A digit that is 1 where ``place >= least`` and else 0: a comparison, without division."""
        dtype = "tl.int64" if self.wide else "tl.int32"
        text = f"({self.text(place)} >= {least}).to({dtype})"
        return self._divisions.define(item, text, "i", self.axes.dims(Affine(((item, 1),))))

    def _digit_base(self, item: Digit) -> tuple[str, str, frozenset[str]]:
        """The text of a digit's base, a prefix for the digit's name, and the axes it runs over."""
        base = item.base
        if not isinstance(base, Axis):
            dims = self.axes.dims(Affine(((item, 1),)))
            return self._base(base), "i", dims
        if self.axes.is_same_in_tile(item):
            tile = self.axes.tiles[base.name]
            start = f"{self.tile_text.program(self.axes.grid[base.name])} * {tile.block}"
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
        text = self._divisions.quotient(quotient, text, dims)
        is_open = is_size(quotient.div)
        return self._divisions.define(quotient, text, wanted, dims) if is_open else text

    def loaded(self, base: LoadedIndex) -> Name:
        """A value read at run time, which is bound, as an index that is safe to use."""
        return self._loaded.index(base)

    def _base(self, base: Base) -> str:
        if isinstance(base, LoadedIndex):
            found = self.loaded(base)
            short = self.wide and found.dtype.info.bits < 64
            return f"{found.text}.to(tl.int64)" if short else found.text
        expr = base.expr if isinstance(base, Bounded) else digit(base)
        return f"({self.text(expr)})"


def _signed(number: int) -> tuple[str, int]:
    """The sign of a coefficient and its magnitude; "+" for a size of unknown sign."""
    return ("-", -number) if is_known_less(number, 0) else ("+", number)


def _constant(number: int) -> str:
    """The constant of a sum, with its sign: ``- 3``; ``+ -2147483648`` from there on.

    Triton takes 2**31 to below 2**32 for numbers without a sign, and subtracts one from an address
    by negating it, which wraps.
    """
    sign, magnitude = _signed(number)
    is_unsigned = sign == "-" and not is_size(number) and magnitude >= INT32_LIMIT
    return f"+ {number}" if is_unsigned else f"{sign} {magnitude}"


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
