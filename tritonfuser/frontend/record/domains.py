"""The dims of a tensor as nvFuser shows them: ``TensorDomain``, ``IterDomain``, ``Split``.

A tensor has logical dims, those it was recorded with, and a loop domain: the same dims, some cut
in two so that one part can be put on the devices of a mesh. Loops of threads are Triton's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, DefinitionError
from ...ir import Const, Dim, Value
from ...ops.builder import as_call
from ...ops.table import Moments, Reduction
from ..vocabulary.enums import ParallelType
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import SCHEDULE_HINT, UnavailableError
from .device_mesh import MESH_TYPES, DeviceMesh
from .handles import Expr, Home, Statement, TensorView, Val, handle_of

Text = str
_PLAIN = (ParallelType.serial, ParallelType.stream)
"""What changes nothing of the result: a loop, or a loop whose steps may overlap."""


@dataclass(frozen=True)
class Span:
    """The extent of a dim: its text, its number where it is known, and how to have it as a Val."""

    text: str
    known: int | None
    value: Callable[[], Val]

    @staticmethod
    def of(home: Home, number: int) -> Span:
        """A static extent."""
        return Span(f"{number}", number, lambda: handle_of(home, Const.of(number)))


class IterDomain(Statement):
    """One dim of a tensor, or one part of a dim that was cut.

    Not made by hand: ``t.axis(i)``, ``t.get_logical_domain()`` and ``t.get_loop_domain()`` give
    them.
    """

    __slots__ = ("_expanded", "_kind", "_made_by", "_parts", "_place", "_span", "_type")

    def __init__(
        self, home: Home, place: int, kind: Text, span: Span, expanded: Span | None = None
    ) -> None:
        super().__init__(home)
        self._place = place
        self._kind = kind
        self._span = span
        self._expanded = expanded
        self._type = ParallelType.serial
        self._made_by: Split | None = None
        self._parts: Split | None = None

    @property
    def span(self) -> Span:
        """The extent and what is known of it."""
        return self._span

    @property
    def parallel_type(self) -> ParallelType:
        """What it runs over: ``serial`` unless ``parallelize`` said otherwise."""
        return self._type

    def extent(self) -> Val:
        """The extent, a constant where it is static; 1 for a dim that broadcasts."""
        return self._span.value()

    def expanded_extent(self) -> Val:
        """The extent that a size-1 dim is stretched to."""
        return (self._expanded or self._span).value()

    def is_broadcast(self) -> bool:
        """Whether it is of size 1, stretched or not."""
        return self._kind == "b"

    def has_expanded_extent(self) -> bool:
        """Whether it is a size-1 dim that expand stretched."""
        return self._expanded is not None

    def is_reduction(self) -> bool:
        """Whether it is gone in the result: a dim that the tensor's op reduces."""
        return self._kind == "r"

    def is_iteration(self) -> bool:
        """Whether the tensor has an element for each of its steps."""
        return self._kind == "i"

    def is_symbolic(self) -> bool:
        """Whether the extent is known only at run time."""
        return self._span.known is None

    def is_device_dim(self) -> bool:
        """Whether it runs over the devices of a mesh."""
        return self._type in MESH_TYPES

    def is_parallelized(self) -> bool:
        """Whether it runs over anything but a loop."""
        return self._type is not ParallelType.serial

    def definition(self) -> Split | None:
        """The split that made it; None for a dim of the tensor."""
        return self._made_by

    def leaves(self) -> list[IterDomain]:
        """The parts it was cut into, outermost first; itself where it was not."""
        if self._parts is None:
            return [self]
        return [leaf for part in self._parts.outputs() for leaf in part.leaves()]

    def parallelize(self, parallel_type: ParallelType) -> None:
        """Put the steps on the devices of a mesh.

        Parameters
        ----------
        parallel_type : ParallelType
            ``mesh_x``, ``mesh_y`` or ``mesh_z``; ``serial`` takes it back. ``stream`` is accepted
            and changes no result.

        Raises
        ------
        UnavailableError
            A type of a kernel's threads, which Triton decides about.
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
        self._type = parallel_type

    def __repr__(self) -> Text:
        kind = _LETTERS.get(self._type, "S")
        stretched = f" ex {self._expanded.text}" if self._expanded is not None else ""
        return f"{self._kind}{kind}{self._place}{{{self._span.text}{stretched}}}"


_LETTERS = {
    ParallelType.mesh_x: "deviceIdx.x",
    ParallelType.mesh_y: "deviceIdx.y",
    ParallelType.mesh_z: "deviceIdx.z",
    ParallelType.stream: "Stream",
}


class Split(Expr):
    """A dim cut in two: ``extent -> (outer, inner)``.

    Not made by hand: ``t.split``, ``t.outer_split`` and ``t.inner_split`` make one.
    """

    __slots__ = ("_factor", "_inner_split", "_of", "_parts")

    def __init__(self, of: IterDomain, factor: int, inner_split: bool) -> None:
        super().__init__(of.home)
        rest, given = _divided(of.home, of.span, factor), Span.of(of.home, factor)
        spans = (rest, given) if inner_split else (given, rest)
        self._of = of
        self._factor = factor
        self._inner_split = inner_split
        self._parts = [IterDomain(of.home, of._place, of._kind, span) for span in spans]
        for part in self._parts:
            part._made_by = self
        of._parts = self

    @property
    def op(self) -> Text:
        """``Split``."""
        return "Split"

    @property
    def factor(self) -> int:
        """The extent of the part that was asked for."""
        return self._factor

    def inner_split(self) -> bool:
        """Whether ``factor`` is the extent of the inner part."""
        return self._inner_split

    def in_(self) -> IterDomain:
        """What was cut."""
        return self._of

    def outer(self) -> IterDomain:
        """The part that takes large steps."""
        return self._parts[0]

    def inner(self) -> IterDomain:
        """The part that takes steps of one element."""
        return self._parts[1]

    def inputs(self) -> list[Any]:
        """What was cut, as a list."""
        return [self._of]

    def outputs(self) -> list[Any]:
        """The outer and the inner part."""
        return [*self._parts]

    def __repr__(self) -> Text:
        kind = "inner" if self._inner_split else "outer"
        return f"{self._of} -> {kind} split by factor {self._factor} -> {self._parts}"


class Merge(Expr):
    """Two dims made one. Nothing makes one here: kernels flatten dims by themselves."""

    __slots__ = ()


def _divided(home: Home, span: Span, factor: int) -> Span:
    """``ceil(extent / factor)``."""
    text = f"( ceilDiv({span.text}, {factor}) )"
    if span.known is not None:
        return Span.of(home, -(-span.known // factor))
    return Span(text, None, lambda: home.call("div", span.value() + (factor - 1), factor))


class TensorDomain(Statement):
    """The dims of a tensor: the logical ones, and the loops over them."""

    __slots__ = ("_logical", "_loop", "mesh")

    def __init__(self, home: Home, logical: Sequence[IterDomain]) -> None:
        super().__init__(home)
        self._logical = tuple(logical)
        self._loop = [*logical]
        self.mesh: DeviceMesh | None = None

    @property
    def ndim(self) -> int:
        """The number of loops."""
        return len(self._loop)

    def logical(self) -> list[IterDomain]:
        """The dims as recorded; those that the tensor's op reduces are among them."""
        return [*self._logical]

    def loop(self) -> list[IterDomain]:
        """The loops, outermost first."""
        return [*self._loop]

    def axis(self, place: int) -> IterDomain:
        """One of the loops; negative numbers count from the last."""
        return self._loop[self._wrap("axis", place)]

    def split(self, place: int, factor: Any, inner_split: bool) -> None:
        """Cut a loop in two, which take its place."""
        place = self._wrap("split", place)
        count = _constant(factor)
        old = self._loop[place]
        if count is None or count < 1 or old.is_parallelized():
            raise DefinitionError(
                f"split: expected a constant factor of 1 or more and a serial dim, "
                f"got factor {factor} and dim {old}",
                loc=user_line(),
            )
        self._loop[place : place + 1] = Split(old, count, inner_split).outputs()

    def reorder(self, moves: Mapping[int, int] | Sequence[int]) -> None:
        """Loops in another order: ``{old: new}``, or all old places in their new order."""
        rank = len(self._loop)
        order = [*moves]
        if isinstance(moves, Mapping):
            taken = {self._wrap("reorder", old): new for old, new in moves.items()}
            wanted = {self._wrap("reorder", new): old for old, new in taken.items()}
            others = (d for d in range(rank) if d not in taken)
            # Of two that go to one place, one is missing then.
            found = [wanted[d] if d in wanted else next(others, None) for d in range(rank)]
            order = [place for place in found if place is not None]
        order = [self._wrap("reorder", place) for place in order]
        if sorted(order) != list(range(rank)):
            raise DefinitionError(
                f"reorder: {moves} is no reordering of {rank} dims", loc=user_line()
            )
        self._loop = [self._loop[place] for place in order]

    def allocate(
        self, domain: Sequence[IterDomain], contiguity: bool | Sequence[bool | None]
    ) -> None:
        """Check that the order of a part in memory is that of the dims; nothing else is done."""
        own = {id(part): place for place, part in enumerate(self._loop)}
        places = [own.get(id(part), -1) for part in domain]
        kept = [p for p in places if p >= 0 and not self._loop[p].is_device_dim()]
        if sorted(places) != list(range(len(self._loop))) or kept != sorted(kept):
            raise UnavailableError(
                f"set_allocation_domain({list(domain)}) is not available in tritonfuser: "
                f"the loops are {self}",
                loc=user_line(),
                hint="Give the memory order by define_tensor(stride_order=) or "
                "fd.ops.stride_order.",
            )

    def _wrap(self, what: str, place: int) -> int:
        rank = len(self._loop)
        if not isinstance(place, int) or isinstance(place, bool):
            raise ArgumentError(
                f"{what}(): incompatible function arguments: expected a dim, got {place!r}"
            )
        if not -rank <= place < rank:
            raise DefinitionError(
                f"{what}: dim {place} of a tensor with {rank} dims", loc=user_line()
            )
        return place % rank

    def __repr__(self) -> str:
        return f"[ {', '.join(map(repr, self._loop))} ]" if self._loop else "[]"


def _constant(factor: Any) -> int | None:
    """An int, or the number behind a constant Val."""
    found = getattr(getattr(factor, "value", factor), "value", factor)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def domain_of(home: Home, value: Value) -> TensorDomain:
    """The dims of a tensor as it was recorded; a reduction's result has the reduced ones too."""
    node = home.ir.producers.get(value)
    source, reduced = value, frozenset[int]()
    if node is not None:
        call = as_call(node)
        if isinstance(call.op.form, Reduction | Moments):
            source, reduced = call.value("arg"), frozenset(call.dims())
    handle = handle_of(home, source)
    dims = enumerate(source.tensor.dims)
    return TensorDomain(home, [_domain(handle, p, dim, p in reduced) for p, dim in dims])


def _domain(tensor: TensorView, place: int, dim: Dim, reduced: bool) -> IterDomain:
    span = Span(
        f"{dim.size}",
        dim.size if isinstance(dim.size, int) else None,
        lambda: tensor.size(place),
    )
    if not dim.is_broadcast or reduced:
        return IterDomain(tensor.home, place, "r" if reduced else "i", span)
    one = Span.of(tensor.home, 1)
    return IterDomain(tensor.home, place, "b", one, span if dim.expanded else None)
