"""``IterDomain``: one dim of a tensor, or a part of one; ``Split``: a dim cut in two.

Only splits over the devices of a mesh have an effect; loops of threads are Triton's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, DefinitionError, SourceLoc
from ...ir import Const
from ...pickling import Unpicklable
from ..vocabulary.enums import ParallelType
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import SCHEDULE_HINT, UnavailableError
from .device_mesh import MESH_TYPES
from .handles import handle_of
from .statements import Container, Expr, Statement
from .val import Val

Text = str
_PLAIN = (ParallelType.serial, ParallelType.stream)
"""Parallel types without an effect on results."""


@dataclass(frozen=True)
class Extent:
    """The extent of a dim.

    Attributes
    ----------
    text : str
        As ``repr`` shows it.
    known : int, optional
        The number, where it is static.
    value : callable
        Gives it as a Val.
    """

    text: str
    known: int | None
    value: Callable[[], Val]

    @staticmethod
    def of(container: Container, number: int) -> Extent:
        """A static extent."""
        return Extent(f"{number}", number, lambda: handle_of(container, Const.of(number)))


class IterDomain(Statement, Unpicklable):
    """One dim of a tensor, or one part of a dim that was split.

    Not made by hand: ``t.axis(i)``, ``t.get_logical_domain()`` and ``t.get_loop_domain()`` give
    them.
    """

    __slots__ = (
        "_definition",
        "_dim",
        "_expanded",
        "_kind",
        "_line",
        "_parts",
        "_span",
        "_swizzled",
        "_type",
    )
    send_instead = "Send the TensorView, and ask for its axis(i) there."

    def __init__(
        self,
        container: Container,
        dim: int,
        kind: Text,
        length: Extent,
        expanded: Extent | None = None,
    ) -> None:
        super().__init__(container)
        self._dim = dim
        self._kind = kind
        self._span = length
        self._expanded = expanded
        self._type = ParallelType.serial
        self._definition: Split | None = None
        self._parts: Split | None = None
        self._line: SourceLoc | None = None
        self._swizzled = False

    @property
    def dim(self) -> int:
        """The dim of the tensor that it is, or is a part of."""
        return self._dim

    @property
    def line(self) -> SourceLoc:
        """The user's line that gave it a parallel type."""
        return self._line or user_line()

    @property
    def length(self) -> Extent:
        """The extent, as text, number and Val."""
        return self._span

    @property
    def stretched(self) -> Extent:
        """The extent that a size-1 dim is expanded to; else the extent."""
        return self._expanded or self._span

    @property
    def parallel_type(self) -> ParallelType:
        """What it is parallelized over; ``serial`` until ``parallelize`` is called."""
        return self._type

    def extent(self) -> Val:
        """The extent, a constant where it is static; 1 for a dim that broadcasts."""
        return self._span.value()

    def expanded_extent(self) -> Val:
        """The extent that a size-1 dim is expanded to."""
        return self.stretched.value()

    def is_broadcast(self) -> bool:
        """Whether it is a dim of size 1, expanded or not."""
        return self._kind == "b"

    def has_expanded_extent(self) -> bool:
        """Whether it is an expanded dim of size 1."""
        return self._expanded is not None

    def is_reduction(self) -> bool:
        """Whether the op of the tensor reduces it."""
        return self._kind == "r"

    def is_iteration(self) -> bool:
        """Whether it is neither broadcast nor reduced."""
        return self._kind == "i"

    def is_symbolic(self) -> bool:
        """Whether the extent is known only at run time."""
        return self._span.known is None

    def is_device_dim(self) -> bool:
        """Whether it is parallelized over the devices of a mesh."""
        return self._type in MESH_TYPES

    def is_parallelized(self) -> bool:
        """Whether its parallel type is not ``serial``."""
        return self._type is not ParallelType.serial

    def definition(self) -> Any:
        """The Split or the Merge that made it; None for a dim of the tensor."""
        return self._definition

    @property
    def parts(self) -> Split | None:
        """The split that it was replaced by."""
        return self._parts

    def pieces(self) -> list[IterDomain]:
        """What it is merged of; itself where it is not merged."""
        return [self]

    def split_in_two(self, factor: int, inner_split: bool) -> list[IterDomain]:
        """The outer and the inner loop of a split."""
        found: list[IterDomain] = Split(self, factor, inner_split).outputs()
        return found

    def as_partial(self, reduced: bool) -> IterDomain:
        """This loop in a tensor of partial results, which reduces it or keeps it."""
        return IterDomain(self.container, self._dim, "r" if reduced else "i", self._span)

    def swizzle(self) -> None:
        """Let each device begin its steps at another one."""
        self._swizzled = True

    def leaves(self) -> list[IterDomain]:
        """The parts it was split into, outermost first; itself where it was not split."""
        if self._parts is None:
            return [self]
        return [leaf for part in self._parts.outputs() for leaf in part.leaves()]

    def parallelize(self, parallel_type: ParallelType) -> None:
        """Distribute it over the devices of a mesh.

        Parameters
        ----------
        parallel_type : ParallelType
            ``mesh_x``, ``mesh_y`` or ``mesh_z``; ``serial`` undoes it. ``stream`` is accepted: the
            steps of such a loop are computed together, the results are the same.

        Raises
        ------
        UnavailableError
            A type for threads of a kernel, which Triton schedules.
        """
        if not isinstance(parallel_type, ParallelType):
            raise ArgumentError(
                "parallelize(): incompatible function arguments: expected a ParallelType, "
                f"got {parallel_type!r}"
            )
        if parallel_type not in (*MESH_TYPES, *_PLAIN):
            raise UnavailableError(
                f"parallelize(ParallelType.{parallel_type.name}) is not available in tritonfuser",
                loc=user_line(),
                hint=SCHEDULE_HINT,
            )
        if self._swizzled and parallel_type in MESH_TYPES:
            raise DefinitionError(
                f"parallelize: {self} was given to swizzle1d, so devices would have other parts "
                "than their own",
                loc=user_line(),
                hint="A swizzled loop takes ParallelType.stream or serial.",
            )
        self._type = parallel_type
        self._line = user_line()

    def __repr__(self) -> Text:
        kind = _LETTERS.get(self._type, "S")
        stretched = f" ex {self._expanded.text}" if self._expanded is not None else ""
        return f"{self._kind}{kind}{self._dim}{{{self._span.text}{stretched}}}"


