"""Tables of tuned cases: one line a case, and the figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from tritonfuser.frontend.vocabulary.units import bytes_text

from ..tables.formatting import human_ratio, table
from .results import (
    CANDIDATES,
    HEURISTIC,
    NEAR,
    NEVER_BELOW,
    PER_SECONDS,
    Found,
)


def report(found: Sequence[Found], style: str = "simple") -> str:
    """All as text; the slowest of the short tunings first."""
    timed = sorted(
        (one for one in found if not one.failure), key=lambda one: -one.short.seconds / one.best
    )
    failed = [f"{one.name}: {one.failure}" for one in found if one.failure]
    parts = ["\n".join(failed)] if failed else []
    if timed:
        parts = [table([_line(one) for one in timed], style), "\n".join(_figures(timed)), *parts]
    return "\n\n".join(parts) or "nothing was tuned"


def _line(one: Found) -> dict[str, str]:
    short, long = one.short, one.long
    return {
        "case": one.name,
        "moves": bytes_text(one.bytes),
        "kernels": str(one.kernels),
        "heuristics us": f"{one.heuristic * 1e6:.1f}",
        f"{short.budget:g} s us": f"{short.seconds * 1e6:.1f}",
        f"{long.budget:g} s us": f"{long.seconds * 1e6:.1f}",
        "short/long": f"{short.seconds / one.best:.3f}",
        "heuristics/long": f"{one.heuristic / one.best:.3f}",
        "timed": f"{short.timed}, {long.timed}",
        "change": long.change or "none",
    }


def _figures(found: Sequence[Found]) -> Iterator[str]:
    holds = {True: "holds", False: "missed"}
    for origin in dict.fromkeys(one.origin for one in found):
        those = [one for one in found if one.origin == origin]
        yield (
            f"{origin}, {len(those)} cases: short over long {_median_short(those):.3f}, heuristics "
            f"over long {_median_heuristic(those):.3f} at the median"
        )
    short, heuristic = _median_short(found), _median_heuristic(found)
    yield (
        f"short tuning within {NEAR}x of the long one's best at the median: "
        f"{holds[short <= NEAR]}, {short:.3f}"
    )
    yield (
        f"heuristics within {HEURISTIC}x of it at the median: "
        f"{holds[heuristic <= HEURISTIC]}, {heuristic:.3f}"
    )
    least = min(found, key=lambda one: one.least_gain)
    yield (
        f"tuned never below {NEVER_BELOW}x of the heuristics' speed: "
        f"{holds[least.least_gain >= NEVER_BELOW]}, least {human_ratio(least.least_gain)} "
        f"({least.name})"
    )
    single = [one.pace for one in found if one.kernels == 1]
    if single:
        pace = statistics.median(single)
        yield (
            f"{CANDIDATES} candidates of one kernel in {PER_SECONDS:g} s: "
            f"{holds[pace >= CANDIDATES]}, {pace:.0f} at the median"
        )


def _median_short(found: Sequence[Found]) -> float:
    return statistics.median(one.short.seconds / one.best for one in found)


def _median_heuristic(found: Sequence[Found]) -> float:
    return statistics.median(one.heuristic / one.best for one in found)
