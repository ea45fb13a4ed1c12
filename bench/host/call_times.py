"""Interleaved timing of calls, and the ratios that are compared with targets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..measure.timing import collected, quartiles, synchronize
from ..tables.formatting import table
from .calls import Bar, Call

CALLS, ROUNDS = 50, 61
"""Calls per round, and rounds; the first round is a warm-up and is not counted."""
ON_CPU = 2, 3
"""The same without a GPU, where every call computes in the interpreter."""


@dataclass(frozen=True)
class Row:
    """Microseconds per call: the median and the quartiles of the rounds."""

    name: str
    kernels: int
    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Outcome:
    """A target, and the measured ratio."""

    text: str
    ratio: float
    most: float
    met: bool


def measure(calls: Sequence[Call], device: str, count: int, rounds: int) -> dict[str, list[float]]:
    """Seconds per call in each round, by name of the call."""
    for call in calls:
        for _ in range(3):
            call.run()
    found: dict[str, list[float]] = {call.name: [] for call in calls}
    with collected():
        for turn in range(rounds):
            first = turn % len(calls)
            for call in (*calls[first:], *calls[:first]):
                synchronize(device)
                found[call.name].append(_seconds(call.run, count))
    return {name: times[1:] for name, times in found.items()}


def _seconds(run: Callable[[], Any], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - started) / count


def row(call: Call, times: Sequence[float]) -> Row:
    """The median and quartiles over the rounds of a call."""
    found = quartiles(times)
    return Row(call.name, call.kernels, found.median * 1e6, found.low * 1e6, found.high * 1e6)


def outcome(bar: Bar, times: dict[str, list[float]]) -> Outcome | None:
    """Whether a target is met; None if one of its two calls was not measured."""
    if bar.call not in times or bar.against not in times:
        return None
    pairs = zip(times[bar.call], times[bar.against], strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    return Outcome(bar.text, ratio, bar.most, ratio <= bar.most)


def report(rows: Sequence[Row], outcomes: Sequence[Outcome], where: str) -> str:
    """Two tables: the calls, and the targets."""
    base = rows[0].median
    calls = [
        {
            "call": r.name,
            "kernels": r.kernels or "",
            "us": f"{r.median:.2f}",
            "middle half": f"{r.low:.2f} to {r.high:.2f}",
            "x eager a + b": f"{r.median / base:.2f}",
        }
        for r in rows
    ]
    bars = [
        {"bar": o.text, "measured": f"{o.ratio:.2f}", "": "met" if o.met else "MISSED"}
        for o in outcomes
    ]
    parts = [f"host time of a call, {where}", table(calls)]
    return "\n\n".join([*parts, table(bars)] if bars else parts)
