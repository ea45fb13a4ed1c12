"""A definition over the devices of a mesh, with nvFuser's names."""

from __future__ import annotations

import sys

from .frontend import multidevice
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

# One module under two names: its parts are found under either.
sys.modules[__name__] = multidevice
