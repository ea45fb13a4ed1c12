"""``TensorView``: the handle of a tensor, with its dims, loops and mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DefinitionError
from ...ir import Const, Value
from ..vocabulary.argument_types import expect
from ..vocabulary.enums import MemoryType, ParallelType
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import SCHEDULE_HINT, UnavailableError
from .device_mesh import DeviceMesh
from .refused_methods import LOOP_METHODS, refused
from .statements import Text
from .val import Val, Vector


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
            constant: Val = self._container.handle_of(Const.of(extent))
            return constant
        found: Val = self._container.call("size", self, dim % rank)
        return found

    def shape(self) -> Vector:
        """The extents of all dims."""
        return Vector(self.size(dim) for dim in range(self.ndim))

    # --- dims and devices ------------------------------------------------------------------

    def domain(self) -> Any:
        """The ``TensorDomain``: logical dims, loops, mesh."""
        return self._container.domain_of(self._value)

    def axis(self, dim: int) -> Any:
        """The ``IterDomain`` of one loop, negative numbers from the last."""
        return self.domain().axis(dim)

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
        self._container.put(self._value, mesh)

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
        """Loops in another order: ``{old: new}``, or all old dims in their new order."""
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
        """Reduce in two steps: over ``dims`` first, over the other reduced loops later.

        Parameters
        ----------
        dims : sequence of int
            Loops that are reduced: parts of a split dim.

        Returns
        -------
        TensorView
            The partial results, to be put on a mesh. Ops cannot take them.
        """
        found: TensorView = self._container.partial_of(self._value, dims)
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

    def _nvfuser_text(self, value: Value) -> Text:
        fusion = self._container.ir
        ends = (*fusion.inputs, *(out.value for out in fusion.outputs))
        memory = "g" if value in ends else "l"
        dims = ", ".join(map(repr, self.get_loop_domain()))
        return f"T{value.index}_{memory}_{value.dtype.value}[{dims}]"


for _name in LOOP_METHODS:
    setattr(TensorView, _name, refused(_name))
