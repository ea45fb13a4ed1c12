"""Which process of a job this is: what torch.distributed says, else the launcher."""

from __future__ import annotations

import os

from torch import distributed as dist

_RANK = ("RANK", "OMPI_COMM_WORLD_RANK")
_SIZE = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")
_LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
_LOCAL_SIZE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")


def _launched(names: tuple[str, ...], default: int) -> int:
    """What torchrun or mpirun say of this process; they set variables, not options of ours."""
    found = next((os.environ[name] for name in names if os.environ.get(name)), None)
    return default if found is None else int(found)


def is_connected() -> bool:
    """Whether torch.distributed is initialised."""
    return dist.is_available() and dist.is_initialized()


def size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if is_connected() else _launched(_SIZE, 1)


def rank() -> int:
    """The number of this process."""
    return dist.get_rank() if is_connected() else _launched(_RANK, 0)


def local_size() -> int:
    """How many processes there are on this machine."""
    return _launched(_LOCAL_SIZE, size())


def local_rank() -> int:
    """The number of this process on this machine."""
    return _launched(_LOCAL_RANK, rank())
