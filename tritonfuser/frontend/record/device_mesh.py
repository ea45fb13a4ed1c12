"""``DeviceMesh``: devices of a job in one or more dims, named mesh_x, mesh_y, mesh_z."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from ...errors import ArgumentError, DefinitionError
from ..vocabulary import processes
from ..vocabulary.enums import ParallelType
from ..vocabulary.location import user_line

MESH_TYPES = (ParallelType.mesh_x, ParallelType.mesh_y, ParallelType.mesh_z)
"""The dims of a mesh, the last one first."""


class MeshSize(int):
    """A number of devices: ``mesh.size``, and ``mesh.size()`` or ``mesh.size(mesh_x)`` as well."""

    _of: Any

    def __call__(self, parallel_type: ParallelType | None = None) -> int:
        return int(self) if parallel_type is None else int(self._of.size_of(parallel_type))


class DeviceMesh:
    """Devices that share the work of a definition, each at one place of a grid.

    ``mesh_x`` runs along the grid's last dim, ``mesh_y`` along the one before, ``mesh_z`` along
    the one before that.

    Parameters
    ----------
    devices : list, tuple, range or Tensor of int
        The devices' numbers in the job (ranks of torch.distributed), nested or of several dims
        for a grid of several dims.

    Raises
    ------
    ArgumentError
        A TypeError: these are no ints.
    DefinitionError
        A RuntimeError: no devices, a device twice, more than three dims.

    Examples
    --------
    >>> DeviceMesh([[0, 1], [2, 3]]).size_of(ParallelType.mesh_x)
    2
    """

    def __init__(self, devices: Any) -> None:
        ids = _as_tensor(devices)
        flat = ids.flatten().tolist()
        if not flat or ids.dim() > len(MESH_TYPES):
            raise DefinitionError(
                f"DeviceMesh: expected devices in 1 to {len(MESH_TYPES)} dims, "
                f"got a shape of {list(ids.shape)}",
                loc=user_line(),
            )
        if len(set(flat)) != len(flat) or min(flat) < 0:
            raise DefinitionError(
                f"DeviceMesh: expected different devices, numbered from 0, got {flat}",
                loc=user_line(),
            )
        self._ids: tuple[int, ...] = tuple(flat)
        self._shape: tuple[int, ...] = tuple(ids.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dim of the grid."""
        return self._shape

    @property
    def rank(self) -> int:
        """The number of dims of the grid."""
        return len(self._shape)

    @property
    def size(self) -> MeshSize:
        """The number of devices; ``size(ParallelType.mesh_x)`` that along one dim."""
        found = MeshSize(len(self._ids))
        found._of = self
        return found

    @property
    def device_ids(self) -> list[int]:
        """The devices in row-major order."""
        return list(self._ids)

    @property
    def devices(self) -> torch.Tensor:
        """The grid, as int64 on the CPU."""
        return torch.tensor(self._ids).reshape(self._shape)

    def dim_of(self, parallel_type: ParallelType) -> int:
        """The grid's dim that a mesh type runs along.

        Raises
        ------
        DefinitionError
            The mesh has no such dim.
        """
        if parallel_type in MESH_TYPES[: self.rank]:
            return self.rank - 1 - MESH_TYPES.index(parallel_type)
        known = ", ".join(kind.name for kind in MESH_TYPES[: self.rank])
        raise DefinitionError(
            f"{self} has no {parallel_type.name}: its dims are {known}", loc=user_line()
        )

    def size_of(self, parallel_type: ParallelType) -> int:
        """How many devices lie along a mesh type."""
        return self._shape[self.dim_of(parallel_type)]

    def __contains__(self, device: int) -> bool:
        return device in self._ids

    def coordinate(self, device: int, parallel_type: ParallelType) -> int:
        """Where a device of the mesh lies along a mesh type."""
        dim = self.dim_of(parallel_type)
        step = math.prod(self._shape[dim + 1 :])
        return self._ids.index(device) // step % self._shape[dim]

    def team(self, device: int, parallel_type: ParallelType) -> tuple[int, ...]:
        """The devices on the line through a device along a mesh type, in order."""
        step = math.prod(self._shape[self.dim_of(parallel_type) + 1 :])
        first = self._ids.index(device) - self.coordinate(device, parallel_type) * step
        count = self.size_of(parallel_type)
        return tuple(self._ids[first + place * step] for place in range(count))

    def shard_tensor(
        self, tensor: torch.Tensor, axis: int, device_id: int | None = None
    ) -> torch.Tensor:
        """The part of a whole tensor that a device has where one axis is shared out.

        Parameters
        ----------
        tensor : Tensor
            All of it.
        axis : int
            The dim that is cut into ``size`` equal parts, in order of the devices.
        device_id : int, optional
            Whose part; by default this process's.

        Raises
        ------
        DefinitionError
            The device is not in the mesh, the tensor has no such dim, or it cannot be cut evenly.
        """
        count = len(self._ids)
        device = processes.rank() if device_id is None else device_id
        exists = -tensor.dim() <= axis < tensor.dim()
        if device not in self or not exists or tensor.size(axis) % count:
            raise DefinitionError(
                f"shard_tensor: dim {axis} of shape {list(tensor.shape)} has no part of "
                f"{count} for device {device} of {self}",
                loc=user_line(),
                hint="The extent must be a multiple of the mesh's size.",
            )
        return tensor.chunk(count, axis)[self._ids.index(device)].contiguous()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return (self._ids, self._shape) == (other._ids, other._shape)

    def __hash__(self) -> int:
        return hash((self._ids, self._shape))

    def __repr__(self) -> str:
        return f"DeviceMesh({self.devices.tolist()})"


def _as_tensor(devices: Any) -> torch.Tensor:
    given = devices
    if isinstance(devices, Sequence):
        given = list(devices)
    try:
        found = torch.as_tensor(given, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        found = torch.empty(0, dtype=torch.float32)
    whole = not (found.is_floating_point() or found.is_complex() or found.dtype is torch.bool)
    if not whole and not (isinstance(given, list) and not given):
        raise ArgumentError(
            f"DeviceMesh(): incompatible function arguments: expected ints, got {devices!r}"
        )
    return found.reshape(1) if not found.dim() else found
