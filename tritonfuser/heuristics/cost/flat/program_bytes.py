"""``ProgramBytes``: the bytes of one program, whichever thread loads or stores them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import mul
from typing import NamedTuple

from ...problem import Problem
from ...streams import Stream
from ..footprint import Side, Tile, tile_over
from ..l1_reuse import L1Cache
from ..refetched import BroadcastLoad, PartialSector, broadcast_tiles
from ..traffic import FETCHED_BYTES, StepBytes
from .tensor import FlatTensor

RUN_BYTES = 24
"""Cost of a contiguous run of a tile, in bytes of memory, where the tile behind it comes so late
that caches have evicted what it shares: memory opens a page for each piece. H200, 34 random
transposes with 14 schedules each: the choice over the fastest is 1.014 (geometric mean), 1.018
without it; pieces of 64 bytes take 1.2 times as long as pieces of 128."""

RUN_SHARE = 1 / 32
"""Share of a tile's bytes up to which its runs cost nothing."""


class ProgramBytes(NamedTuple):
    """The bytes of one program, and what depends on the order of programs.

    Attributes
    ----------
    moved : StepBytes
        Its bytes, apart from ``partial_sector_bytes``, which depend on its threads.
    loaded_elements : float
        Elements of all tensors that it loads.
    partial_sectors : list of PartialSector
        Sectors that the program uses in part, and its short runs, of each tensor that has some.
    broadcasts : list of (Stream, BroadcastLoad)
        The tensors that other programs load too.
    hit_rates : list of float
        L1 hit rate of each tensor.
    hit_bytes : float
        Bytes that hit the L1 cache, of all tensors.
    """

    moved: StepBytes
    loaded_elements: float
    partial_sectors: list[PartialSector]
    broadcasts: list[tuple[Stream, BroadcastLoad]]
    hit_rates: list[float]
    hit_bytes: float


class _Footprint(NamedTuple):
    """What a tile touches of one tensor.

    Attributes
    ----------
    tensor : FlatTensor
        The tensor.
    tile : Tile
        Positions of the program along each axis.
    distinct_bytes : float
        Bytes of its elements, each once.
    """

    tensor: FlatTensor
    tile: Tile
    distinct_bytes: float

    @property
    def moved_bytes(self) -> float:
        """Bytes of all tensors with these facts."""
        return self.distinct_bytes * self.tensor.times

    @property
    def fetched_bytes(self) -> float:
        """Those of ``moved_bytes`` that no earlier load of the kernel has fetched."""
        return self.moved_bytes * self.tensor.fresh

    @property
    def sector_bytes(self) -> float:
        """Bytes of the sectors that are touched, without those that an earlier load fetched."""
        _, sector_bytes = self.tensor.stride_terms.touched(self.tile)
        return sector_bytes * self.tensor.times * self.tensor.fresh

    @property
    def shared_bytes(self) -> float:
        """Bytes of a tensor of which several positions load one element; 0 for others."""
        return self.distinct_bytes if self.tensor.shared else 0.0

    def partial_sectors(self) -> list[PartialSector]:
        """The sectors that the program uses in part, and its runs where they are short: one entry,
        or none."""
        tensor, terms = self.tensor, self.tensor.stride_terms
        _, pair_bytes = terms.touched(self.tile, FETCHED_BYTES)
        unused = pair_bytes * tensor.times - self.moved_bytes * (1 + tensor.overfetch)
        # A sector that is stored in part is read too.
        unused = max(unused, 0.0) * (2 if tensor.stream.is_store else 1)
        if not tensor.gathered:
            opened = RUN_BYTES * terms.footprint(self.tile, FETCHED_BYTES).runs * tensor.times
            unused += opened if opened > RUN_SHARE * self.moved_bytes else 0.0
        if not unused:
            return []
        axis, div = terms.first_partial_term(self.tile) or (-1, 1)
        return [PartialSector(unused, axis, div, tensor.distance_bound)]


def program_bytes(
    problem: Problem, tensors: Sequence[FlatTensor], sides: Sequence[Side]
) -> ProgramBytes:
    """The bytes of a program whose tile has these sides."""
    tile, positions = tile_over(problem.axes, sides), prod(side.block for side in sides)
    touched = [_footprint(tensor, tile) for tensor in tensors]
    loads = [each for each in touched if not each.tensor.stream.is_store]
    moved = StepBytes(
        loaded_bytes=sum(each.moved_bytes for each in loads),
        fetched_bytes=sum(each.fetched_bytes for each in loads),
        stored_bytes=sum(each.moved_bytes for each in touched if each.tensor.stream.is_store),
        sector_bytes=sum(each.sector_bytes for each in touched),
    )
    cache = L1Cache(problem.device, moved.loaded_bytes, problem.parallel / positions)
    hit_rates = [cache.hit_rate(each.tensor.stream, each.shared_bytes) for each in touched]
    return ProgramBytes(
        moved=moved,
        loaded_elements=sum(each.tensor.times * positions for each in loads),
        partial_sectors=[found for each in touched for found in each.partial_sectors()],
        broadcasts=_broadcasts(problem, loads),
        hit_rates=hit_rates,
        hit_bytes=sum(map(mul, hit_rates, (each.shared_bytes for each in touched))),
    )


def _footprint(tensor: FlatTensor, tile: Tile) -> _Footprint:
    elements, _ = tensor.stride_terms.touched(tile)
    return _Footprint(tensor, tile, elements * tensor.stream.item_bytes)


def _broadcasts(
    problem: Problem, loads: Sequence[_Footprint]
) -> list[tuple[Stream, BroadcastLoad]]:
    """The tensors that programs along other axes load too."""
    tiles = [broadcast_tiles(problem.axes, each.tensor.axes, each.tile) for each in loads]
    return [
        (each.tensor.stream, BroadcastLoad(each.fetched_bytes, along))
        for each, along in zip(loads, tiles, strict=True)
        if along
    ]
