"""``multidevice``: a definition over the devices of a mesh, with nvFuser's names.

Shapes in the definition are those of whole tensors. Tensors put on a mesh are given to a run, and
returned by it, as the part that this device has.
"""

from __future__ import annotations

from ..record.device_mesh import DeviceMesh
from ..record.sharding import Sharding
from ..vocabulary.enums import CommunicatorBackend
from .communicator import Communicator
from .multi_device_executor import MultiDeviceExecutor, MultiDeviceExecutorParams
from .shard_tensor import shard_tensor

__all__ = [
    "Communicator",
    "CommunicatorBackend",
    "DeviceMesh",
    "MultiDeviceExecutor",
    "MultiDeviceExecutorParams",
    "Sharding",
    "shard_tensor",
]
