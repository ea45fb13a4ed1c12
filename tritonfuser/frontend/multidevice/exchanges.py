"""Communication from one placement to another: the collective steps, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Protocol

import torch

from ...ir import Value
from ..record.cuts import Cut, blocks, common, kinds, normal
from ..record.device_mesh import DeviceMesh
from ..vocabulary.enums import ParallelType
from .communicator import ADDED, Communicator, process_group
from .placement import Placement


class Collectives(Protocol):
    """What exchanges need of a ``ProcessGroup``."""

    def all_reduce(self, own: torch.Tensor, how: str) -> torch.Tensor: ...

    def reduce_scatter(self, own: torch.Tensor, dim: int, blocks: int) -> torch.Tensor: ...

    def all_gather(self, own: torch.Tensor, dim: int, blocks: int) -> torch.Tensor: ...


@dataclass(frozen=True)
class AllReduce:
    """Reduce partial results; all devices along a mesh type get the result."""

    kind: ParallelType
    how: str

    def __call__(self, group: Collectives, own: torch.Tensor) -> torch.Tensor:
        return group.all_reduce(own, self.how)


@dataclass(frozen=True)
class ReduceScatter:
    """Add up partial results; each device along a mesh type gets its part of a dim.

    The dim consists of ``blocks`` equal blocks, and a device gets its part of each.
    """

    kind: ParallelType
    dim: int
    blocks: int

    def __call__(self, group: Collectives, own: torch.Tensor) -> torch.Tensor:
        return group.reduce_scatter(own, self.dim, self.blocks)


@dataclass(frozen=True)
class AllGather:
    """Concatenate the parts of a dim; all devices along a mesh type get the whole of it."""

    kind: ParallelType
    dim: int
    blocks: int

    def __call__(self, group: Collectives, own: torch.Tensor) -> torch.Tensor:
        return group.all_gather(own, self.dim, self.blocks)


Collective = AllReduce | ReduceScatter | AllGather


def shared(have: Placement, want: Placement) -> Placement:
    """The placement to exchange ``have`` for, so that ``want`` is a slice of it.

    Dims keep the factors in which both are cut alike. Sums along mesh types that ``want`` is cut
    along next are scattered; all else is whole.
    """
    summed = {kind for kind, how in have.partial if how == ADDED}
    found: list[Cut] = []
    for own, wanted in zip(have.shards, want.shards, strict=True):
        cut = common(own, wanted)
        if cut == own:
            cut = _scattered(cut, wanted, summed)
        found.append(cut)
    return Placement(tuple(found))


def _scattered(cut: Cut, wanted: Cut, summed: set[ParallelType]) -> Cut:
    """The longest start of ``wanted`` with only mesh types of sums behind ``cut``."""
    have = kinds(cut)
    factors = [*wanted]
    while any(kind not in summed for kind in kinds(tuple(factors))[len(have) :]):
        factors.pop()
    return normal(factors)


def exchanged_bytes(value: Value, have: Placement, want: Placement, mesh: DeviceMesh) -> int:
    """About how many bytes a device exchanges until it can slice ``want`` from what it has."""
    made = shared(have, want)
    if made == have:
        return 0
    before, after = (prod(p.local(mesh, value.tensor.sizes)) for p in (have, made))
    # All partial results on every device are a scatter of them and a gather.
    twice = bool(have.partial) and after == before
    return max(before, after) * (1 + twice) * value.dtype.info.bytes


def collectives(have: Placement, want: Placement) -> Iterator[Collective]:
    """The collectives from ``have`` to ``want``, a placement that ``shared`` gave, in order."""
    added: set[ParallelType] = set()
    for dim, (own, wanted) in enumerate(zip(have.shards, want.shards, strict=True)):
        for place, factor in enumerate(wanted):
            if isinstance(factor, ParallelType) and factor not in kinds(own):
                added.add(factor)
                yield ReduceScatter(factor, dim, blocks(wanted[:place]))
    for kind, how in have.partial:
        if kind not in added:
            yield AllReduce(kind, how)
    for dim, (own, wanted) in enumerate(zip(have.shards, want.shards, strict=True)):
        for place in reversed(range(len(own))):
            factor = own[place]
            if isinstance(factor, ParallelType) and factor not in kinds(wanted):
                yield AllGather(factor, dim, blocks(own[:place]))


def exchange(own: torch.Tensor, have: Placement, want: Placement, mesh: DeviceMesh) -> torch.Tensor:
    """This device's part in another placement."""
    device = Communicator.instance().rank()
    for collective in collectives(have, want):
        if mesh.size_of(collective.kind) > 1:
            own = collective(process_group(mesh.team(device, collective.kind)), own)
    return own
