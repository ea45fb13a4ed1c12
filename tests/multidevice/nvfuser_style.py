"""What programs written for nvFuser do with tensors of a definition, said in one call."""

from __future__ import annotations

from typing import Any

from tritonfuser import DataType, ParallelType, multidevice

X, Y, Z = ParallelType.mesh_x, ParallelType.mesh_y, ParallelType.mesh_z
STREAM = ParallelType.stream


def tensor(fd: Any, *shape: int, dtype: DataType = DataType.Float, **more: Any) -> Any:
    """A contiguous input."""
    return fd.define_tensor(list(shape), contiguity=True, dtype=dtype, **more)


def on(mesh: multidevice.DeviceMesh, *tensors: Any) -> None:
    """Put tensors on a mesh, whole."""
    for tv in tensors:
        tv.set_device_mesh(mesh)


def outer(tv: Any, dim: int, kind: ParallelType = X, count: int | None = None) -> None:
    """Split the outermost part of a loop over a mesh type, or over ``count`` streams."""
    tv.outer_split(dim, count or tv.get_device_mesh().size_of(kind))
    tv.axis(dim if dim >= 0 else dim - 1).parallelize(kind)


def inner(tv: Any, dim: int, kind: ParallelType = X) -> None:
    """Split the innermost part of a loop over a mesh type: neighbours on different devices."""
    tv.inner_split(dim, tv.get_device_mesh().size_of(kind))
    tv.axis(dim + 1 if dim >= 0 else dim).parallelize(kind)


def middle(tv: Any, dim: int, blocks: int, kind: ParallelType = X) -> None:
    """Cut each of some blocks of a dim over a mesh type."""
    tv.outer_split(dim, blocks)
    outer(tv, dim + 1 if dim >= 0 else dim, kind)
