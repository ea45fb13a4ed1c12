"""``TensorDomain``: the logical dims of a tensor, and its loop domain.

The loop domain has the same dims, some split so that one part can be put on the devices of a mesh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import ArgumentError, DefinitionError
from ...ir import Dim, Value
from ...ops.builder import as_call
from ...ops.forms import Moments, Reduction
from ...ops.table import Call, Library
from ...pickling import Unpicklable
from ..vocabulary.argument_types import LISTED, expect
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import UnavailableError
from .device_mesh import MESH_TYPES, DeviceMesh
from .handles import handle_of
from .iter_domains import Extent, IterDomain
from .merged_dims import merged
from .statements import Container, Statement
from .tensor_view import TensorView


class TensorDomain(Statement, Unpicklable):
    """The dims of a tensor: the logical ones and the loop domain."""

    __slots__ = ("_logical", "_loop", "mesh")
    send_instead = "Send the TensorView, and ask for its domain() there."

    def __init__(self, container: Container, logical: Sequence[IterDomain]) -> None:
        super().__init__(container)
        self._logical = tuple(logical)
        self._loop = [*logical]
        self.mesh: DeviceMesh | None = None

    @property
    def ndim(self) -> int:
        """The number of loops."""
        return len(self._loop)

    def logical(self) -> list[IterDomain]:
        """The dims as recorded, with those that the op of the tensor reduces."""
        return [*self._logical]

    def loop(self) -> list[IterDomain]:
        """The loops, outermost first."""
        return [*self._loop]

    def axis(self, dim: int) -> IterDomain:
        """One of the loops; negative numbers count from the last."""
        return self._loop[self._wrap("axis", dim)]

    def split(self, dim: int, factor: Any, inner_split: bool) -> None:
        """Replace a loop by its outer and inner part."""
        dim = self._wrap("split", dim)
        count = _constant(factor)
        old = self._loop[dim]
        if count is None or count < 1 or old.is_parallelized():
            raise DefinitionError(
                f"split: expected a constant factor of 1 or more and a serial dim, "
                f"got factor {factor} and dim {old}",
                loc=user_line(),
            )
        self._loop[dim : dim + 1] = old.split_in_two(count, inner_split)

    def merge(self, outer: int, inner: int) -> None:
        """Replace two loops by one over both, at the place of the outer one."""
        outer, inner = self._wrap("merge", outer), self._wrap("merge", inner)
        one, two = self._loop[outer], self._loop[inner]
        if one is two or any(loop.is_parallelized() for loop in (one, two)):
            raise DefinitionError(
                f"merge: expected two serial dims, got {one} and {two}",
                loc=user_line(),
                hint="Merge before parallelize, or parallelize(ParallelType.serial) first.",
            )
        self._loop[outer] = merged(one, two)
        del self._loop[inner]

    def swizzle(self, dim: int, kind: Any) -> None:
        """Let each device begin the steps of a loop at another one; results are the same."""
        loop = self._loop[self._wrap("swizzle1d", dim)]
        if kind not in MESH_TYPES or loop.is_device_dim():
            raise DefinitionError(
                f"swizzle1d: expected a loop that is on no mesh and a mesh type, "
                f"got {loop} and {kind}",
                loc=user_line(),
                hint="Swizzle the loop of the streams by the mesh type that it follows.",
            )
        loop.swizzle()

    def partial(self, dims: Sequence[int]) -> TensorDomain:
        """Reduce some of the reduced loops first; the domain of those partial results."""
        expect("rfactor", LISTED, dims)
        taken = {self._wrap("rfactor", dim) for dim in dims}
        kept = [dim for dim, loop in enumerate(self._loop) if dim not in taken]
        if not taken or not all(self._loop[dim].is_reduction() for dim in taken):
            raise DefinitionError(
                f"rfactor: expected loops that are reduced, got {[*dims]} of {self}",
                loc=user_line(),
                hint="Split a reduced dim, and give the dim of one part.",
            )
        if not any(self._loop[dim].is_reduction() for dim in kept):
            raise DefinitionError(
                f"rfactor: nothing is left to reduce in {self} without {[*dims]}",
                loc=user_line(),
                hint="Split a reduced dim, and give the dim of one part.",
            )
        loops = [loop.as_partial(dim in taken) for dim, loop in enumerate(self._loop)]
        self._loop = [self._loop[dim] for dim in kept]
        return TensorDomain(self.container, loops)

    def reorder(self, moves: Mapping[int, int] | Sequence[int]) -> None:
        """Permute the loops: ``{old: new}``, or all old dims in their new order."""
        expect("reorder", (Mapping, *LISTED), moves)
        rank = len(self._loop)
        order = [*moves]
        if isinstance(moves, Mapping):
            taken = {self._wrap("reorder", old): new for old, new in moves.items()}
            wanted = {self._wrap("reorder", new): old for old, new in taken.items()}
            others = (d for d in range(rank) if d not in taken)
            # Of two moved to one dim one is lost; the check below finds that.
            found = [wanted[d] if d in wanted else next(others, None) for d in range(rank)]
            order = [dim for dim in found if dim is not None]
        order = [self._wrap("reorder", dim) for dim in order]
        if sorted(order) != list(range(rank)):
            raise DefinitionError(
                f"reorder: {moves} is no reordering of {rank} dims", loc=user_line()
            )
        self._loop = [self._loop[dim] for dim in order]

    def allocate(
        self, domain: Sequence[IterDomain], contiguity: bool | Sequence[bool | None]
    ) -> None:
        """Check that the given memory order is that of the loops; there is no other effect."""
        expect("set_allocation_domain", LISTED, domain)
        own = {id(part): dim for dim, part in enumerate(self._loop)}
        dims = [own.get(id(part), -1) for part in domain]
        kept = [p for p in dims if p >= 0 and not self._loop[p].is_device_dim()]
        if sorted(dims) != list(range(len(self._loop))) or kept != sorted(kept):
            raise UnavailableError(
                f"set_allocation_domain({list(domain)}) is not available in tritonfuser: "
                f"the loops are {self}",
                loc=user_line(),
                hint="Give the memory order by define_tensor(stride_order=) or "
                "fd.ops.stride_order.",
            )

    def _wrap(self, what: str, dim: int) -> int:
        rank = len(self._loop)
        if not isinstance(dim, int) or isinstance(dim, bool):
            raise ArgumentError(
                f"{what}(): incompatible function arguments: expected a dim, got {dim!r}"
            )
        if not -rank <= dim < rank:
            raise DefinitionError(
                f"{what}: dim {dim} of a tensor with {rank} dims", loc=user_line()
            )
        return dim % rank

    def __repr__(self) -> str:
        return f"[ {', '.join(map(repr, self._loop))} ]" if self._loop else "[]"


def _constant(factor: Any) -> int | None:
    """The value of an int or of a constant Val; else None."""
    found = getattr(getattr(factor, "value", factor), "value", factor)
    return int(found) if isinstance(found, int) and not isinstance(found, bool) else None


def domain_of(container: Container, value: Value) -> TensorDomain:
    """The dims of a tensor as it was recorded; a reduction's result has the reduced ones too."""
    node = container.ir.producers.get(value)
    source, reduced = value, frozenset[int]()
    if node is not None:
        call = as_call(node)
        if isinstance(call.op.form, Reduction | Moments):
            source, reduced = call.value("arg"), frozenset(call.dims())
        elif call.op.axes is not None and value.is_tensor:
            return TensorDomain(
                container, [*_dims(container, value, reduced), *_contracted(container, call)]
            )
    return TensorDomain(container, _dims(container, source, reduced))


def _dims(container: Container, value: Value, reduced: frozenset[int]) -> list[IterDomain]:
    handle, dims = handle_of(container, value), enumerate(value.tensor.dims)
    return [_domain(handle, index, dim, index in reduced) for index, dim in dims]


def _contracted(container: Container, call: Call) -> list[IterDomain]:
    """The dims that a product sums over, behind those of its result."""
    if not isinstance(call.op.form, Library) or call.op.form.product is None:
        return []
    left = call.value("arg1")
    return _dims(container, left, frozenset({left.tensor.rank - 1}))[-1:]


def _domain(tensor: TensorView, index: int, dim: Dim, reduced: bool) -> IterDomain:
    length = Extent(
        f"{dim.size}",
        dim.size if isinstance(dim.size, int) else None,
        lambda: tensor.size(index),
    )
    if not dim.is_broadcast or reduced:
        return IterDomain(tensor.container, index, "r" if reduced else "i", length)
    one = Extent.of(tensor.container, 1)
    return IterDomain(tensor.container, index, "b", one, length if dim.expanded else None)
