"""Handles of values (``Val``, ``TensorView``) and of the ops that make them (``OpExpr``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from ...dtypes import DataType
from ...errors import ArgumentError, DefinitionError
from ...ir import Const, Node, Number, Operand, Value, type_text
from ...ops import registry
from ..vocabulary.argument_types import expect
from ..vocabulary.enums import MemoryType, ParallelType
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import SCHEDULE_HINT, UnavailableError
from .device_mesh import DeviceMesh
from .recorded_operators import RecordedOperators
from .refused_methods import LOOP_METHODS, refused
from .statements import Expr, Home, Statement, Text


class Val(Statement, RecordedOperators):
    """A scalar of a definition: an input, a constant or the result of an op.

    Not made by hand: ``fd.define_scalar``, ``t.size(dim)`` and ops of scalars give one.
    """

    __slots__ = ("_value",)

    def __init__(self, home: Home, value: Operand) -> None:
        super().__init__(home)
        self._value = value

    @property
    def value(self) -> Operand:
        """The value in the IR, or the constant."""
        return self._value

    def dtype(self) -> DataType:
        """The element type."""
        return self._value.dtype

    def is_tensor(self) -> bool:
        """Whether this is a TensorView."""
        return isinstance(self._value, Value) and self._value.is_tensor

    def is_symbolic(self) -> bool:
        """Whether it is known only at run time."""
        return isinstance(self._value, Value)

    def definition(self) -> Expr | None:
        """The op that makes it; None for inputs and constants."""
        if isinstance(self._value, Const):
            return None
        node = self._home.ir.producers.get(self._value)
        return None if node is None else expression(self._home, node)

    def uses(self) -> list[Expr]:
        """The ops that take it, in recording order."""
        if isinstance(self._value, Const):
            return []
        nodes = self._home.ir.consumers.get(self._value, ())
        return [expression(self._home, node) for node in nodes]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        value = self._value
        if isinstance(value, Value):
            return restored_handle, (self._home, value.name)
        return restored_handle, (self._home, value.value, value.dtype.name)

    def _record(self, op: Text, *operands: Any) -> Any:
        return self._home.call(op, *operands)

    def __eq__(self, other: object) -> Any:
        """While the definition is recorded, the op ``eq``; later, whether both are one value."""
        if self._home.open:
            return self._operator("eq", self, other)
        return isinstance(other, Val) and self._home is other._home and self._value == other._value

    def __ne__(self, other: object) -> Any:
        """While the definition is recorded, the op ``ne``; later, whether they are two values."""
        if self._home.open:
            return self._operator("ne", self, other)
        return not self == other

    # A value has one handle, so handles are the same where values are.
    __hash__ = object.__hash__

    def __repr__(self) -> Text:
        if isinstance(self._value, Const):
            return repr(self._value)
        if self._home.has_nvfusers_names:
            return self._nvfusers_text(self._value)
        return f"{self._value.name}: {type_text(self._value.type)}"

    def _nvfusers_text(self, value: Value) -> Text:
        return f"{value.dtype.info.letter}{value.index}"


class TensorView(Val):
    """A tensor of a definition: an input or the result of an op."""

    __slots__ = ()
    _value: Value

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self._value.tensor.rank

    def size(self, dim: int) -> Val:
        """The extent of a dim: a constant where it is static, else known at run time."""
        expect("size", (int, np.integer), dim)
        rank = self.ndim
        if not -rank <= dim < rank:
            raise DefinitionError(
                f"size: The dimension requested is beyond the bounds of the shape: "
                f"{dim} of {self._value.name} with {rank} dims"
            )
        extent = self._value.tensor.shape[dim]
        if isinstance(extent, int):
            constant: Val = handle_of(self._home, Const.of(extent))
            return constant
        found: Val = self._home.call("size", self, dim % rank)
        return found

    def shape(self) -> list[Val]:
        """The extents of all dims."""
        return [self.size(dim) for dim in range(self.ndim)]

    # --- dims and devices ------------------------------------------------------------------

    def domain(self) -> Any:
        """The ``TensorDomain``: logical dims, loops, mesh."""
        return self._home.domain_of(self._value)

    def axis(self, place: int) -> Any:
        """The ``IterDomain`` of one loop, negative places from the last."""
        return self.domain().axis(place)

    def get_logical_domain(self) -> list[Any]:
        """The dims as recorded, with those that the tensor's op reduces."""
        found: list[Any] = self.domain().logical()
        return found

    def get_root_domain(self) -> list[Any]:
        """The logical domain: a tensor has no domain before it."""
        return self.get_logical_domain()

    def get_loop_domain(self) -> list[Any]:
        """The loops over the dims, after splits."""
        found: list[Any] = self.domain().loop()
        return found

    def has_root(self) -> bool:
        """False: a tensor has its logical dims only."""
        return False

    def set_device_mesh(self, mesh: DeviceMesh) -> None:
        """Spread the tensor over the devices of a mesh, whole on each until a dim is put there.

        ``outer_split(dim, mesh.size)`` and ``axis(dim).parallelize(ParallelType.mesh_x)`` then
        give each device one part of a dim. Shapes in a definition are those of the whole tensor;
        a run takes and returns each device's part.

        Parameters
        ----------
        mesh : DeviceMesh
            The same for all tensors of a definition.

        Raises
        ------
        DefinitionError
            Another tensor is on another mesh.
        """
        if not isinstance(mesh, DeviceMesh):
            raise ArgumentError(
                "set_device_mesh(): incompatible function arguments: expected a DeviceMesh, "
                f"got {mesh!r}"
            )
        self._home.put(self._value, mesh)

    def get_device_mesh(self) -> DeviceMesh | None:
        """The mesh it was put on."""
        found: DeviceMesh | None = self.domain().mesh
        return found

    def has_device_mesh(self) -> bool:
        """Whether it was put on a mesh."""
        return self.get_device_mesh() is not None

    def split(self, dim: int, factor: int | Val, inner_split: bool = True) -> TensorView:
        """Cut a loop in two; ``factor`` is the extent of the inner part, or of the outer one."""
        self.domain().split(dim, factor, inner_split)
        return self

    def outer_split(self, dim: int, factor: int | Val) -> TensorView:
        """``[..., n, ...]`` -> ``[..., factor, n / factor, ...]``."""
        return self.split(dim, factor, inner_split=False)

    def inner_split(self, dim: int, factor: int | Val) -> TensorView:
        """``[..., n, ...]`` -> ``[..., n / factor, factor, ...]``."""
        return self.split(dim, factor, inner_split=True)

    def reorder(self, moves: Mapping[int, int] | Sequence[int]) -> TensorView:
        """Loops in another order: ``{old: new}``, or all old places in their new order."""
        self.domain().reorder(moves)
        return self

    def merge(self, outer: int, inner: int | None = None) -> TensorView:
        """Two loops as one: ``outer`` and ``inner``, by default the one behind it."""
        expect("merge", int, outer)
        self.domain().merge(outer, outer + 1 if inner is None else inner)
        return self

    def swizzle1d(self, dim: int, parallel_type: ParallelType) -> TensorView:
        """Let each device of a mesh type begin the steps of a loop at its own one.

        A ring of transfers is written so: the loop is put on ``ParallelType.stream``. Results do
        not depend on it.
        """
        self.domain().swizzle(dim, parallel_type)
        return self

    def rfactor(self, dims: Sequence[int]) -> TensorView:
        """Reduce some loops of what the tensor's op reduces first, the others later.

        Parameters
        ----------
        dims : sequence of int
            Loops that are reduced: parts of a split dim.

        Returns
        -------
        TensorView
            The partial results, to be put on a mesh. Ops cannot take them.
        """
        found: TensorView = self._home.partial_of(self._value, dims)
        return found

    def set_memory_type(self, memory_type: MemoryType) -> None:
        """Say what memory the tensor is in.

        ``symmetric``, which other devices can read, and ``global`` are accepted: how devices
        exchange parts is up to torch.distributed.

        Raises
        ------
        UnavailableError
            Another one: kernels manage their registers and shared memory.
        """
        if not isinstance(memory_type, MemoryType):
            raise ArgumentError(
                "set_memory_type(): incompatible function arguments: expected a MemoryType, "
                f"got {memory_type!r}"
            )
        if memory_type not in (MemoryType.symmetric, MemoryType.global_):
            raise UnavailableError(
                f"set_memory_type(MemoryType.{memory_type.value}) is not available in tritonfuser",
                loc=user_line(),
                hint=SCHEDULE_HINT,
            )

    def set_allocation_domain(
        self, domain: Sequence[Any], new_contiguity: bool | Sequence[bool | None] = True
    ) -> None:
        """Say how a device's part lies in memory: row-major, which is what there is."""
        self.domain().allocate(domain, new_contiguity)

    def _nvfusers_text(self, value: Value) -> Text:
        fusion = self._home.ir
        ends = (*fusion.inputs, *(out.value for out in fusion.outputs))
        memory = "g" if value in ends else "l"
        dims = ", ".join(map(repr, self.get_loop_domain()))
        return f"T{value.index}_{memory}_{value.dtype.value}[{dims}]"


