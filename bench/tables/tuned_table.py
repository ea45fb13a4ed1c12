"""The table of ``--tuned``: the heuristics' schedule and the tuned one beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from tritonfuser.frontend.vocabulary.units import bytes_text

from .formatting import geomean, human_ratio, table
from .records import TUNED, Record
from .suite_tables import heading, percent

NEAR = (1.02, 1.05, 1.10)
"""Speedups that are counted."""


def tuned_tables(records: Sequence[Record], style: str = "simple") -> str:
    """A line for each tuned row, and a summary; empty where none was tuned."""
    found = [record for record in records if record.tuned is not None]
    failed = [f"{r.name}: {r.failures[TUNED]}" for r in records if TUNED in r.failures]
    if not found and not failed:
        return ""
    parts = [heading("heuristics and tuned", style)]
    if found:
        parts += [table([_row(record) for record in found], style), _summary(found)]
    return "\n\n".join([*parts, *(["\n".join(failed)] if failed else [])])


def _row(record: Record) -> dict[str, str]:
    tuned = record.tuned
    assert tuned is not None
    before, after = tuned.heuristic.median, tuned.tuned.median
    copy = record.bytes / record.bandwidth
    least = record.least
    return {
        "case": record.case,
        "size": record.size,
        "dtype": record.dtype,
        "moves": bytes_text(record.bytes),
        "heuristics us": f"{before * 1e6:.1f}",
        "tuned us": f"{after * 1e6:.1f}",
        "tuned is": human_ratio(tuned.speedup),
        "% of SOL": _both(copy, before, after),
        "% of bound": "" if least is None else _both(least, before, after),
        "tried": str(tuned.trials),
        "change": tuned.change or "none",
    }


def _both(least: float, before: float, after: float) -> str:
    return f"{percent(least / before)} {percent(least / after)}"


def _summary(records: Sequence[Record]) -> str:
    speedups = [record.tuned.speedup for record in records if record.tuned is not None]
    counts = ", ".join(
        f"{sum(s >= least for s in speedups)} by {100 * (least - 1):.0f}% or more" for least in NEAR
    )
    slower = sum(s < 1 / NEAR[0] for s in speedups)
    return (
        f"{len(speedups)} rows: tuned is {human_ratio(geomean(speedups))} at the geometric mean; "
        f"faster {counts}; slower by 2% or more {slower}"
    )
