"""The job's processes: who this one is, and what it can do with others, by torch.distributed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import torch
from torch import distributed as dist

from ...errors import InputError
from ..vocabulary import processes


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
        return processes.size()

    def rank(self) -> int:
        """The number of this process, and of its device in a mesh."""
        return processes.rank()

    def local_size(self) -> int:
        """How many processes there are on this machine."""
        return processes.local_size()

    def local_rank(self) -> int:
        """The number of this process on this machine, and of its GPU."""
        return processes.local_rank()

    def is_available(self) -> bool:
        """Whether processes can talk to each other."""
        return processes.is_connected() or self.size() == 1

    def barrier(self) -> None:
        """Wait for all processes; with one, nothing."""
        if self.size() > 1:
            connect()
            dist.barrier()


def connect() -> None:
    """Initialise torch.distributed where a launcher started this process and nobody has yet.

    Raises
    ------
    InputError
        There is no launcher to ask.
    """
    if processes.is_connected():
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


class ProcessGroup:
    """Processes in a fixed order, this one among them, and their collectives."""

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.world = dist.group.WORLD
        # A group numbers its members by rank.
        self._places = [sorted(ranks).index(rank) for rank in ranks]
        whole = sorted(ranks) == list(range(dist.get_world_size()))
        self._group = None if whole else dist.new_group(ranks, use_local_synchronization=True)

    def all_gather_list(self, own: torch.Tensor) -> list[torch.Tensor]:
        """The tensors of all processes, which have one shape, in the order of the group."""
        if not own.numel():
            return [own] * len(self._places)
        # As bytes: backends differ in the dtypes they take.
        sent = own.contiguous().reshape(-1).view(torch.uint8)
        received = [torch.empty_like(sent) for _ in self._places]
        dist.all_gather(received, sent, group=self._group)
        return [received[p].view(own.dtype).reshape(own.shape) for p in self._places]

    def all_gather(self, own: torch.Tensor, dim: int, blocks: int = 1) -> torch.Tensor:
        """The parts of all processes, concatenated along ``dim``, in each of its ``blocks``."""
        return join(self.all_gather_list(own), dim, blocks)

    def reduce_scatter(self, own: torch.Tensor, dim: int, blocks: int = 1) -> torch.Tensor:
        """The sum of all tensors, of which a process gets its part of each block of ``dim``."""
        count = len(self._places)
        sizes = (blocks, count, own.size(dim) // (blocks * count))
        if own.dtype in _BY_BACKENDS and own.numel():
            parts = _split(own, dim, sizes).movedim(dim + 1, 0)
            order = [self._places.index(rank) for rank in range(count)]
            sent = (parts if order == sorted(order) else parts[order]).contiguous()
            received = torch.empty_like(sent[0])
            # Flat: backends differ in the shapes they take.
            dist.reduce_scatter_tensor(received.view(-1), sent.view(-1), group=self._group)
        else:
            mine = self._places.index(dist.get_rank(self._group))
            received = _split(self.all_reduce(own, ADDED), dim, sizes).select(dim + 1, mine)
        return received.flatten(dim, dim + 1)

    def all_reduce(self, own: torch.Tensor, how: str) -> torch.Tensor:
        """The tensors of all processes, reduced element by element.

        ``how`` names the neutral element of the reduction: "zero" is a sum.
        """
        if how == ADDED and own.dtype in _BY_BACKENDS:
            found = own.clone(memory_format=torch.contiguous_format)
            dist.all_reduce(found, group=self._group)
            return found
        return functools.reduce(_JOIN[how], self.all_gather_list(own))


def _split(tensor: torch.Tensor, dim: int, sizes: tuple[int, ...]) -> torch.Tensor:
    """One dim as several; unlike ``unflatten``, which is not typed."""
    return tensor.reshape(*tensor.shape[:dim], *sizes, *tensor.shape[dim + 1 :])


def join(parts: list[torch.Tensor], dim: int, blocks: int) -> torch.Tensor:
    """Parts of each of some blocks of a dim as the dim."""
    if blocks == 1:
        return torch.cat(parts, dim)
    rows = [_split(part, dim, (blocks, part.size(dim) // blocks)) for part in parts]
    return torch.cat(rows, dim + 1).flatten(dim, dim + 1)


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

_groups: dict[tuple[int, ...], ProcessGroup] = {}


def process_group(ranks: tuple[int, ...]) -> ProcessGroup:
    """The group of these ranks, made once for each initialisation of torch.distributed."""
    connect()
    found = _groups.get(ranks)
    if found is None or found.world is not dist.group.WORLD:
        found = _groups[ranks] = ProcessGroup(ranks)
    return found
