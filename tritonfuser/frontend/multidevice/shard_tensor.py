"""``shard_tensor``: the part of a whole tensor that this device has."""

from __future__ import annotations

import math

import torch

from ...errors import DefinitionError
from ..record.cuts import Cut, at_extent, count, span
from ..record.device_mesh import DeviceMesh
from ..record.sharding import Sharding, sharding_of
from ..record.tensor_view import TensorView
from ..vocabulary.enums import ParallelType
from ..vocabulary.location import user_line
from .communicator import Communicator


def shard_tensor(tensor: torch.Tensor, tv: TensorView) -> torch.Tensor:
    """What this device has of a tensor that is given for a ``TensorView`` on a mesh.

    Parameters
    ----------
    tensor : Tensor
        All of it.
    tv : TensorView
        Put on a mesh; one that is not is whole everywhere.

    Raises
    ------
    DefinitionError
        A RuntimeError: other dims than the definition's, or one that cannot be cut evenly.
    """
    if not tv.has_device_mesh():
        return tensor
    return part(tensor, sharding_of(tv.domain()), Communicator.instance().rank())


def part(tensor: torch.Tensor, sharding: Sharding, device: int) -> torch.Tensor:
    """What a device has of a tensor."""
    if tensor.dim() != len(sharding.shards):
        raise DefinitionError(
            f"shard_tensor: expected a tensor of {len(sharding.shards)} dims, "
            f"got shape {list(tensor.shape)}",
            loc=user_line(),
        )
    mesh, found = sharding.mesh, tensor
    for dim, cut in enumerate(sharding.shards):
        if tensor.size(dim) % span(mesh, cut):
            raise DefinitionError(
                f"shard_tensor: dim {dim} of shape {list(tensor.shape)} is not cut evenly by "
                f"{span(mesh, cut)}",
                loc=user_line(),
            )
        found = _part_of_dim(found, dim, at_extent(mesh, cut, tensor.size(dim)), mesh, device)
    return found.contiguous()


def _part_of_dim(
    tensor: torch.Tensor, dim: int, cut: Cut, mesh: DeviceMesh, device: int
) -> torch.Tensor:
    sizes = [count(mesh, factor) for factor in cut]
    rest = tensor.size(dim) // math.prod(sizes)
    found = tensor.reshape(*tensor.shape[:dim], *sizes, rest, *tensor.shape[dim + 1 :])
    for place, factor in reversed([*enumerate(cut, dim)]):
        if isinstance(factor, ParallelType):
            found = found.select(place, mesh.coordinate(device, factor))
    return found.flatten(dim, dim + sum(isinstance(factor, int) for factor in cut))
