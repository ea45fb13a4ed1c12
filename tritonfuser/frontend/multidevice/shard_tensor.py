"""``shard_tensor``: a whole tensor in, the part of it that this device has out."""

from __future__ import annotations

import torch

from ...errors import DefinitionError
from ..record.handles import TensorView
from ..record.sharding import Sharding, sharding_of
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
    for dim, kinds in enumerate(sharding.shards):
        if tensor.size(dim) % sharding.parts(dim):
            raise DefinitionError(
                f"shard_tensor: dim {dim} of shape {list(tensor.shape)} is not cut evenly by "
                f"{sharding.parts(dim)}",
                loc=user_line(),
            )
        for kind in kinds:
            found = found.chunk(mesh.size_of(kind), dim)[mesh.coordinate(device, kind)]
    return found.contiguous()