for _name in LOOP_METHODS:
    setattr(TensorView, _name, refused(_name))


class OpExpr(Expr):
    """An op of a definition, as recorded."""

    __slots__ = ("_node",)

    def __init__(self, home: Home, node: Node) -> None:
        super().__init__(home)
        self._node = node

    @property
    def op(self) -> Text:
        """The op's name under ``fd.ops``."""
        return self._node.op

    @property
    def node(self) -> Node:
        """The node in the IR."""
        return self._node

    def inputs(self) -> list[Val]:
        """The values it takes, constants left out."""
        return [wrap(self._home, value) for value in self._node.operands()]

    def outputs(self) -> list[Val]:
        """The values it makes."""
        return [wrap(self._home, value) for value in self._node.outs]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpExpr) and self._node == other._node and self._home is other._home

    def __hash__(self) -> int:
        return hash((self._node.op, self._node.outs))

    def __repr__(self) -> Text:
        operands = ", ".join(repr(arg) for arg in self._node.args)
        return f"{', '.join(out.name for out in self._node.outs)} = {self._node.op}({operands})"


class BroadcastOp(OpExpr):
    """New dims of size 1."""

    __slots__ = ()


class SqueezeOp(OpExpr):
    """Dims of size 1 taken away."""

    __slots__ = ()


