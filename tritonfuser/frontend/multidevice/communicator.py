"""The job's processes: who this one is, and what it can do with others, by torch.distributed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import torch
from torch import distributed as dist

from ...errors import InputError

_RANK = ("RANK", "OMPI_COMM_WORLD_RANK")
_SIZE = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")
_LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
_LOCAL_SIZE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")


def _launched(names: tuple[str, ...], default: int) -> int:
    """What torchrun or mpirun say of this process; they set variables, not options of ours."""
    found = next((os.environ[name] for name in names if os.environ.get(name)), None)
    return default if found is None else int(found)


class Communicator:
    """This process among those of the job. ``Communicator.instance()`` is the only one.

    Numbers are those of torch.distributed where it is initialised, else those of the launcher;
    without either there is one process.
    """

    _only: Communicator | None = None

    @classmethod
    def instance(cls) -> Communicator:
        """The one of this process."""
        if cls._only is None:
            cls._only = cls()
        return cls._only

    def size(self) -> int:
        """How many processes there are."""
        return dist.get_world_size() if _ready() else _launched(_SIZE, 1)

    def rank(self) -> int:
        """The number of this process, and of its device in a mesh."""
        return dist.get_rank() if _ready() else _launched(_RANK, 0)

    def local_size(self) -> int:
        """How many processes there are on this machine."""
        return _launched(_LOCAL_SIZE, self.size())

    def local_rank(self) -> int:
        """The number of this process on this machine, and of its GPU."""
        return _launched(_LOCAL_RANK, self.rank())

    def is_available(self) -> bool:
        """Whether processes can talk to each other."""
        return _ready() or self.size() == 1

    def barrier(self) -> None:
        """Wait for all processes; with one, nothing."""
        if self.size() > 1:
            connect()
            dist.barrier()


def _ready() -> bool:
    return dist.is_available() and dist.is_initialized()


def connect() -> None:
    """Initialise torch.distributed where a launcher started this process and nobody has yet.

    Raises
    ------
    InputError
        There is no launcher to ask.
    """
    if _ready():
        return
    own = Communicator.instance()
    if not dist.is_available() or own.size() == 1:
        raise InputError(
            "multidevice: other devices of the mesh cannot be reached",
            hint="Start with torchrun, or call torch.distributed.init_process_group().",
        )
    address = os.environ.get("MASTER_ADDR", "localhost")
    port = os.environ.get("MASTER_PORT", "29500")
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
        init_method=f"tcp://{address}:{port}",
        rank=own.rank(),
        world_size=own.size(),
    )


class Line:
    """Some processes in an order, this one among them, that exchange parts of tensors."""

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.world = dist.group.WORLD
        # A group numbers its members by rank.
        self._places = [sorted(ranks).index(rank) for rank in ranks]
        whole = sorted(ranks) == list(range(dist.get_world_size()))
        self._group = None if whole else dist.new_group(ranks, use_local_synchronization=True)

    def parts(self, own: torch.Tensor) -> list[torch.Tensor]:
        """Everyone's tensor, all of one shape, in order."""
        if not own.numel():
            return [own] * len(self._places)
        # As bytes: backends differ in the dtypes they take.
        sent = own.contiguous().reshape(-1).view(torch.uint8)
        received = [torch.empty_like(sent) for _ in self._places]
        dist.all_gather(received, sent, group=self._group)
        return [received[p].view(own.dtype).reshape(own.shape) for p in self._places]

    def joined(self, own: torch.Tensor, dim: int) -> torch.Tensor:
        """Everyone's tensor, one after the other along a dim."""
        return torch.cat(self.parts(own), dim)

    def combined(self, own: torch.Tensor, how: str) -> torch.Tensor:
        """Everyone's tensor made one, element by element; ``how`` is the neutral element."""
        if how == ADDED and own.dtype in _BY_BACKENDS:
            found = own.clone(memory_format=torch.contiguous_format)
            dist.all_reduce(found, group=self._group)
            return found
        return functools.reduce(_JOIN[how], self.parts(own))


ADDED = "zero"
"""The neutral element, as the op table names it, of results that add up."""

_BY_BACKENDS = frozenset(
    {
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
    }
)
"""What gloo and NCCL both add up."""

_JOIN: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ADDED: torch.add,
    "one": torch.mul,
    "lowest": torch.maximum,
    "highest": torch.minimum,
}
"""Of two parts; NaN stays, which the backends' own extrema do not promise."""

_lines: dict[tuple[int, ...], Line] = {}


def line(ranks: tuple[int, ...]) -> Line:
    """The processes of some ranks, connected once for each initialisation."""
    connect()
    found = _lines.get(ranks)
    if found is None or found.world is not dist.group.WORLD:
        found = _lines[ranks] = Line(ranks)
    return found
