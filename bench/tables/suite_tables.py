"""Tables of results, one per suite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tritonfuser.frontend.vocabulary.units import bytes_text

from .formatting import human_ratio, table
from .records import OURS, PEERS, SKIPPED, Record, Results

TITLES = {"eager": "eager", "compile": "compile", "autotune": "max-autotune", "liger": "Liger"}
"""Column titles of the peers."""


def suite_tables(records: Sequence[Record], style: str = "simple") -> str:
    """One table per suite, each followed by the failures of peers."""
    suites = dict.fromkeys(record.suite for record in records)
    return "\n\n".join(
        _suite(suite, [r for r in records if r.suite == suite], style) for suite in suites
    )


def _suite(name: str, records: Sequence[Record], style: str) -> str:
    peers = [peer for peer in PEERS if any(peer in r.times or peer in r.failures for r in records)]
    parts = [heading(name, style), table((_row(r, peers) for r in records), style)]
    told = "\n".join(_failures(records))
    return "\n\n".join([*parts, *([told] if told else [])])


def heading(text: str, style: str) -> str:
    """A line above a table."""
    return f"## {text}" if style == "github" else f"{text}\n{'=' * len(text)}"


def _row(record: Record, peers: Sequence[str]) -> dict[str, Any]:
    """The line of a record; a peer's column is its time over tritonfuser's."""
    ours = record.times.get(OURS)
    share = record.speed_of_light()
    return {
        "case": record.case,
        "size": record.size,
        "dtype": record.dtype,
        "moves": bytes_text(record.bytes),
        "kernels": "" if record.launches is None else str(record.launches),
        "us": f"{ours.median * 1e6:.1f}" if ours else missing(record, OURS),
        "spread": f"{100 * ours.spread:.0f}%" if ours else "",
        "GB/s": f"{record.bytes / ours.median * 1e-9:.0f}" if ours else "",
        "% of SOL": percent(share),
        "% of bound": percent(record.share_of_bound()),
        "limited by": record.limit,
        **{f"vs {TITLES[peer]}": ratio_text(record, peer) for peer in peers},
        "error": "" if record.error is None else f"{record.error:.0e}",
        "same bits": {None: "", True: "yes", False: "NO"}[record.deterministic],
    }


def ratio_text(record: Record, peer: str) -> str:
    """``1.52x``, or a word for the missing time."""
    return human_ratio(record.ratio(peer)) or missing(record, peer)


def percent(share: float | None) -> str:
    """``93%``."""
    return f"{100 * share:.0f}%" if share else ""


def missing(record: Record, who: str) -> str:
    """A word for a time that is not there."""
    if who not in record.failures:
        return "-"
    return "skipped" if record.failures[who] == SKIPPED else "failed"


def _failures(records: Sequence[Record]) -> Iterable[str]:
    """The failures: each text once, with its count."""
    seen: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for who, text in record.failures.items():
            seen.setdefault((who, text), []).append(record.name)
    for (who, text), names in seen.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{TITLES.get(who, who)}, {names[0]}{more}: {text}"


def provenance(results: Results, style: str = "simple") -> str:
    """The provenance of the results, as a table."""
    return table(
        (
            {
                "commit": run.get("commit", ""),
                "date": run.get("date", ""),
                "device": run.get("device", ""),
                "copy": f"{run.get('bandwidth', 0) * 1e-12:.2f} TB/s",
                "torch": run.get("torch", ""),
                "triton": run.get("triton", ""),
            }
            for run in results.runs
        ),
        style,
    )
