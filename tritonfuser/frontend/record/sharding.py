"""``Sharding``: how a tensor is distributed over a mesh, read off its ``TensorDomain``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import DefinitionError
from ...ir import Value
from ..vocabulary.enums import ParallelType
from ..vocabulary.location import user_line
from .device_mesh import DeviceMesh
from .iter_domains import IterDomain
from .tensor_domain import TensorDomain

Shards = tuple[tuple[ParallelType, ...], ...]
"""For each dim the mesh types it is cut along, the one of the largest parts first."""


@dataclass(frozen=True)
class Sharding:
    """Where the parts of a tensor are.

    Attributes
    ----------
    mesh : DeviceMesh
        The devices.
    shards : tuple of tuple of ParallelType
        For each dim the mesh types it is cut along, the one of the largest parts first. A mesh
        type named nowhere has the same part on all its devices.
    """

    mesh: DeviceMesh
    shards: Shards

    def axis_sharded_on(self, parallel_type: ParallelType) -> int:
        """The dim that is cut along a mesh type; -1 where none is."""
        for dim, types in enumerate(self.shards):
            if parallel_type in types:
                return dim
        return -1

    def parts(self, dim: int) -> int:
        """In how many parts a dim is cut."""
        return parts(self.mesh, self.shards[dim])


Shardings = tuple[tuple[Value, Sharding], ...]


def parts(mesh: DeviceMesh, types: tuple[ParallelType, ...]) -> int:
    """How many devices there are along some mesh types."""
    return math.prod(mesh.size_of(kind) for kind in types)


def sharding_of(domain: TensorDomain) -> Sharding:
    """What the splits and the parallel types of a tensor mean.

    ``[n, m]`` with ``outer_split(0, 2)`` and ``axis(0).parallelize(mesh_x)`` -> dim 0 along mesh_x.

    Raises
    ------
    DefinitionError
        A part other than the outermost is put on the mesh, a mesh type is used twice, or a part
        has another extent than the mesh.
    """
    mesh = domain.mesh
    assert mesh is not None
    dims = [dim for dim in domain.logical() if not dim.is_reduction()]
    shards = tuple(_types(dim, mesh, domain) for dim in dims)
    used = [kind for types in shards for kind in types]
    if len(set(used)) != len(used):
        raise DefinitionError(
            f"multidevice: {domain} uses a mesh type twice",
            loc=user_line(),
            hint="A mesh type can cut one dim of a tensor.",
        )
    return Sharding(mesh, shards)


def _types(dim: IterDomain, mesh: DeviceMesh, domain: TensorDomain) -> tuple[ParallelType, ...]:
    leaves = [leaf for leaf in dim.leaves() if leaf.length.known != 1 or leaf.is_device_dim()]
    on_mesh = [leaf for leaf in leaves if leaf.is_device_dim()]
    if leaves[: len(on_mesh)] != on_mesh:
        raise DefinitionError(
            f"multidevice: {domain} puts an inner part of a dim on the mesh",
            loc=user_line(),
            hint="Use t.outer_split(dim, mesh.size), and parallelize the outer part.",
        )
    for leaf in on_mesh:
        count = mesh.size_of(leaf.parallel_type)
        if leaf.length.known not in (None, count):
            raise DefinitionError(
                f"multidevice: {leaf} of {domain} has {leaf.length.known} steps, the mesh has "
                f"{count} devices along {leaf.parallel_type.name}",
                loc=user_line(),
                hint="Use t.outer_split(dim, mesh.size), and parallelize the outer part.",
            )
    return tuple(leaf.parallel_type for leaf in on_mesh)
