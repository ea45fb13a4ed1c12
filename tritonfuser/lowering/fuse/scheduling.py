"""Fusion groups -> segments with params, in topological order, each in a launch."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace

from ...heuristics.schedule import Rewrites
from ...ir import Value
from ..access.aliases import buffer_strides
from ..access.read_footprint import ReadFootprint
from ..groups.loaded_values import footprint_of
from ..legality.finishing import kernel_before, why_no_shared_launch, why_not_in_last_programs
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion
from .group_segment import segment_of
from .later_loads import with_later_loads
from .placed_groups import PlacedGroups
from .reasons import with_names

_CALLER = -1
"""Stands for the caller of the fusion among the numbers of groups that load a value."""


def schedule(
    placed: PlacedGroups, rewrites: Rewrites, before: tuple[str, ...] = ()
) -> SegmentedFusion:
    """The groups of a fusion as segments with params, in an order in which they can run.

    Parameters
    ----------
    placed : PlacedGroups
        The groups.
    rewrites : Rewrites
        How the fusion of the groups was made from the simplified one.
    before : tuple of str
        Decisions of an earlier grouping, for reports.
    """
    order = _topological_order(placed)
    names = {number: f"s{place}" for place, number in enumerate(order)}
    footprints = {g.number: footprint_of(g, placed.graph, placed.maker) for g in placed.groups}
    loads = _loading_groups(placed, footprints)
    cuts = {placed.graph.owner[v]: with_names(cut, names) for v, cut in placed.cuts.items()}
    segments = [
        replace(segment_of(placed, n, names[n], footprints[n], loads), cut=cuts.get(n, ""))
        for n in order
    ]
    segments = _with_last_programs(placed, segments, [footprints[n] for n in order])
    segments = _with_register_limits(placed, _with_shared_launches(placed, segments))
    if placed.device.overlaps_launches:
        segments = _with_overlaps(segments)
    segments = with_later_loads(placed.fusion, segments, placed.device)
    layouts = {out: buffer_strides(placed.fusion, out) for s in segments for out in s.outputs}
    results = tuple(placed.buffers[o.value] for o in placed.fusion.outputs)
    why = (*before, *cuts.values())
    return SegmentedFusion(placed.fusion, tuple(segments), results, layouts, why, rewrites)


def _with_last_programs(
    placed: PlacedGroups, segments: Sequence[Segment], footprints: Sequence[ReadFootprint]
) -> list[Segment]:
    """The segments; some are computed by the last programs of an earlier kernel."""
    found = list(segments)
    for place, piece in enumerate(segments):
        before = kernel_before(found, place)
        first = None if before is None else found[before]
        reason = None
        if before is not None:
            reason = why_not_in_last_programs(found, before, place, footprints[place].loads)
        found[place] = placed.with_last_programs(first, piece, reason)
    return found


def _with_shared_launches(placed: PlacedGroups, segments: Sequence[Segment]) -> list[Segment]:
    """The segments; independent ones may share a launch."""
    found = list(segments)
    first: int | None = None
    for place, piece in enumerate(segments):
        if not piece.has_launch:
            continue
        reason = None if first is None else why_no_shared_launch(found, first, place)
        found[place] = placed.with_shared_launch(found, first, place, reason)
        if not found[place].beside:
            first = None if piece.runs_torch else place
    return found


def _with_register_limits(placed: PlacedGroups, segments: Sequence[Segment]) -> list[Segment]:
    """The segments; kernels of one segment may have a limit on registers."""
    shared = {piece.launched_by for piece in segments if piece.launched_by}
    return [
        piece if piece.launched_by or piece.name in shared else placed.with_register_limit(piece)
        for piece in segments
    ]


def _with_overlaps(segments: Sequence[Segment]) -> list[Segment]:
    """The segments; a kernel may start before the previous one ends (dependent launch)."""
    found = list(segments)
    kernel: int | None = None
    for place, piece in enumerate(segments):
        if not piece.has_launch:
            continue
        if not piece.runs_torch and piece.overlap and kernel is not None:
            found[kernel] = replace(found[kernel], followed=True)
            found[place] = replace(found[place], follows=True)
        kernel = None if piece.runs_torch else place
    return found


def _topological_order(placed: PlacedGroups) -> list[int]:
    """Group numbers in topological order; of groups that may run next, the one of lowest rank."""
    groups = placed.groups
    missing = {g.number: set(g.needs) for g in groups}
    users: dict[int, list[int]] = {}
    for group in groups:
        for number in group.needs:
            users.setdefault(number, []).append(group.number)
    ready = [(placed.rank(n), n) for n, needs in missing.items() if not needs]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        _, number = heapq.heappop(ready)
        done.append(number)
        for user in users.get(number, ()):
            missing[user].discard(number)
            if not missing[user]:
                heapq.heappush(ready, (placed.rank(user), user))
    return done


def _loading_groups(
    placed: PlacedGroups, footprints: dict[int, ReadFootprint]
) -> dict[Value, set[int]]:
    """The groups that load each value, and ``_CALLER`` for a result of the fusion."""
    found: dict[Value, set[int]] = {b.root: {_CALLER} for b in placed.buffers.values()}
    for number, footprint in footprints.items():
        for read in footprint.loads:
            found.setdefault(read.value, set()).add(number)
    return found
