"""Tables of the recorded definitions: by definition, by step, and over families of models.

Held-out families have a line a step and no line of a definition, so that nothing is made after one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tritonfuser.frontend.vocabulary.units import seconds_text

from ..measure.kernel_times import KernelTimes
from ..tables.formatting import geomean, human_ratio, table
from ..tables.records import OURS
from .definition_results import ALL, COMPILED, EAGER, Result

_WORST = 10
_SLOWER = 0.97
"""A definition is slower than torch.compile's below this ratio; above it is noise."""
_SEEN = 5e-6
"""Seconds of traffic from which a definition's ratio counts: below, launches are measured."""
_LONG = 15e-6
"""Seconds of traffic from which a definition is held to its bandwidth."""


@dataclass(frozen=True)
class Summary:
    """One step: the definitions of a model at one size that every contender ran.

    Attributes
    ----------
    model : str
        The model and its size; ``"all"`` for the sum of all steps.
    held_out : bool
        Whether the model is held out.
    steps : dict
        Number and time of kernels in a step, by contender.
    means : dict
        Geometric mean over definitions of each peer's time over tritonfuser's.
    share : float, optional
        Time of a copy of the step's minimum bytes over the time taken.
    """

    model: str
    held_out: bool
    definitions: int
    steps: dict[str, KernelTimes]
    means: dict[str, float | None]
    share: float | None = None

    def ratio(self, peer: str) -> float | None:
        """Time of the peer's kernels in a step over the time of tritonfuser's."""
        if peer not in self.steps or self.steps[OURS].seconds == 0:
            return None
        return self.steps[peer].seconds / self.steps[OURS].seconds

    def row(self) -> dict[str, str]:
        """The line of the table."""
        kernels = {f"{who} kernels": f"{t.count:g}" for who, t in self.steps.items()}
        seconds = {who: seconds_text(t.seconds) for who, t in self.steps.items()}
        peers = [who for who in self.steps if who != OURS]
        totals = {f"vs {who}": human_ratio(self.ratio(who)) for who in peers}
        means = {f"geomean vs {who}": human_ratio(self.means[who]) for who in peers}
        share = {"% of SOL": "" if self.share is None else f"{100 * self.share:.0f}"}
        of = {"model": self.model, "definitions": str(self.definitions)}
        return {**of, **kernels, **seconds, **share, **totals, **means}


def summaries(results: Sequence[Result]) -> list[Summary]:
    """One summary per model and size, and one for all of those that are not held out."""
    peers = [who for who in ALL if any(who in r.times for r in results)]
    complete = [r for r in results if OURS in r.times and all(who in r.times for who in peers)]
    names = dict.fromkeys((r.model, r.size) for r in complete)
    groups = {
        " ".join(filter(None, name)): [r for r in complete if (r.model, r.size) == name]
        for name in names
    }
    if len(groups) > 1:
        groups["all"] = [r for r in complete if not r.held_out]
    return [_summary(name, found, peers) for name, found in groups.items() if found]


def _summary(model: str, results: Sequence[Result], who: Sequence[str]) -> Summary:
    steps = {name: _total(r.times[name].times(r.calls) for r in results) for name in who}
    peers = [name for name in who if name != OURS]
    means = {name: geomean([r.ratio(name) for r in results]) for name in peers}
    traffic = [r.traffic for r in results]
    share = None
    if None not in traffic:
        copied = sum(r.calls * (r.traffic or 0.0) for r in results)
        share = copied / steps[OURS].seconds if steps[OURS].seconds else None
    return Summary(model, results[0].held_out, len(results), steps, means, share)


def _total(times: Iterable[KernelTimes]) -> KernelTimes:
    found = list(times)
    return KernelTimes(sum(t.count for t in found), sum(t.seconds for t in found))


# --- families ------------------------------------------------------------------------------------


def family_lines(results: Sequence[Result]) -> list[str]:
    """What the families have in common, held-out ones apart, as sentences."""
    lines: list[str] = []
    for held_out, who in ((False, "families"), (True, "held-out families")):
        found = [r for r in results if r.held_out is held_out]
        steps = [s for s in summaries(found) if s.model != "all"]
        if steps:
            lines += [f"{len({r.model for r in found})} {who}, {len(found)} definitions:"]
            lines += [f"  {line}" for line in (*_means(steps), *_shares(found), *_first(found))]
    return lines


def _means(steps: Sequence[Summary]) -> list[str]:
    lines = []
    for peer in (EAGER, COMPILED):
        ratios = [r for r in (s.ratio(peer) for s in steps) if r is not None]
        if ratios:
            behind = sum(r < 1 for r in ratios)
            ours, theirs = (sum(s.steps[w].count for s in steps) for w in (OURS, peer))
            lines.append(
                f"steps vs {peer}: geometric mean {human_ratio(geomean(ratios))}, worst "
                f"{human_ratio(min(ratios))}, {behind} of {len(ratios)} behind; "
                f"kernels {ours:g}, {peer}'s {theirs:g}"
            )
    return lines


def _shares(results: Sequence[Result]) -> list[str]:
    lines = []
    seen = [r.ratio(COMPILED) for r in results if (r.traffic or 0.0) >= _SEEN]
    ratios = [r for r in seen if r is not None]
    if ratios:
        slower = sum(r < _SLOWER for r in ratios)
        lines.append(
            f"definitions of {1e6 * _SEEN:g} us of traffic or more: {slower} of {len(ratios)} "
            f"below {_SLOWER}x of compile, worst {human_ratio(min(ratios))}"
        )
    shares = [r.share_of_bound or r.share for r in results if (r.traffic or 0.0) >= _LONG]
    long = [share for share in shares if share is not None]
    if long:
        half = sum(share >= 0.5 for share in long)
        lines.append(
            f"definitions of {1e6 * _LONG:g} us of traffic or more: {half} of {len(long)} at "
            f"half of their bound or more"
        )
    return lines


def _first(results: Sequence[Result]) -> list[str]:
    both = [r.first_calls for r in results if {OURS, COMPILED} <= set(r.first_calls)]
    ours, theirs = (sum(first[who] for first in both) for who in (OURS, COMPILED))
    if not ours:
        return []
    return [
        f"first calls: {seconds_text(ours)}, compile's {seconds_text(theirs)}, "
        f"{human_ratio(theirs / ours)} as long"
    ]


def rendered(results: Sequence[Result], about: dict[str, Any], code: str = "") -> str:
    """All tables as text; ``code`` is a line around each table, "```" for Markdown."""
    shown = [r for r in results if not r.held_out]
    parts = [", ".join(f"{key} {value}" for key, value in about.items())]
    parts.append(_table([r.row() for r in shown], code))
    totals = summaries(results)
    if totals:
        steps = [s.row() for s in totals if not s.held_out]
        parts += ["A step, by model:", _table(steps, code)]
        apart = [s.row() for s in totals if s.held_out]
        parts += ["Held out:", _table(apart, code)] if apart else []
        worst = sorted(
            (r for r in shown if r.ratio(COMPILED) is not None),
            key=lambda r: r.ratio(COMPILED) or 0.0,
        )
        parts += ["Worst against torch.compile:", _table([r.row() for r in worst[:_WORST]], code)]
    parts += ["\n".join(family_lines(results))]
    parts += [f"{r.name}, {who}: {text}" for r in results for who, text in r.failures.items()]
    return "\n\n".join(filter(None, parts)) + "\n"


def _table(rows: list[dict[str, str]], code: str) -> str:
    return "\n".join(filter(None, (code, table(rows), code)))
