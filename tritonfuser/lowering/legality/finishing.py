"""Whether one kernel may compute two segments: in its last programs, or side by side in a launch.

Functions return None where it may, else the reason why not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...heuristics.cost.rows.staged import FEWEST_WARPS
from ...ops.builder import as_call
from ...ops.forms import Random
from ..access.reads import Read
from ..segments.segment import Segment
from ..tile.arrivals import why_no_tiles


def kernel_before(segments: Sequence[Segment], place: int) -> int | None:
    """The place of the last segment whose outputs the one at ``place`` reads; None without such."""
    wanted = set(segments[place].inputs)
    found = (n for n in reversed(range(place)) if not wanted.isdisjoint(segments[n].outputs))
    return next(found, None)


def why_not_in_last_programs(
    segments: Sequence[Segment], first: int, last: int, reads: Iterable[Read]
) -> str | None:
    """None, or why the last programs of one segment's kernel cannot compute another segment.

    Parameters
    ----------
    segments : sequence of Segment
        All segments, in order.
    first, last : int
        The places of the segment with the kernel, and of the other one.
    reads : iterable of Read
        The loads of the other one.
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
    reason = _why_too_few_warps(one, other)
    reason = reason or _why_read_too_early(segments, first, other, may_read_first=True)
    return reason or _why_not_as_stored(one, reads)


def _why_too_few_warps(one: Segment, other: Segment) -> str | None:
    """None, or why a segment should not have the warps of another one's kernel."""
    tiling, warps = other.params.row_tiling, one.kernel_params.num_warps
    if tiling is not None and tiling.staged and warps < FEWEST_WARPS:
        return f"its rows go through shared memory, programs of {one.name} have {warps} warp"
    return None


def _why_read_too_early(
    segments: Sequence[Segment], first: int, other: Segment, may_read_first: bool = False
) -> str | None:
    """None, or which value a segment reads that does not exist when the first kernel starts.

    Parameters
    ----------
    may_read_first : bool
        Whether it may read the results of the first kernel itself.
    """
    places = {value: n for n, piece in enumerate(segments) for value in piece.outputs}
    names = {piece.name: n for n, piece in enumerate(segments)}
    for value in other.inputs:
        place = places.get(value)
        if place is None or (place == first and may_read_first):
            continue
        maker = segments[place]
        runs = names[maker.launched_by] if maker.launched_by else place
        if runs >= first:
            return f"it reads {value.name}, which is made in {maker.name}"
    return None


def _why_not_as_stored(one: Segment, reads: Iterable[Read]) -> str | None:
    """None, or which result of a segment is read at other indices than it is stored at."""
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
    """None, or why one more segment cannot share a launch.

    Parameters
    ----------
    segments : sequence of Segment
        All segments, in order.
    first, other : int
        The places of the segment that has the launch, and of the one to join it.
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
    reason = _why_too_few_warps(one, piece) or _why_read_too_early(segments, first, piece)
    return reason or _why_too_many(segments, one, piece)


MOST_SEGMENTS = 16
"""Segments of a launch. Each is one branch deeper in its kernel: Triton compiles by recursion."""

MOST_ARGUMENTS = 250
"""Tensors and numbers of a launch of several segments: half of the 4 KiB that CUDA passes (CUDA C++
programming guide, limits of kernel parameters)."""


def _why_too_many(segments: Sequence[Segment], one: Segment, piece: Segment) -> str | None:
    """None, or why a launch would have too many segments or arguments."""
    sharing = [s for s in segments if one.name in (s.name, s.beside)]
    if len(sharing) >= MOST_SEGMENTS:
        return f"{len(sharing)} segments share the launch of {one.name} already"
    pieces = (*sharing, piece)
    values = {value for s in pieces for value in (*s.inputs, *s.outputs)}
    if len(values) > MOST_ARGUMENTS:
        return f"the kernel would have {len(values)} arguments, more than {MOST_ARGUMENTS}"
    return None


def in_launch_of(first: Segment, last: Segment) -> Segment:
    """The segment ``last`` with the warps and the register limit of the launch of ``first``."""
    params = replace(
        last.kernel_params,
        num_warps=first.kernel_params.num_warps,
        max_registers=first.kernel_params.max_registers,
    )
    return replace(last, params=params)
