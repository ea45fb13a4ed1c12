"""What random definitions take, as text: the half that may be looked into line by line."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..recorded.definition_results import COMPILED, TOLERATED, Result
from ..tables.formatting import geomean, human_ratio, table
from ..tables.records import OURS

WORST = 25
MEAN, FIRST = 1.2, 0.8
"""Targets: geometric mean and first percentile of torch.compile's time over ours."""
_PERCENTILES = (1, 5, 10, 50)


def rendered(results: Sequence[Result]) -> str:
    """The worst ones, failures and doubtful values; then each half in two lines."""
    shown = [r for r in results if not r.held_out]
    timed = sorted((r for r in shown if r.ratio(COMPILED)), key=lambda r: r.ratio(COMPILED) or 0.0)
    parts = []
    if timed:
        parts += ["Worst against torch.compile:", table(r.row() for r in timed[:WORST])]
    elif shown:
        worst = sorted(shown, key=lambda r: -r.kernels)[:WORST]
        parts += ["Most kernels:", table(r.row() for r in worst)]
    parts += [f"{r.name}, {who}: {text}" for r in shown for who, text in r.failures.items()]
    parts += [
        f"{r.name}: error {r.error:.1e}, torch.compile's {_shown(r.compiled_error)}"
        for r in shown
        if is_doubtful(r)
    ]
    for held_out, name in ((False, "seen"), (True, "held out")):
        parts += [summary(name, [r for r in results if r.held_out is held_out])]
    return "\n".join(part for part in (*parts, summary("all", results)) if part) + "\n"


def _shown(error: float | None) -> str:
    return "not compared" if error is None else f"{error:.1e}"


def is_doubtful(result: Result) -> bool:
    """Whether our results are further from float64 than rounding explains."""
    if result.error is None or result.error <= TOLERATED:
        return False
    if result.explained is not None:
        return not result.explained
    return result.compiled_error is None or result.error > 2 * result.compiled_error


def summary(name: str, results: Sequence[Result]) -> str:
    """Mean and percentiles of the ratio, and the share of the bound."""
    ratios = sorted(ratio for ratio in (r.ratio(COMPILED) for r in results) if ratio)
    ours, theirs = (sum(who in r.failures for r in results) for who in (OURS, COMPILED))
    head = (
        f"{name}: {len(results)} definitions, {ours} failed, {theirs} of torch.compile's, "
        f"{sum(map(is_doubtful, results))} of doubtful values"
    )
    if not ratios:
        return head
    at = ", ".join(f"p{p} {human_ratio(percentile(ratios, p))}" for p in _PERCENTILES)
    shares = sorted(s for s in (r.share_of_bound for r in results) if s)
    counts = [
        sum(r.times[who].count for r in results if r.ratio(COMPILED)) for who in (OURS, COMPILED)
    ]
    return (
        f"{head}\n  vs torch.compile: geometric mean {human_ratio(geomean(ratios))} (bar {MEAN}), "
        f"{at} (bar of p1 {FIRST}), {sum(r < 1 for r in ratios)} of {len(ratios)} behind\n"
        f"  share of the bound: p10 {percentile(shares, 10):.0%}, median "
        f"{percentile(shares, 50):.0%}; kernels {counts[0]:g}, torch.compile's {counts[1]:g}"
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest of ordered numbers that at least ``percent`` of them do not exceed."""
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
