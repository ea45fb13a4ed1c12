"""``multidevice``: a definition over the devices of a mesh, with nvFuser's names.

Shapes in the definition are those of whole tensors. Tensors put on a mesh are given to a run, and
returned by it, as the part that this device has.
"""

from __future__ import annotations

from ..enums import CommunicatorBackend
from ..mesh import DeviceMesh
from .communicator import Communicator
from .parts import shard_tensor
from .sharding import Sharding

__all__ = ["Communicator", "CommunicatorBackend", "DeviceMesh", "Sharding", "shard_tensor"]
