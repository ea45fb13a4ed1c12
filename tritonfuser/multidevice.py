"""A definition over the devices of a mesh, with nvFuser's names."""

from __future__ import annotations

from .frontend.multidevice import (
    Communicator,
    CommunicatorBackend,
    DeviceMesh,
    MultiDeviceExecutor,
    MultiDeviceExecutorParams,
    Sharding,
    shard_tensor,
)

__all__ = [
    "Communicator",
    "CommunicatorBackend",
    "DeviceMesh",
    "MultiDeviceExecutor",
    "MultiDeviceExecutorParams",
    "Sharding",
    "shard_tensor",
]
