"""``ProgramBytes``: the bytes of one program, whichever thread loads or stores them.

``SharedBytes`` are those that depend on the order of programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from operator import mul
from typing import NamedTuple

from ...problem import Problem
from ...streams import Stream
from ..memory.footprint import Side, Tile, tile_over
from ..memory.l1_reuse import L1Cache
from ..memory.refetched import BroadcastLoad, PartialSector, broadcast_tiles
from ..memory.traffic import FETCHED_BYTES, StepBytes
from .tensor import FlatTensor

RUN_BYTES = 24
"""Cost of a contiguous run of a tile, in bytes of memory, where the tile behind it comes so late
that caches have evicted what it shares: memory opens a page for each piece. H200, 34 random
transposes with 14 schedules each: the choice over the fastest is 1.014 (geometric mean), 1.018
without it; pieces of 64 bytes take 1.2 times as long as pieces of 128."""

RUN_SHARE = 1 / 32
"""Share of a tile's bytes up to which its runs cost nothing."""


class ProgramBytes(NamedTuple):
    """The bytes of one program.

    Attributes
    ----------
    tile : tuple of float
        Its positions along each axis.
    moved : StepBytes
        Its bytes, apart from ``partial_sector_bytes``, which depend on its threads.
    loaded_elements : float
        Elements of all tensors that it loads.
    hit_rates : list of float
        L1 hit rate of each tensor.
    hit_bytes : float
        Bytes that hit the L1 cache, of all tensors that are not gathered.
    gathered : list of (float, float)
        (bytes, distinct ones) of the sectors that are requested, of each gather.
    """

    tile: Tile
    moved: StepBytes
    loaded_elements: float
    hit_rates: list[float]
    hit_bytes: float
    gathered: list[tuple[float, float]]


def program_bytes(
    problem: Problem, tensors: Sequence[FlatTensor], sides: Sequence[Side]
) -> ProgramBytes:
    """The bytes of a program whose tile has these sides."""
    tile, positions = tile_over(problem.axes, sides), prod(side.block for side in sides)
    loaded = fetched = stored = sectors = elements = 0.0
    shared = []
    for tensor in tensors:
        own, sector_bytes = tensor.stride_terms.touched(tile)
        distinct = own * tensor.stride_terms.item_bytes
        moved = distinct * tensor.times
        sectors += sector_bytes * tensor.times * tensor.fresh
        # Several positions load one element: other programs may load it too.
        shared.append(distinct if tensor.shared else 0.0)
        if tensor.stream.is_store:
            stored += moved
        else:
            loaded += moved
            fetched += moved * tensor.fresh
            elements += tensor.times * positions
    cache = L1Cache(problem.device, loaded, problem.parallel / positions)
    hit_rates = [
        cache.hit_rate(tensor.stream, part) if part else 0.0
        for tensor, part in zip(tensors, shared, strict=True)
    ]
    return ProgramBytes(
        tile=tile,
        moved=StepBytes(loaded, fetched, 0.0, stored, sectors),
        loaded_elements=elements,
        hit_rates=hit_rates,
        hit_bytes=sum(map(mul, hit_rates, shared)),
        gathered=[tensor.gathered.requests(tile) for tensor in tensors if tensor.gathered],
    )


class SharedBytes(NamedTuple):
    """What a program loads or stores that others load or store too: caches may have it.

    Attributes
    ----------
    partial_sectors : list of PartialSector
        Sectors that the program uses in part, and its short runs, of each tensor that has some.
    broadcasts : list of (Stream, BroadcastLoad)
        The tensors that other programs load too.
    """

    partial_sectors: list[PartialSector]
    broadcasts: list[tuple[Stream, BroadcastLoad]]


def shared_bytes(problem: Problem, tensors: Sequence[FlatTensor], tile: Tile) -> SharedBytes:
    """The same of a program with so many positions along each axis."""
    partial = (_partial_sectors(tensor, tile) for tensor in tensors)
    return SharedBytes([*filter(None, partial)], [*_broadcasts(problem, tensors, tile)])


def _partial_sectors(tensor: FlatTensor, tile: Tile) -> PartialSector | None:
    """The sectors that the program uses in part, and its runs where they are short."""
    terms = tensor.stride_terms
    elements, pair_bytes, runs = terms.touched_runs(tile, FETCHED_BYTES)
    moved = elements * terms.item_bytes * tensor.times
    unused = pair_bytes * tensor.times - moved * (1 + tensor.overfetch)
    # A sector that is stored in part is read too.
    unused = max(unused, 0.0) * (2 if tensor.stream.is_store else 1)
    if not tensor.gathered:
        opened = RUN_BYTES * runs * tensor.times
        unused += opened if opened > RUN_SHARE * moved else 0.0
    if not unused:
        return None
    axis, div = terms.first_partial_term(tile) or (-1, 1)
    return PartialSector(unused, axis, div, tensor.distance_bound)


def _broadcasts(
    problem: Problem, tensors: Sequence[FlatTensor], tile: Tile
) -> Iterator[tuple[Stream, BroadcastLoad]]:
    """The tensors that programs along other axes load too."""
    for tensor in tensors:
        along = broadcast_tiles(problem.axes, tensor.axes, tile)
        if along and not tensor.stream.is_store:
            elements, _ = tensor.stride_terms.touched(tile)
            moved = elements * tensor.stride_terms.item_bytes * tensor.times
            yield tensor.stream, BroadcastLoad(moved * tensor.fresh, along)
