"""Whether the segments that were made of a given schedule are what its fields say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....device import DeviceProperties
from ....errors import ParamsError
from ....heuristics.schedule import SegmentSchedule
from ...legality.device_limits import why_not_launched
from ...legality.params import why_not_params
from ...schedules import segment_schedule
from ...segments.segment import Segment
from .names import GivenNames


def refuse_unfit(
    made: Iterable[Segment],
    given: Sequence[SegmentSchedule],
    names: GivenNames,
    device: DeviceProperties,
) -> None:
    """Refuse fields of a schedule that segments cannot have or that would have no effect.

    Parameters
    ----------
    made : iterable of Segment
        The segments, in the order in which they run.
    given : sequence of SegmentSchedule
        The schedule's.
    names : GivenNames
        Its names.

    Raises
    ------
    ParamsError
        Params do not fit a segment, or it loads and reduces other values than are named.
    """
    for at, piece in enumerate(made):
        place = names.segment_of(piece)
        where = f"segments[{place}]"
        if place > at:
            raise ParamsError(
                f"segments[{at}]: it needs results of segments[{place}], which runs later",
                hint="Segments are in the order in which they run.",
            )
        _refuse_params(piece, given[place], where, device)
        alone = piece.params.has_kernel and not piece.launched_by
        if not given[place].overlap and not alone:
            raise ParamsError(f"{where}.overlap: expected true: the segment has no kernel")
        _refuse_idle(piece, given[place], where)


def _refuse_params(
    piece: Segment, given: SegmentSchedule, where: str, device: DeviceProperties
) -> None:
    """Refuse params that the segment's kernel cannot have, or that the device cannot launch."""
    # As they were given: those of the segment say what these leave to the rules.
    refusal = why_not_params(piece, given.params)
    if refusal is not None:
        raise ParamsError(f"{where}.params: {refusal.reason}", hint=refusal.hint)
    reason = why_not_launched(piece.params, device)
    if reason is not None:
        raise ParamsError(f"{where}.params: {reason}")


def _refuse_idle(piece: Segment, given: SegmentSchedule, where: str) -> None:
    """Refuse ``beside``, ``loads`` and ``co_reduced`` where they would have no effect."""
    if given.beside and not piece.beside:
        why = f"{piece.finishes} finishes it" if piece.finishes else "it has no kernel"
        raise ParamsError(f"{where}.beside: expected false: {why}")
    found = segment_schedule(piece)
    inputs = {value.name for value in piece.inputs}
    for at, name in enumerate(given.loads):
        if name not in inputs or name in given.loads[:at] or name not in found.loads:
            raise ParamsError(f"{where}.loads[{at}]: the kernel reads no {name}, or only so")
    for at, name in enumerate(given.co_reduced):
        if name not in found.co_reduced or name in given.co_reduced[:at]:
            raise ParamsError(
                f"{where}.co_reduced[{at}]: {name} reduces no results of the kernel's own rows"
            )
