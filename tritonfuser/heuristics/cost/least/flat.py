"""Lower bounds of the loads and stores of flat kernels, of many at once.

Loads, lines and the bytes that cross the L2 cache are counted as for the times. Left out is what
memory moves again. The L1 cache is taken to have room for the windows of gathers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..flat.traffic import FlatStreams
from ..memory.footprint import Side
from ..memory.gathered import hit_lines as gathered_hit_lines
from ..memory.traffic import StepBytes
from ..numbers import ARRAYS
from ..tiles import Launches
from .loads import LoadBounds

Array = Any
"""Of numpy: an entry for each kernel."""


class _OfTiles(NamedTuple):
    """What depends on tiles alone, as arrays of kernels.

    Attributes
    ----------
    moved : StepBytes
        The bytes of a program.
    hit_rates : list of array
        L1 hit rate of each tensor.
    hit_bytes : array
        Upper bound of the bytes that hit the L1 cache.
    distinct_bytes : list of array
        Bytes of distinct sectors that each gather requests.
    """

    moved: StepBytes
    hit_rates: list[Array]
    hit_bytes: Array
    distinct_bytes: list[Array]


def flat_bounds(streams: FlatStreams, many: Launches, threads: Array) -> LoadBounds:
    """The bounds for many flat kernels.

    Parameters
    ----------
    threads : array
        Of a program of each.
    """
    each = np.maximum(many.tile.x // threads, 1)
    widths = streams.widths(many.vector, 2 ** np.floor(np.log2(each)), ARRAYS)
    tiles, loads = _of_tiles(streams, many), streams.loads_of_many(many.blocks, widths, threads)
    hits = loads.hit_lines
    for (_, lines), distinct in zip(loads.gathered, tiles.distinct_bytes, strict=True):
        hits = hits + gathered_hit_lines(lines, distinct, ARRAYS)
    for tensor_rate, shared in zip(tiles.hit_rates, loads.shared, strict=True):
        hits = hits + tensor_rate * shared
    return LoadBounds(
        loads.accesses,
        loads.lines,
        streams.loaded,
        loads.addresses,
        hit_lines=hits,
        hit_bytes=tiles.hit_bytes,
        written_bytes=loads.written_bytes,
        moved=tiles.moved,
    )


def _of_tiles(streams: FlatStreams, many: Launches) -> _OfTiles:
    """What depends on tiles, which are few beside the kernels."""
    sides, index = streams.places(len(many.blocks)), dict[tuple[float, ...], int]()
    numbers = [
        index.setdefault(tile, len(index))
        for tile in zip(*(block.tolist() for block in many.blocks), strict=True)
    ]
    found = [
        streams.tile_bytes(tuple(Side(*side) for side in zip(sides, map(int, tile), strict=True)))
        for tile in index
    ]

    def along(of_tiles: Iterable[float]) -> Array:
        return np.array([*of_tiles])[numbers]

    moved = (each.moved for each in found)
    kept = StepBytes(*map(along, zip(*moved, strict=True)))
    gathered = [*zip(*(each.gathered for each in found), strict=True)]
    hit_bytes = along(each.hit_bytes for each in found)
    for of_tiles in gathered:
        hit_bytes = hit_bytes + along(requested - distinct for requested, distinct in of_tiles)
    return _OfTiles(
        kept,
        [along(rates) for rates in zip(*(each.hit_rates for each in found), strict=True)],
        hit_bytes,
        [along(distinct for _, distinct in of_tiles) for of_tiles in gathered],
    )
