"""``Store``: a value, or a part of one, that a segment writes to memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...ir import Node, Operand, Value
from ...shapes.index_map import Guard, Index, Target
from ..access.reads import Read, loaded_by, read_as, target_of


@dataclass(frozen=True)
class Store:
    """A value, or a part of one, that a segment writes to memory.

    Attributes
    ----------
    value : Value
        The value whose buffer is written.
    index : Index
        The element that a position of the loop nest writes: of ``value``, or of the index tensor
        where there is a ``scatter``.
    guards : tuple of Guard
        Hold at the positions that write an element, where the loop nest has more positions.
    source : Operand or None
        What is written where that is not ``value`` itself: a copy that elements are scattered into,
        or the elements to scatter.
    scatter : Node or None
        The op that says where elements of ``source`` go.
    part : int or None
        Which box of the elements of ``value`` is written. None for the whole value.
    """

    value: Value
    index: Index
    guards: tuple[Guard, ...] = ()
    source: Operand | None = None
    scatter: Node | None = None
    part: int | None = None

    @property
    def name(self) -> str:
        """As schedules name it: ``tv3``; ``tv3[1]``, a part; ``tv3.put``, what is scattered."""
        if self.part is not None:
            return f"{self.value.name}[{self.part}]"
        return self.value.name if self.scatter is None else f"{self.value.name}.put"

    @property
    def read(self) -> Read:
        """The index the element is computed at, as a read of the value."""
        return Read(self.value, self.index, self.guards)

    @cached_property
    def target(self) -> Target:
        """The element of ``value`` that is written."""
        if self.scatter is None:
            return Target(self.index)
        return target_of(self.scatter, self.read)

    @cached_property
    def root_reads(self) -> tuple[Read, ...]:
        """The reads that it needs: of the source, and of the indices of a scatter."""
        if self.source is None:
            return (self.read,)
        found = [] if self.scatter is None else loaded_by(self.target)
        if isinstance(self.source, Value):
            found.append(read_as(self.source, self.read))
        return tuple(found)
