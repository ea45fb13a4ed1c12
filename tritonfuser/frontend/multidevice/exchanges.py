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
from .communicator import ADDED, Communicator, line
from .placement import Placement


class Members(Protocol):
    """Devices in an order that exchange parts: a ``Line``."""

    def combined(self, own: torch.Tensor, how: str) -> torch.Tensor: ...

    def scattered(self, own: torch.Tensor, dim: int, blocks: int) -> torch.Tensor: ...

    def joined(self, own: torch.Tensor, dim: int, blocks: int) -> torch.Tensor: ...


@dataclass(frozen=True)
class Combine:
    """Partial results made one, on all devices along a mesh type."""

    kind: ParallelType
    how: str

    def __call__(self, members: Members, own: torch.Tensor) -> torch.Tensor:
        return members.combined(own, self.how)


@dataclass(frozen=True)
class Scatter:
    """Partial results added up, each device along a mesh type left with its part of a dim.

    With ``blocks`` the dim is so many blocks, of each of which a device has its part.
    """

    kind: ParallelType
    dim: int
    blocks: int

    def __call__(self, members: Members, own: torch.Tensor) -> torch.Tensor:
        return members.scattered(own, self.dim, self.blocks)


@dataclass(frozen=True)
class Gather:
    """Parts of a dim brought to all devices along a mesh type."""

    kind: ParallelType
    dim: int
    blocks: int

    def __call__(self, members: Members, own: torch.Tensor) -> torch.Tensor:
        return members.joined(own, self.dim, self.blocks)


Hop = Combine | Scatter | Gather


def shared(have: Placement, want: Placement) -> Placement:
    """What to exchange ``have`` for if ``want`` is to be cut of it without communication.

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


def volume(value: Value, have: Placement, want: Placement, mesh: DeviceMesh) -> int:
    """About how many bytes a device exchanges until ``want`` can be cut of what it has."""
    made = shared(have, want)
    if made == have:
        return 0
    before, after = (prod(p.local(mesh, value.tensor.sizes)) for p in (have, made))
    # All partial results on every device are a scatter of them and a gather.
    twice = bool(have.partial) and after == before
    return max(before, after) * (1 + twice) * value.dtype.info.bytes


def hops(have: Placement, want: Placement) -> Iterator[Hop]:
    """What is done to a part in ``have`` to make it one in ``want``, which ``shared`` gave."""
    added: set[ParallelType] = set()
    for dim, (own, wanted) in enumerate(zip(have.shards, want.shards, strict=True)):
        for place, factor in enumerate(wanted):
            if isinstance(factor, ParallelType) and factor not in kinds(own):
                added.add(factor)
                yield Scatter(factor, dim, blocks(wanted[:place]))
    for kind, how in have.partial:
        if kind not in added:
            yield Combine(kind, how)
    for dim, (own, wanted) in enumerate(zip(have.shards, want.shards, strict=True)):
        for place in reversed(range(len(own))):
            factor = own[place]
            if isinstance(factor, ParallelType) and factor not in kinds(wanted):
                yield Gather(factor, dim, blocks(own[:place]))


def exchange(own: torch.Tensor, have: Placement, want: Placement, mesh: DeviceMesh) -> torch.Tensor:
    """This device's part in another placement."""
    device = Communicator.instance().rank()
    for hop in hops(have, want):
        if mesh.size_of(hop.kind) > 1:
            own = hop(line(mesh.fiber(device, hop.kind)), own)
    return own
