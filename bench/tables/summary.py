"""Targets of the suite, and the rows that miss them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .formatting import geomean, human_ratio, known, table
from .records import OURS, PEERS, Record
from .suite_tables import TITLES, heading, percent

MEDIAN, WORST = 0.90, 0.75
"""Targets for the share of copy bandwidth, for rows of 64 MiB and more."""
GEOMEANS_LARGE = {"compile": 1.4, "autotune": 1.3}
GEOMEANS = {"compile": 1.5, "autotune": 1.5}
BETTER = 0.97
"""Target of every row: speedup over the faster of torch.compile's two modes."""
COMPILERS = ("compile", "autotune")
SHOWN = 25
"""Most rows listed under one heading."""


@dataclass(frozen=True)
class Bar:
    """One figure, its target, and whether it is met."""

    what: str
    wanted: str
    found: str
    holds: bool | None


def bars(records: Sequence[Record]) -> list[Bar]:
    """The figures of a run that have measurements."""
    large = [record for record in records if record.large]
    found = [
        *_speed(large),
        *_means(large, GEOMEANS_LARGE, "64 MiB and more"),
        *_means(records, GEOMEANS, "all sizes"),
        _every(records, "the better of compile and max-autotune", better_ratio, BETTER),
        _every(records, "eager", lambda r: r.ratio("eager"), 1.0),
        _every(records, "Liger", lambda r: r.ratio("liger"), None),
        _deterministic(records),
        _measured(records),
    ]
    return [bar for bar in found if bar is not None]


def summary(records: Sequence[Record], style: str = "simple") -> str:
    """The figures as a table, then the rows that miss a target."""
    lines = [
        {
            "figure": bar.what,
            "wanted": bar.wanted,
            "found": bar.found,
            "": {True: "holds", False: "missed", None: ""}[bar.holds],
        }
        for bar in bars(records)
    ]
    parts = [heading("summary", style), table(lines, style), *_lists(records, style)]
    return "\n\n".join(part for part in parts if part)


def better_ratio(record: Record) -> float | None:
    """Speedup over the faster of torch.compile's two modes."""
    return min(known(record.ratio(peer) for peer in COMPILERS), default=None)


def _speed(large: Sequence[Record]) -> list[Bar]:
    shares = {r.name: s for r in large if (s := r.speed_of_light()) is not None}
    if not shares:
        return []
    median = statistics.median(shares.values())
    worst = min(shares, key=lambda name: shares[name])
    slow = sum(share < WORST for share in shares.values())
    counted = f"{len(shares)} rows of 64 MiB and more"
    found = f"{percent(shares[worst])} ({worst}); {slow} below"
    return [
        Bar(f"median % of SOL, {counted}", percent(MEDIAN), percent(median), median >= MEDIAN),
        Bar("worst % of SOL of these", percent(WORST), found, not slow),
    ]


def _means(records: Sequence[Record], wanted: dict[str, float], where: str) -> Iterable[Bar]:
    for peer in PEERS:
        ratios = known(record.ratio(peer) for record in records)
        mean = geomean(ratios)
        if mean is not None:
            least = wanted.get(peer)
            yield Bar(
                f"geometric mean vs {TITLES[peer]}, {where} ({len(ratios)} rows)",
                human_ratio(least),
                human_ratio(mean),
                mean >= least if least else None,
            )


def _every(
    records: Sequence[Record],
    who: str,
    ratio: Callable[[Record], float | None],
    least: float | None,
) -> Bar | None:
    """The lowest ratio, and how many rows are below the target."""
    ratios = {r.name: found for r in records if (found := ratio(r)) is not None}
    if not ratios:
        return None
    worst = min(ratios, key=lambda name: ratios[name])
    below = sum(found < (least or 1.0) for found in ratios.values())
    text = f"{human_ratio(ratios[worst])} ({worst}); {below} of {len(ratios)} below"
    holds = None if least is None else not below
    return Bar(f"lowest vs {who}", human_ratio(least), text, holds)


def _deterministic(records: Sequence[Record]) -> Bar | None:
    known = [r for r in records if r.deterministic is not None]
    if not known:
        return None
    same = sum(bool(r.deterministic) for r in known)
    return Bar("same bits in two runs", "all", f"{same} of {len(known)}", same == len(known))


def _measured(records: Sequence[Record]) -> Bar:
    done = sum(OURS in record.times for record in records)
    return Bar("rows measured", "all", f"{done} of {len(records)}", done == len(records))


# --- rows below a target -------------------------------------------------------------------------


def _lists(records: Sequence[Record], style: str) -> Iterable[str]:
    large = [record for record in records if record.large]
    for title, among, measure, least, text in (
        (
            f"below {percent(WORST)} of SOL at 64 MiB and more",
            large,
            Record.speed_of_light,
            WORST,
            percent,
        ),
        (
            f"below {BETTER}x of the better of compile and max-autotune",
            records,
            better_ratio,
            BETTER,
            human_ratio,
        ),
        ("slower than eager", records, lambda r: r.ratio("eager"), 1.0, human_ratio),
    ):
        found = [(record, value) for record in among if (value := measure(record)) is not None]
        yield _listed(title, [(r, v, text(v)) for r, v in found if v < least], style)


def _listed(title: str, found: list[tuple[Record, float, str]], style: str) -> str:
    """A table of the rows, worst first; empty for none."""
    if not found:
        return ""
    found.sort(key=lambda item: item[1])
    rows = [
        {
            "case": record.case,
            "size": record.size,
            "dtype": record.dtype,
            "us": f"{(record.seconds() or 0) * 1e6:.1f}",
            "": text,
        }
        for record, _, text in found[:SHOWN]
    ]
    rest = f"\n\nand {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{heading(f'{title}: {len(found)}', style)}\n\n{table(rows, style)}{rest}"