class ReshapeOp(OpExpr):
    """The elements in another shape."""

    __slots__ = ()


_EXPRESSIONS = {cls.__name__: cls for cls in (BroadcastOp, SqueezeOp, ReshapeOp)}


def expression(home: Home, node: Node) -> OpExpr:
    """A node as a handle, of the class that nvFuser has for the op."""
    return _EXPRESSIONS.get(registry.get(node.op).expression, OpExpr)(home, node)


def wrap(home: Home, result: Any) -> Any:
    """Values of the IR as handles, in tuples and lists too."""
    if isinstance(result, tuple | list):
        return type(result)(wrap(home, item) for item in result)
    return handle_of(home, result) if isinstance(result, Value | Const) else result


def handle_of(home: Home, value: Operand) -> Any:
    """The one handle of a value or a constant."""
    found = home.handles.get(value)
    if found is None:
        kind = TensorView if isinstance(value, Value) and value.is_tensor else Val
        found = home.handles.setdefault(value, kind(home, value))
    return found


def restored_handle(home: Home, value: Text | Number, dtype: Text | None = None) -> Any:
    """The handle of a value or a constant: what copies and pickles of one are made by.

    Parameters
    ----------
    home : Fusion
        The recording, or its copy.
    value : str or number
        The name of a value, or a constant.
    dtype : str, optional
        The name of a constant's dtype.

    Raises
    ------
    DefinitionError
        The recording has no value of that name.
    """
    if not isinstance(value, Text):
        return handle_of(home, Const(value, DataType[dtype or "Null"]))
    made = (out for node in home.ir.nodes for out in node.outs)
    for found in (*home.handles, *home.ir.inputs, *made):
        if isinstance(found, Value) and found.name == value:
            return handle_of(home, found)
    raise DefinitionError(f"{value} is no input of the definition, and no op computes it")


def unwrap(given: Any, check: Callable[[Val], Operand]) -> Any:
    """Handles as values of the IR, in a list or a tuple too; ``check`` sees each handle.

    No op takes lists of lists: what is in an inner one stays as it is.
    """
    if isinstance(given, Val):
        return check(given)
    if isinstance(given, tuple | list):
        return [check(item) if isinstance(item, Val) else item for item in given]
    return given