_LETTERS = {
    ParallelType.mesh_x: "deviceIdx.x",
    ParallelType.mesh_y: "deviceIdx.y",
    ParallelType.mesh_z: "deviceIdx.z",
    ParallelType.stream: "Stream",
}


class Split(Expr):
    """A dim split in two: ``extent -> (outer, inner)``.

    Not made by hand: ``t.split``, ``t.outer_split`` and ``t.inner_split`` make one.
    """

    __slots__ = ("_factor", "_inner_split", "_parts", "_source")

    def __init__(self, of: IterDomain, factor: int, inner_split: bool) -> None:
        super().__init__(of.container)
        rest, given = _divided(of.container, of.length, factor), Extent.of(of.container, factor)
        spans = (rest, given) if inner_split else (given, rest)
        self._source = of
        self._factor = factor
        self._inner_split = inner_split
        self._parts = [IterDomain(of.container, of._dim, of._kind, length) for length in spans]
        for part in self._parts:
            part._definition = self
        of._parts = self

    @property
    def op(self) -> Text:
        """``Split``."""
        return "Split"

    @property
    def factor(self) -> int:
        """The extent of the inner or of the outer part, as given."""
        return self._factor

    def inner_split(self) -> bool:
        """Whether ``factor`` is the extent of the inner part."""
        return self._inner_split

    def in_(self) -> IterDomain:
        """The dim that was split."""
        return self._source

    def outer(self) -> IterDomain:
        """The outer part."""
        return self._parts[0]

    def inner(self) -> IterDomain:
        """The inner part, which steps over neighbours."""
        return self._parts[1]

    def undone(self) -> IterDomain:
        """The dim as it was before."""
        self._source._parts = None
        return self._source

    def inputs(self) -> list[Any]:
        """The dim that was split, as a list."""
        return [self._source]

    def outputs(self) -> list[Any]:
        """The outer and the inner part."""
        return [*self._parts]

    def __repr__(self) -> Text:
        kind = "inner" if self._inner_split else "outer"
        return f"{self._source} -> {kind} split by factor {self._factor} -> {self._parts}"


def _divided(container: Container, length: Extent, factor: int) -> Extent:
    """``ceil(extent / factor)``."""
    text = f"( ceilDiv({length.text}, {factor}) )"
    if length.known is not None:
        return Extent.of(container, -(-length.known // factor))
    return Extent(text, None, lambda: container.call("div", length.value() + (factor - 1), factor))
