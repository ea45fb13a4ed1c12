"""Many params of a problem -> the numbers of their kernels as arrays (``Launches``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ....device import VECTOR_BYTES
from ...params import KernelParams
from ...problem import Problem
from ..counts import Number
from ..numbers import ARRAYS
from ..tiles import FLAT_PARAMS, KernelTile, Launches, tile_of


def launches_of(problem: Problem, params: Sequence[KernelParams]) -> Launches:
    """The kernels of many params of one scheduler."""
    warps = _numbers(params, "num_warps")
    if isinstance(params[0], FLAT_PARAMS):
        sides = ("block_x", "block_y")[: params[0].tile_sides]
        blocks = tuple(_numbers(params, side) for side in sides)
        return flat_launches(problem, blocks, warps, _numbers(params, "vectorization_factor"))
    fields = zip(*(tile_of(problem, each) for each in params), strict=True)
    tile: Iterator[Number] = map(_array_or_one, fields)
    stages, prefetches = _numbers(params, "num_stages"), _numbers(params, "prefetches")
    tilings = filter(None, (each.row_tiling for each in params))
    aligned = any(tiling.align > 1 for tiling in tilings)
    return Launches(KernelTile(*tile), warps, stages, prefetches, aligned)


def flat_launches(
    problem: Problem, blocks: tuple[Number, ...], warps: Number, factor: Number
) -> Launches:
    """Flat kernels.

    Parameters
    ----------
    blocks : tuple of array
        The length of the tiles; of tiles with two sides the lengths of both.
    factor : array
        ``vectorization_factor`` of their params.
    """
    programs: Number = 1.0
    positions: Number = 1.0
    across = max(problem.crossing, 1) if len(blocks) > 1 else 1
    for extent, block in zip((-(-problem.parallel // across), across), blocks, strict=False):
        programs, positions = programs * ARRAYS.ceil(extent / block), positions * block
    vector = ARRAYS.where(factor > 0, factor, VECTOR_BYTES)
    tile = KernelTile(programs, 1, 1, positions, 1)
    return Launches(tile, warps, 1, 0, blocks=blocks if problem.is_flat else (), vector=vector)


def _numbers(params: Sequence[KernelParams], field: str) -> Number:
    """A field of all params; 0 where they do not have it."""
    return np.array([getattr(each, field, 0) for each in params], float)


def _array_or_one(numbers: tuple[Number, ...]) -> Number:
    """An array, or a single number if all are equal."""
    return np.array(numbers, float) if len(set(numbers)) > 1 else numbers[0]
