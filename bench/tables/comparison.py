"""Comparison of two runs by ratios, which also works across machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .formatting import table
from .records import PEERS, Record
from .suite_tables import TITLES

TOLERATED = 0.05
"""Relative loss of a ratio that is tolerated."""


@dataclass(frozen=True)
class Change:
    """One ratio of one row, before and now; larger is better."""

    row: str
    ratio: str
    before: float
    now: float

    @property
    def factor(self) -> float:
        """The relative change: 1.0 is unchanged, less is worse."""
        return self.now / self.before


def changes(before: Sequence[Record], now: Sequence[Record]) -> Iterator[Change]:
    """The ratios that both runs have: share of copy bandwidth, and speedup over each peer."""
    known = {record.key: record for record in before}
    for record in now:
        then = known.get(record.key)
        if then is None:
            continue
        yield from _change(record, "% of SOL", then.speed_of_light(), record.speed_of_light())
        for peer in PEERS:
            yield from _change(record, f"vs {TITLES[peer]}", then.ratio(peer), record.ratio(peer))


def _change(
    record: Record, ratio: str, before: float | None, now: float | None
) -> Iterator[Change]:
    if before and now:
        yield Change(record.name, ratio, before, now)


def worse(found: Sequence[Change], tolerated: float = TOLERATED) -> list[Change]:
    """The ratios that got worse by more than ``tolerated``, worst first."""
    lost = [change for change in found if change.factor < 1 - tolerated]
    return sorted(lost, key=lambda change: change.factor)


def comparison(found: Sequence[Change], tolerated: float, style: str = "simple") -> str:
    """The table of ratios that got worse, and a summary line."""
    lost = worse(found, tolerated)
    gained = sum(change.factor > 1 + tolerated for change in found)
    rows = len({change.row for change in found})
    line = (
        f"{rows} rows in both, {len(found)} ratios: {len(lost)} worse by more than "
        f"{100 * tolerated:.0f}%, {gained} better by more"
    )
    if not lost:
        return line
    lines = (
        {
            "row": change.row,
            "ratio": change.ratio,
            "before": f"{change.before:.2f}",
            "now": f"{change.now:.2f}",
            "change": f"{100 * (change.factor - 1):+.0f}%",
        }
        for change in lost
    )
    return f"{table(lines, style)}\n\n{line}"
