"""``execute_with_dtensors``: a definition on torch's DTensors, DTensors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import distributed as dist

from ..errors import ArgumentError, InputError
from ..frontend.definition import FusionDefinition
from ..frontend.multidevice import Sharding
from ..frontend.record.device_mesh import MESH_TYPES, DeviceMesh
from ..frontend.record.tensor_view import TensorView
from ..frontend.vocabulary.argument_types import LISTED, expect
from ..frontend.vocabulary.location import user_line


def execute_with_dtensors(fd: FusionDefinition, in_dtensors: Sequence[Any]) -> list[Any]:
    """Run a definition on DTensors.

    Where the definition has put no tensor on a mesh, its inputs are put where the DTensors are.

    Parameters
    ----------
    fd : FusionDefinition
        Recorded with the shapes of whole tensors.
    in_dtensors : sequence of DTensor
        One an input of the definition; numbers are passed on. All on one mesh, each dim of it
        ``Replicate()`` or ``Shard(dim)``.

    Returns
    -------
    list of DTensor
        The outputs, on the same mesh, placed as the definition says or as it comes.

    Raises
    ------
    ArgumentError
        A TypeError: no DTensor among the inputs, or a tensor that is none.
    InputError
        DTensors on several meshes, or with a placement other than these two.
    """
    mesh = _mesh_of(in_dtensors)
    if not fd.fusion.shardings:
        spread(fd, in_dtensors)
    local = [x.to_local() if hasattr(x, "to_local") else x for x in in_dtensors]
    outputs = fd.run(local)
    shardings = fd.fec.get_output_shardings()
    made = next(type(x) for x in in_dtensors if hasattr(x, "to_local"))
    return [
        made.from_local(out, mesh, _placements(sharding), run_check=False)
        for out, sharding in zip(outputs, shardings, strict=True)
    ]


def spread(fd: FusionDefinition, in_dtensors: Sequence[Any]) -> None:
    """Put the inputs of a definition where DTensors are, before it is first run."""
    mesh = _mesh_of(in_dtensors)
    own = DeviceMesh(mesh.mesh)
    for handle, given in zip(fd.fusion.inputs(), in_dtensors, strict=True):
        if isinstance(handle, TensorView) and hasattr(given, "placements"):
            _spread_one(handle, given.placements, own)


def _spread_one(handle: TensorView, placements: Sequence[Any], mesh: DeviceMesh) -> None:
    handle.set_device_mesh(mesh)
    # Where both cut one dim, torch's first mesh dim has the larger parts.
    kinds = MESH_TYPES[: mesh.rank][::-1]
    for kind, placement in zip(kinds, placements, strict=True):
        if placement.is_replicate():
            continue
        if not placement.is_shard():
            raise InputError(
                f"execute_with_dtensors: {placement} is not supported",
                loc=user_line(),
                hint="Call redistribute() with Replicate() or Shard(dim) first.",
            )
        dim = handle.get_logical_domain()[placement.dim]
        axis = handle.get_loop_domain().index(dim.leaves()[-1])
        handle.outer_split(axis, mesh.size_of(kind))
        handle.axis(axis).parallelize(kind)


def _mesh_of(in_dtensors: Sequence[Any]) -> Any:
    expect("execute_with_dtensors", LISTED, in_dtensors)
    meshes = [x.device_mesh for x in in_dtensors if hasattr(x, "device_mesh")]
    tensors = [x for x in in_dtensors if not isinstance(x, bool | int | float | complex)]
    if not meshes or len(meshes) < len(tensors):
        raise ArgumentError(
            "execute_with_dtensors(): incompatible function arguments: expected DTensors, got "
            f"{[type(x).__name__ for x in in_dtensors]}"
        )
    if any(mesh != meshes[0] for mesh in meshes):
        raise InputError("execute_with_dtensors: the inputs are on several meshes", loc=user_line())
    for x in in_dtensors:
        _check_even(x)
    return meshes[0]


def _check_even(x: Any) -> None:
    """torch allows parts of different sizes; a definition is the same on all devices."""
    for place, placement in enumerate(getattr(x, "placements", ())):
        if placement.is_shard() and x.size(placement.dim) % x.device_mesh.size(place):
            raise InputError(
                f"execute_with_dtensors: dim {placement.dim} of shape {list(x.shape)} is not cut "
                f"evenly over {x.device_mesh.size(place)} devices",
                loc=user_line(),
                hint="Call redistribute() with Replicate(), or with Shard() of another dim.",
            )


def _placements(sharding: Sharding) -> list[Any]:
    # Importing torch.distributed.tensor takes a second; who has a DTensor has done so.
    found = dist.tensor
    axes = (sharding.axis_sharded_on(kind) for kind in MESH_TYPES[: sharding.mesh.rank][::-1])
    return [found.Replicate() if axis < 0 else found.Shard(axis) for axis in axes]
