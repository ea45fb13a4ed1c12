"""Whether the last programs of one kernel may compute another segment. A reason is the answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...ops.builder import as_call
from ...ops.table import Random
from ..access.read_footprint import Read
from ..segments import Segment
from ..tile.arrivals import why_no_tiles


def kernel_before(segments: Sequence[Segment], place: int) -> int | None:
    """The place of the segment that makes the last of what another reads; None for none."""
    wanted = set(segments[place].inputs)
    found = (n for n in reversed(range(place)) if not wanted.isdisjoint(segments[n].outputs))
    return next(found, None)


def why_not_in_last_programs(
    segments: Sequence[Segment], first: int, last: int, reads: Iterable[Read]
) -> str | None:
    """None, or why the kernel of one segment cannot compute another as well.

    Parameters
    ----------
    segments : sequence of Segment
        All, in their order.
    first, last : int
        The places of the two.
    reads : iterable of Read
        What the second one loads.
    """
    one, other = segments[first], segments[last]
    reason = why_no_tiles(one)
    if reason is not None:
        return f"{one.name} has no programs for it: {reason}"
    if one.launched_by or any(piece.beside == one.name for piece in segments):
        return f"{one.name}, whose results it reads, has no kernel of its own"
    reason = why_no_tiles(other)
    if reason is not None:
        return reason
    if other.co_reduced:
        return "it reduces results of its own rows"
    if any(store.scatter is not None for piece in (one, other) for store in piece.stores):
        return "elements are scattered into a buffer"
    if any(isinstance(as_call(node).op.form, Random) for node in other.nodes):
        return "it draws random numbers"
    late = _late(segments, first, other, meets=True)
    if late is not None:
        return late
    return _why_not_at(one, reads)


def _late(
    segments: Sequence[Segment], first: int, other: Segment, meets: bool = False
) -> str | None:
    """Values that a segment reads and that do not exist when the first kernel starts.

    Parameters
    ----------
    meets : bool
        Whether it may read what that kernel makes.
    """
    places = {value: n for n, piece in enumerate(segments) for value in piece.outputs}
    names = {piece.name: n for n, piece in enumerate(segments)}
    for value in other.inputs:
        place = places.get(value)
        if place is None or (place == first and meets):
            continue
        maker = segments[place]
        runs = names[maker.launched_by] if maker.launched_by else place
        if runs >= first:
            return f"it reads {value.name}, which is made in {maker.name}"
    return None


def _why_not_at(one: Segment, reads: Iterable[Read]) -> str | None:
    """The reason where a segment reads results at other indices than they are stored at."""
    stores = {store.value: store for store in one.stores}
    for read in reads:
        store = stores.get(read.value)
        if store is None:
            continue
        whole = store.part is None and store.source is None and not store.guards
        if not whole or read.index != store.index or read.guards:
            return f"it reads {read.value.name} at other places than {one.name} makes it"
    return None


def why_no_shared_launch(segments: Sequence[Segment], first: int, other: int) -> str | None:
    """None, or why the programs of a launch cannot be divided among two segments, and those that
    share it already.

    Parameters
    ----------
    segments : sequence of Segment
        All, in their order.
    first, other : int
        The places of the segment that has a launch, and of the other one.
    """
    one, piece = segments[first], segments[other]
    for segment in (one, piece):
        reason = why_no_tiles(segment)
        if reason is not None:
            return f"{segment.name} cannot share a launch: {reason}"
    if piece.finishes:
        return f"{piece.finishes} finishes it"
    for segment in (one, piece):
        if any(s.finishes == segment.name for s in segments):
            return f"the last programs of {segment.name} finish another segment"
    if any(store.scatter is not None for store in piece.stores):
        return "elements are scattered into a buffer"
    return _late(segments, first, piece) or _why_too_many(segments, one, piece)


MOST_SEGMENTS = 16
"""Segments of a launch. Each is one branch deeper in its kernel: Triton compiles by recursion."""

MOST_ARGUMENTS = 250
"""Tensors and numbers of a launch of several segments: half of the 4 KiB that CUDA passes (CUDA C++
programming guide, limits of kernel parameters)."""


def _why_too_many(segments: Sequence[Segment], one: Segment, piece: Segment) -> str | None:
    """Whether a launch would have more segments, or more arguments, than one can have."""
    sharing = [s for s in segments if one.name in (s.name, s.beside)]
    if len(sharing) >= MOST_SEGMENTS:
        return f"{len(sharing)} segments share the launch of {one.name} already"
    pieces = (*sharing, piece)
    values = {value for s in pieces for value in (*s.inputs, *s.outputs)}
    if len(values) > MOST_ARGUMENTS:
        return f"the kernel would have {len(values)} arguments, more than {MOST_ARGUMENTS}"
    return None


def in_launch_of(first: Segment, last: Segment) -> Segment:
    """A segment as another kernel computes it: with the warps and registers of its launch."""
    params = replace(
        last.kernel_params,
        num_warps=first.kernel_params.num_warps,
        max_registers=first.kernel_params.max_registers,
    )
    return replace(last, params=params)
