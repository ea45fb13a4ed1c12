"""Runs: along which axes a tensor is contiguous, and what a warp or a vector takes of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, gcd, prod

from ....device import CACHE_LINE_BYTES, NVIDIA_WARP_SIZE, SECTOR_BYTES
from ...streams import Stream, StrideTerm
from .footprint import TensorStrides, tile_over


def contiguous_axes(stream: Stream) -> list[int]:
    """The axes that a tensor is contiguous along, fastest first: the stride of each is the span of
    the axes before it. The fastest one has stride 1, or at least a stride within a sector."""
    found: list[int] = []
    span = 0
    for term in sorted(stream.stride_terms, key=_step):
        step = abs(term.step)
        fits = step == span if found else step * stream.item_bytes < SECTOR_BYTES
        if not fits or term.div != 1 or term.axis in found:
            break
        found.append(term.axis)
        span = step * term.extent
    return found


def contiguous_run_along(stream: Stream, extents: Sequence[int], places: Sequence[int]) -> int:
    """Innermost positions of a side that are contiguous in memory: see ``contiguous_run``."""
    return contiguous_run(stream.stride_terms, extents, places)


def contiguous_run(
    terms: Sequence[StrideTerm], extents: Sequence[int], places: Sequence[int]
) -> int:
    """Innermost positions of a side that are contiguous in memory. 0 where all of them are.

    Parameters
    ----------
    extents : sequence of int
        Of all axes.
    places : sequence of int
        The axes of the side, outermost first.
    """
    run = 1
    for place in reversed(places):
        step = None
        for term in terms:
            if term.axis == place and term.div == 1:
                step = term.step
        if step != run:
            return run
        run *= extents[place]
    return 0


def warp_lines(
    strides: TensorStrides, extents: Sequence[int], sides: Sequence[Sequence[int]], place: int
) -> tuple[float, float, float]:
    """What tells which side of a tile the lanes of a warp should run along: the least of these.

    They are the cache lines that a warp then touches, as if its runs began at one; the distinct
    elements, negative; and the bytes of their sectors. A load takes a cycle for each line, however
    much of it the lanes share. So of two sides with equally many lines it is the one along which
    elements differ, as other tensors are likely to have it: lanes that all read one element gain
    nothing, and what they read must then be moved to the lanes of the others.

    Parameters
    ----------
    strides : TensorStrides
        Of the tensor.
    extents : sequence of int
        Of all axes.
    sides : sequence of sequence of int
        The axes of each side, outermost first.
    place : int
        Of the side among them.
    """
    along = max(min(NVIDIA_WARP_SIZE, prod(extents[axis] for axis in sides[place])), 1)
    counts = [along if n == place else NVIDIA_WARP_SIZE / along for n in range(len(sides))]
    tile = tile_over(extents, zip(sides, counts, strict=True))
    elements, runs, span = strides.footprint(tile, CACHE_LINE_BYTES)
    _, sectors = strides.touched(tile)
    lines = max(runs, 1.0) * ceil(span * strides.item_bytes / CACHE_LINE_BYTES)
    return lines, -elements, sectors


def vector_elements(stream: Stream, places: Sequence[int], run: int, most: int) -> int:
    """Elements of a vectorized load along a side: a power of two.

    It divides the offset of every vector. So rows of 8193 elements, which begin at odd offsets, are
    loaded element by element.

    Parameters
    ----------
    places : sequence of int
        The axes of the side.
    run : int
        As ``contiguous_run_along`` has it.
    """
    if run == 1:
        return 1
    found = gcd(most, run, stream.start)
    for term in stream.stride_terms:
        on_side = term.axis in places if run == 0 else term.step < run
        inside = term.div == 1 and term.step > 0 and on_side
        found = found if inside else gcd(found, abs(term.step))
    return max(found, 1)


def _step(term: StrideTerm) -> int:
    return abs(term.step)
