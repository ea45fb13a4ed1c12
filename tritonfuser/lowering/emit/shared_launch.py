"""The kernel text of launches that compute several segments.

Programs are divided among segments that need nothing of one another::

    program = tl.program_id(0)
    if program < 512:
        s0_reduction_sum(program, tv0_ptr, tv5_ptr, S0_XBLOCK, S0_RBLOCK)
    else:
        s1_pointwise_exp(program - 512, tv1_ptr, tv6_ptr, S1_XBLOCK)

The last programs of a segment finish another that needs its results::

    s1_counter = tl.program_id(0) % 16
    if is_last(arrivals_ptr + s1_counter, 32):
        s1_reduction_sum(s1_counter, tv5_ptr, tv3_ptr, S1_XBLOCK, S1_RBLOCK)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...symbolic.queries import is_known_equal
from ..kernel_source import ARRIVALS, ArrivalCounters
from ..tile.arrivals import Arrivals
from .lines import Line
from .segment_function import PROGRAM, SegmentFunction


@dataclass(frozen=True)
class FinishedSegment:
    """A segment that the last programs of a kernel compute, and which programs those are."""

    function: SegmentFunction
    arrivals: Arrivals


# --- segments beside one another -----------------------------------------------------------------


def shared_launch_lines(parts: Sequence[tuple[SegmentFunction, int]]) -> list[Line]:
    """The kernel of a launch whose programs are divided among segments.

    Parameters
    ----------
    parts : sequence of (SegmentFunction, int)
        Each with the number of its tiles.
    """
    lines = [Line(f"{PROGRAM} = tl.program_id(0)")]
    start = 0
    for place, (function, tiles) in enumerate(parts):
        stop = start + tiles
        word = "if" if place == 0 else "elif"
        last = place == len(parts) - 1
        lines.append(Line("else:" if last else f"{word} {PROGRAM} < {stop!r}:"))
        number = PROGRAM if place == 0 else f"{PROGRAM} - {start}"
        lines.append(Line(function.call(number), depth=1))
        start = stop
    return lines


# --- segments that the last programs finish ------------------------------------------------------


def finish_lines(lasts: Iterable[FinishedSegment]) -> list[Line]:
    """What a kernel ends with: its programs arrive at counters, and the last ones finish more."""
    lines: list[Line] = []
    start = 0
    for last in lasts:
        arrivals = last.arrivals
        found = _counter(arrivals)
        counter = "0" if found is None else f"{last.function.segment.name}_counter"
        if found is not None:
            lines.append(Line(f"{counter} = {found}"))
        places = [str(n) for n in (counter, start) if str(n) != "0"]
        where = " + ".join([ARRIVALS, *places])
        lines.append(Line(f"if is_last({where}, {arrivals.programs}):"))
        lines += _tiles(last, counter)
        start = start + arrivals.counters
    return lines


def _counter(arrivals: Arrivals) -> str | None:
    """Where a program arrives: ``tl.program_id(0) // 512 * 16 + tl.program_id(0) % 16``."""
    if is_known_equal(arrivals.counters, 1):
        return None
    program = "tl.program_id(0)"
    if is_known_equal(arrivals.step, 1):
        return f"{program} // {arrivals.programs}"
    if is_known_equal(arrivals.counters, arrivals.step):
        return f"{program} % {arrivals.step}"
    apart = f"{program} // {arrivals.programs * arrivals.step} * {arrivals.step}"
    return f"{apart} + {program} % {arrivals.step}"


def _tiles(last: FinishedSegment, counter: str) -> list[Line]:
    """The tiles of a counter, one after another."""
    count = last.arrivals.tiles
    if is_known_equal(count, 1):
        return [Line(last.function.call(counter), depth=1)]
    start, stop = ("0", count) if counter == "0" else (f"{counter} * {count}", None)
    ends = f"{start}, {stop}" if stop is not None else f"{start}, {counter} * {count} + {count}"
    return [
        Line(f"for {PROGRAM} in range({ends}):", depth=1),
        Line(last.function.call(PROGRAM), depth=2),
    ]


def counters_of(lasts: Sequence[FinishedSegment]) -> ArrivalCounters | None:
    """The counters of a kernel; None where it finishes nothing."""
    if not lasts:
        return None
    total = lasts[0].arrivals.counters
    for last in lasts[1:]:
        total = total + last.arrivals.counters
    return ArrivalCounters(total)
