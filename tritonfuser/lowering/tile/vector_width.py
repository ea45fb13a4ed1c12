"""How many neighbouring elements a thread of a kernel has, and which loads have single ones."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from ...device import VECTOR_BYTES
from ...heuristics.params import (
    InnerOuterPersistentParams,
    InnerPersistentParams,
    OuterPersistentParams,
    PointwiseParams,
)
from ...heuristics.problem import Problem, Stream
from ...ir import Value
from ...symbolic.queries import is_known_equal, is_known_multiple
from ...symbolic.sizes import hint
from ..access.read_footprint import Read
from ..access.traffic import offset_of
from ..segments import Segment
from .nest import Nest
from .tile import Tile

FEWEST_DRAWN = 4
"""Neighbours that share a Philox counter: a thread has all of them, or none is drawn twice."""

HANDED_ON = 1
"""Instructions of an element that goes to another thread through shared memory."""

DRAWN_AGAIN = 10
"""Instructions of a random number: five wide multiplies and as much logic."""

STEP, JUMP = 2, 8
"""Instructions of one more load: where the tensor is contiguous, and where positions have to be
divided first."""


def with_neighbours(nest: Nest, segment: Segment, outputs: Mapping[Value, tuple[int, ...]]) -> Nest:
    """The same, where a thread has no more neighbours than its widest store takes.

    Triton gives each store as many neighbours as 16 bytes hold, and loads as many as any store or
    load. Results of several widths would each be computed anew for the lanes of their store, or be
    handed from thread to thread through shared memory: a dropout that stores its mask of one byte
    beside results of two drew each random number twice.

    Parameters
    ----------
    outputs : mapping
        Strides of the buffers that are stored to, in elements.
    """
    problem = segment.problem
    if problem is None or problem.on_cpu or nest.alignment is not None:
        return nest
    if any(tile.neighbours for tile in nest.tiles):
        return nest  # params say how many
    tile = _row_tile(nest, segment)
    if tile is None:
        return nest
    most = _neighbours(problem, _stored_bytes(nest, segment, outputs, tile))
    peeled = {t.name for t in nest.tiles if t.start > 0}
    return _limited(nest, {tile.name, *peeled}, most)


def _row_tile(nest: Nest, segment: Segment) -> Tile | None:
    """The tile along which the memory of the kernel lies. None for kernels of other kinds."""
    if isinstance(segment.params, PointwiseParams | OuterPersistentParams):
        wanted = "x"
    elif isinstance(segment.params, InnerPersistentParams | InnerOuterPersistentParams):
        wanted = "r"
    else:
        return None
    return next((tile for tile in nest.tiles if tile.name == wanted and tile.block), None)


def _stored_bytes(
    nest: Nest, segment: Segment, outputs: Mapping[Value, tuple[int, ...]], tile: Tile
) -> list[int]:
    """Bytes of an element of each result that is contiguous along a tile."""
    assert segment.problem is not None
    positions = hint(segment.problem.parallel) * hint(segment.problem.reduced)
    found: list[int] = []
    for store in segment.stores:
        # Of small results that ride along, few lanes store elements.
        if store.scatter is not None or 2 * hint(store.value.tensor.numel) < positions:
            continue
        offset = offset_of(nest.maps.blocks.index(store.index), outputs[store.value])
        mine = [(d.div, step) for d, step in offset.terms if d.base == tile.axis]
        if any(is_known_equal(div, 1) and is_known_equal(step, 1) for div, step in mine):
            found.append(store.value.dtype.info.bytes)
    return found


def _neighbours(problem: Problem, stored: list[int]) -> int:
    """Elements of a vector of the widest store; 0 where no other tensor has more, or it costs more
    instructions for further loads than it saves."""
    loads = [s for s in problem.streams if not s.is_store and s.along_x]
    loads = [s for s in loads if s.along_r or not problem.reduction_depth]
    if not stored:
        return 0
    widest, narrowest = max(stored), min((*stored, *(s.item_bytes for s in loads)))
    count = VECTOR_BYTES // widest
    if widest == narrowest or count < (FEWEST_DRAWN if problem.draws_random else 2):
        return 0
    further = 0.0
    for load in loads:
        each = max(load.item_bytes, narrowest) / VECTOR_BYTES
        further += max(1 / count - each, 0) * (JUMP if _jumps(problem, load) else STEP)
    saved = HANDED_ON + (DRAWN_AGAIN if problem.draws_random else 0)
    return count if further < saved else 0


def _jumps(problem: Problem, load: Stream) -> bool:
    """Whether a load is of elements that are not consecutive all along a row or flat kernel."""
    if problem.reduction_depth:
        return load.r_stride is None or not is_known_equal(load.r_stride, 1)
    return hint(load.contiguous_run) != 0


def _limited(nest: Nest, names: Container[str], most: int) -> Nest:
    """The same with at most so many neighbours along some axes, where that is any number."""

    def limited(tile: Tile) -> Tile:
        fits = tile.block is not None and not tile.scattered and tile.width > most > 1
        return replace(tile, neighbours=most) if fits and tile.name in names else tile

    grid = tuple((limited(tile), count) for tile, count in nest.grid)
    return replace(nest, tiles=tuple(map(limited, nest.tiles)), grid=grid)


def unvectorized(
    reads: Iterable[Read], strides: Mapping[Value, tuple[int, ...]], tiles: tuple[Tile, ...]
) -> frozenset[Value]:
    """The tensors whose loads must not be vectorized, since larger loads beside them cannot be.

    Triton gives a thread as many neighbours as the widest load of a kernel takes. In a matrix of
    odd width rows begin anywhere, and those neighbours are loaded one by one, 16 bytes apart
    between threads: eight times the accesses. So small tensors, as a row's weights, are not
    declared aligned there.

    Parameters
    ----------
    reads : iterable of Read
        All loads of the kernel.
    strides : mapping
        Strides of the buffers, in elements.
    """
    found = [read for read in reads if read.value.is_tensor]
    row = max((tile.place for tile in tiles if tile.block is not None), default=0)
    whole = [read for read in found if len(places := _places(read, tiles)) > 1 and row in places]
    if all(_is_wide(read, strides[read.value]) for read in whole):
        return frozenset()
    return frozenset(read.value for read in found) - {read.value for read in whole}


def _places(read: Read, tiles: tuple[Tile, ...]) -> set[int]:
    """The dims of a tile that a load runs over, and -1 if it differs from program to program."""
    names = {axis.name for item in read.index for axis in item.axes()}
    return {-1 if t.block is None else t.place for t in tiles if t.name in names}


def _is_wide(read: Read, strides: tuple[int, ...]) -> bool:
    """Whether neighbours begin at multiples of a vector, whatever row they are in."""
    offset = offset_of(read.index, strides)
    size = read.value.dtype.info.bytes
    steps = [step for _, step in offset.terms if not is_known_equal(step, 1)]
    return all(is_known_multiple(step * size, VECTOR_BYTES) for step in (*steps, offset.const))
