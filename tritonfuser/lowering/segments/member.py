"""``Member``: a reduction, scan or product of a segment, and ``Share``: how rows are shared out."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import Node, Value
from ...shapes.index_map import Index
from ...symbolic.index_expr import Affine, Axis, Bounded, digit, extent
from ...symbolic.row_major import unravel
from ..access.reads import Read


@dataclass(frozen=True)
class Share:
    """The part of the rows that one program reduces, where the parts need not divide them.

    Attributes
    ----------
    source : Value
        What is reduced, without the padding that makes its rows a multiple of the parts.
    part : Axis
        The axis of the results whose positions are the parts.
    rows : tuple of Axis
        The axes of the dim that is shared out, outermost first: several where another reduction
        splits it. Part ``i`` has the positions from ``i * length`` on.
    length : int
        Positions of all parts but the last, which may have fewer.
    inside : tuple of Axis
        The further axes that are reduced, which each part has as a whole.
    interleaved : bool
        Part ``i`` of ``n`` has the positions ``i``, ``i + n``, ... instead. The last parts may have
        one fewer than ``length``.
    """

    source: Value
    part: Axis
    rows: tuple[Axis, ...]
    length: int
    inside: tuple[Axis, ...] = ()
    interleaved: bool = False

    @property
    def partition(self) -> tuple[tuple[Axis, ...], int, int, bool]:
        """What all reductions over rows in one kernel must have in common."""
        return self.rows, self.part.extent, self.length, self.interleaved

    @property
    def places(self) -> dict[Axis, Affine]:
        """Where ``rows`` are, by the part and the place within it."""
        return self.at(digit(self.part), digit(Axis("m", self.length)))

    def at(self, part: Affine, within: Affine) -> dict[Axis, Affine]:
        """Where along ``rows`` a position of a part is."""
        many = extent(self.rows)
        whole = (
            within * self.part.extent + part if self.interleaved else part * self.length + within
        )
        places = unravel(digit(Bounded(whole, many)), tuple(axis.extent for axis in self.rows))
        return dict(zip(self.rows, places, strict=True))


@dataclass(frozen=True)
class Member:
    """A reduction, scan or matrix product in a segment's loop nest.

    Attributes
    ----------
    node : Node
        The op.
    index : Index
        The element of the results that a position of the loop nest contributes to.
    operand_index : Index
        The element of the first operand that is read there.
    across : tuple of Axis
        The axes reduced or scanned along.
    others : tuple of Index
        The elements of the further operands, those of a matrix product.
    share : Share or None
        How the rows that it reduces are shared out, where a program has its part of them without
        padding.
    """

    node: Node
    index: Index
    operand_index: Index
    across: tuple[Axis, ...]
    others: tuple[Index, ...] = ()
    share: Share | None = None

    @property
    def operand(self) -> Value:
        """What is reduced; of a product the first operand."""
        return next(self.node.operands()) if self.share is None else self.share.source

    @property
    def reads(self) -> tuple[Read, ...]:
        """Its operands, each where it is read."""
        if self.share is not None:
            return (Read(self.share.source, self.operand_index),)
        places = (self.operand_index, *self.others)
        return tuple(Read(v, i) for v, i in zip(self.node.operands(), places, strict=True))
