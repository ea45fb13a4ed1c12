"""``Sharding``: how a tensor is distributed over a mesh, read off its ``TensorDomain``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import DefinitionError, SourceLoc
from ...ir import Value
from ..vocabulary.enums import ParallelType
from ..vocabulary.location import user_line
from .cuts import OPEN, Cut, Factor, Shards, at_extent, kinds, normal, parts, span
from .device_mesh import DeviceMesh
from .iter_domains import IterDomain
from .tensor_domain import TensorDomain


@dataclass(frozen=True)
class Sharding:
    """Where the parts of a tensor are.

    Attributes
    ----------
    mesh : DeviceMesh
        The devices.
    shards : tuple of tuple of (ParallelType or int)
        For each dim the mesh types it is cut along, the one of the largest parts first. A number
        before a mesh type is a number of blocks, each of which is cut: ``(3, mesh_x)``; -1 is a
        number that follows from the extent. A mesh type named nowhere has the same part on all
        its devices.
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
        """How many times smaller a device's part of a dim is than the dim."""
        return parts(self.mesh, self.shards[dim])

    def at(self, sizes: Sequence[int]) -> Shards:
        """The cuts of a tensor whose extents are known."""
        pairs = zip(self.shards, sizes, strict=True)
        return tuple(at_extent(self.mesh, cut, size) for cut, size in pairs)


Shardings = tuple[tuple[Value, Sharding], ...]


def sharding_of(domain: TensorDomain) -> Sharding:
    """What the splits and the parallel types of a tensor mean.

    ``[n, m]`` with ``outer_split(0, 2)`` and ``axis(0).parallelize(mesh_x)`` -> dim 0 along mesh_x.

    Raises
    ------
    DefinitionError
        A mesh type is used twice, a part has another extent than the mesh, or a dim is not cut
        evenly.
    """
    mesh = domain.mesh
    assert mesh is not None
    dims = [dim for dim in domain.logical() if not dim.is_reduction()]
    shards = tuple(_cut(dim, mesh, domain) for dim in dims)
    used = [kind for cut in shards for kind in kinds(cut)]
    if len(set(used)) != len(used):
        raise DefinitionError(
            f"parallelize: {domain} uses a mesh type twice",
            loc=_line(dims),
            hint="A mesh type can cut one dim of a tensor.",
        )
    return Sharding(mesh, shards)


def _cut(dim: IterDomain, mesh: DeviceMesh, domain: TensorDomain) -> Cut:
    leaves = dim.leaves()
    while leaves and not leaves[-1].is_device_dim():
        leaves.pop()
    for leaf in leaves:
        _check_extent(leaf, mesh, domain)
    factors = [_factor(leaf) for leaf in dim.leaves()]
    cut = normal(factors[: len(leaves)]) if OPEN not in factors[: len(leaves)] else tuple(factors)
    extent, whole = dim.stretched.known, span(mesh, cut)
    if extent is not None and extent % whole:
        raise DefinitionError(
            f"split: dim {dim} of {domain} is cut evenly by {whole} parts only if its extent is a "
            f"multiple of {whole}",
            loc=_line([dim]),
            hint="Pad the dim, or cut another one.",
        )
    return cut


def _factor(leaf: IterDomain) -> Factor:
    if leaf.is_device_dim():
        return leaf.parallel_type
    return OPEN if leaf.length.known is None else leaf.length.known


def _check_extent(leaf: IterDomain, mesh: DeviceMesh, domain: TensorDomain) -> None:
    if not leaf.is_device_dim():
        return
    count = mesh.size_of(leaf.parallel_type)
    if leaf.length.known not in (None, count):
        raise DefinitionError(
            f"parallelize: {leaf} of {domain} has {leaf.length.known} steps, the mesh has "
            f"{count} devices along {leaf.parallel_type.name}",
            loc=leaf.line,
            hint="Use t.outer_split(dim, mesh.size), and parallelize the outer part.",
        )


def _line(dims: Sequence[IterDomain]) -> SourceLoc:
    """The user's line that put a part of some dims on the mesh last."""
    lines = [leaf.line for dim in dims for leaf in dim.leaves() if leaf.is_device_dim()]
    return lines[-1] if lines else user_line()
