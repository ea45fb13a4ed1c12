"""A kernel's loads and stores: their memory offsets as functions of its loop axes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from ...ir import Value
from ...lazy import cached_property
from ...shapes.index_map import Guard, Index
from ...symbolic.index_expr import Affine, Axis, Bounded, Digit
from ...symbolic.queries import assume_equal
from ...symbolic.sizes import hint
from ...symbolic.substitution import strip_bounds
from .reads import Read


@dataclass(frozen=True)
class Traffic:
    """A load or a store of one tensor at one index.

    Attributes
    ----------
    value : Value
        The tensor.
    offset : Affine
        From the start of its buffer, in elements, as a function of the loop axes.
    is_store : bool
        Whether it is a store.
    rank : int
        The position of the value in the fusion; unlike its number, it does not change with
        renumbering. Breaks ties.
    share : (int, int)
        Of how many positions that its guards tell apart they hold at how many: the share of the
        loop nest in which it is accessed, as numerator and denominator. Of this run, where sizes
        vary.
    """

    value: Value
    offset: Affine
    is_store: bool = False
    rank: int = 0
    share: tuple[int, int] = field(default=(1, 1), compare=False)

    @cached_property
    def steps(self) -> dict[Axis, int]:
        """The stride, in elements, along each axis that the offset is linear in."""
        return {d.base: c for d, c in self.offset.terms if isinstance(d.base, Axis) and _whole(d)}

    @cached_property
    def axes(self) -> frozenset[Axis]:
        """The axes that it runs along, those along which an index is read from memory too."""
        return axes_of(self.offset)

    @property
    def item_bytes(self) -> int:
        """Bytes of one element in memory."""
        return self.value.dtype.info.bytes

    @cached_property
    def bytes(self) -> int:
        """Bytes of the elements accessed in this run, each counted once."""
        return hint(self.open_bytes)

    @cached_property
    def open_bytes(self) -> int:
        """Bytes of the elements accessed, as an expression of sizes that vary."""
        return self.item_bytes * prod(axis.extent for axis in self.axes)

    @cached_property
    def accessed_bytes(self) -> int:
        """``open_bytes`` without those of positions at which it is masked."""
        part, whole = self.share
        return self.open_bytes * part // whole

    @cached_property
    def order(self) -> tuple[bool, int, str]:
        """Sort key: loads before stores, then by rank."""
        return self.is_store, self.rank, shown(self.offset)

    @cached_property
    def fastest(self) -> Axis | None:
        """The axis with the smallest nonzero stride."""
        moving = {axis: abs(hint(step)) for axis, step in self.steps.items() if hint(step)}
        return min(moving, key=lambda axis: moving[axis], default=None)

    def runs_along(self, axes: tuple[Axis, ...]) -> bool:
        """Whether the offset depends on one of these axes."""
        return not self.axes.isdisjoint(axes)


LEVELS_SHOWN = 4
"""Sums in sums that ``shown`` writes out."""


def shown(expr: Affine, levels: int = LEVELS_SHOWN) -> str:
    """An expression as ``repr`` has it. What is nested deeper stands by its digest.

    Expressions share their parts: written out, they double with each view of a view.
    """
    if not levels:
        return expr.digest
    terms = [f"({_shown_digit(item, levels - 1)}, {factor!r})" for item, factor in expr.terms]
    rest = "," * (len(terms) == 1)
    return f"Affine(terms=({', '.join(terms)}{rest}), const={expr.const!r})"


def _shown_digit(item: Digit, levels: int) -> str:
    base = item.base
    if isinstance(base, Affine):
        text = shown(base, levels)
    elif isinstance(base, Bounded):
        text = f"Bounded(expr={shown(base.expr, levels)}, extent={base.extent!r})"
    else:
        text = repr(base)
    return f"Digit(base={text}, div={item.div!r}, mod={item.mod!r})"


def axes_of(expr: Affine) -> frozenset[Axis]:
    """The axes that an index depends on, through what it reads from memory too."""
    if not expr.loaded():
        return expr.axes()
    inner = (
        axes_of(item)
        for loaded in expr.loaded()
        if isinstance(loaded.key, Read)
        for item in loaded.key.index
    )
    return expr.axes().union(*inner)


def _whole(digit: Digit) -> bool:
    """Whether a digit is not divided: consecutive positions have consecutive values."""
    return assume_equal(digit.div, 1)


def offset_of(index: Index, strides: tuple[int, ...]) -> Affine:
    """The offset from the start of the buffer, in elements."""
    total = Affine()
    for item, stride in zip(index, strides, strict=True):
        total = total + item * stride
    return strip_bounds(total)


def share_of(guards: Iterable[Guard]) -> tuple[int, int]:
    """The share of positions at which guards hold, as numerator and denominator.

    Guards on what is read from memory count as if they held everywhere.
    """
    part = whole = 1
    for guard in guards:
        bounds = guard.expr.range
        if bounds is not None and not guard.always:
            first, last, low, high = map(hint, (*bounds, guard.low, guard.high))
            part *= max(min(last + 1, high) - max(first, low), 0)
            whole *= max(last + 1 - first, 1)
    return part, whole


def accessed_most(traffic: Iterable[Traffic]) -> list[Traffic]:
    """Each load and store once, with the largest of its shares; in order."""
    found: dict[Traffic, Traffic] = {}
    for item in traffic:
        (part, whole), (other, of) = item.share, found.setdefault(item, item).share
        if part * of > other * whole:
            found[item] = item
    return sorted(found.values(), key=lambda item: item.order)


LARGE = 4
"""A tensor of at least this part of the bytes of the largest one is large."""


def order_axes(axes: tuple[Axis, ...], traffic: list[Traffic]) -> tuple[Axis, ...]:
    """The axes sorted by stride, outermost first, for the tensor that moves the most bytes.

    Where some of a kernel's axes are asked for, those large tensors count that are contiguous
    along one of them: others are so along the rest, in any order of these.
    """
    moved = [t for t in traffic if t.runs_along(axes)]
    if not moved:
        return axes
    most = max(t.bytes for t in moved)
    along = [t for t in moved if LARGE * t.bytes >= most and t.fastest in axes]
    best = max(along or moved, key=lambda t: (t.bytes, t.is_store, -t.rank))
    place = {axis: i for i, axis in enumerate(axes)}
    return tuple(sorted(axes, key=lambda a: (-abs(hint(best.steps.get(a, 1 << 62))), place[a])))
