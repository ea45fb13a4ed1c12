"""Results of the recorded definitions: rows of the table, and a summary by model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritonfuser.frontend.vocabulary.units import bytes_text, seconds_text

from ..measure.kernel_times import KernelTimes
from ..tables.formatting import geomean, human_ratio, table
from ..tables.records import OURS

EAGER, COMPILED = "eager", "compile"
ALL = (OURS, EAGER, COMPILED)
_WORST = 10


@dataclass(frozen=True)
class SegmentLine:
    """One segment of a definition: its scheduler, number of ops and params."""

    name: str
    scheduler: str
    ops: int
    params: str


@dataclass(frozen=True)
class Result:
    """The result of one definition, checked against float64 and timed.

    Attributes
    ----------
    calls : int
        Number of runs in the training step that it was recorded in.
    kernels : int
        Number of tritonfuser's kernels.
    bytes : int
        Bytes that these kernels move.
    least : int
        Minimum bytes: every input and every output once.
    bandwidth : float, optional
        Bandwidth of a copy on the same GPU, in bytes per second.
    bound : float, optional
        Least seconds that any kernel could take there, its launch left out.
    limit : str
        What ``bound`` is the time of: memory, or instructions of one kind.
    error : float, optional
        Largest error of tritonfuser.
    compiled_error : float, optional
        Largest error of the compiled function; None for definitions with random numbers.
    times : dict
        Number and time of kernels by contender: ours, eager, compile.
    failures : dict
        Error text of each contender without a time.
    first_call : float, optional
        Without a GPU: seconds of the first call, lowering included.
    registers, spilled : int, optional
        Without a GPU: most registers and spilled bytes of any kernel compiled for ``arch``.
    """

    name: str
    model: str
    calls: int
    reduced: bool
    ops: int
    kernels: int
    segments: tuple[SegmentLine, ...]
    bytes: int
    least: int
    bandwidth: float | None = None
    bound: float | None = None
    limit: str = ""
    error: float | None = None
    compiled_error: float | None = None
    times: dict[str, KernelTimes] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    first_call: float | None = None
    registers: int | None = None
    spilled: int | None = None

    def ratio(self, peer: str) -> float | None:
        """Time of the peer's kernels over the time of tritonfuser's."""
        if OURS not in self.times or peer not in self.times:
            return None
        return self.times[peer].seconds / self.times[OURS].seconds

    @property
    def share(self) -> float | None:
        """Time of a copy of the minimum bytes over the time taken."""
        if OURS not in self.times or self.bandwidth is None:
            return None
        return self.least / self.bandwidth / self.times[OURS].seconds

    @property
    def share_of_bound(self) -> float | None:
        """The least time over the time taken."""
        if OURS not in self.times or self.bound is None:
            return None
        return self.bound / self.times[OURS].seconds

    def row(self) -> dict[str, str]:
        """The line of the table."""
        cells = {
            "definition": self.name + (" (reduced)" if self.reduced else ""),
            "calls": str(self.calls),
            "ops": str(self.ops),
            "kernels": str(self.kernels),
            "moved": bytes_text(self.bytes),
            "max error": "" if self.error is None else f"{self.error:.1e}",
        }
        if self.first_call is not None:
            return cells | {
                "first call": seconds_text(self.first_call),
                "registers": str(self.registers),
                "spilled": str(self.spilled),
            }
        return cells | self._timed()

    def _timed(self) -> dict[str, str]:
        counts = {f"{who} kernels": self._of(who, _count) for who in (EAGER, COMPILED)}
        seconds = {who: self._of(who, _time) for who in ALL}
        reached = self.share_of_bound
        return {
            **counts,
            **seconds,
            "% of SOL": "" if self.share is None else f"{100 * self.share:.0f}",
            "% of bound": "" if reached is None else f"{100 * reached:.0f}",
            "limited by": self.limit,
            "vs eager": human_ratio(self.ratio(EAGER)),
            "vs compile": human_ratio(self.ratio(COMPILED)),
        }

    def _of(self, who: str, show: Callable[[KernelTimes], str]) -> str:
        if who in self.failures:
            return "failed"
        return show(self.times[who]) if who in self.times else ""


def _count(times: KernelTimes) -> str:
    return f"{times.count:g}"


def _time(times: KernelTimes) -> str:
    return seconds_text(times.seconds)


# --- summary -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """One training step: the definitions of one model that every contender ran.

    Attributes
    ----------
    steps : dict
        Number and time of kernels in a step, by contender.
    means : dict
        Geometric mean over definitions of each peer's time over tritonfuser's.
    """

    model: str
    definitions: int
    steps: dict[str, KernelTimes]
    means: dict[str, float | None]

    def row(self) -> dict[str, str]:
        """The line of the table."""
        ours = self.steps[OURS].seconds
        kernels = {f"{who} kernels": f"{t.count:g}" for who, t in self.steps.items()}
        seconds = {who: seconds_text(t.seconds) for who, t in self.steps.items()}
        peers = [who for who in self.steps if who != OURS]
        totals = {f"vs {who}": human_ratio(self.steps[who].seconds / ours) for who in peers}
        means = {f"geomean vs {who}": human_ratio(self.means[who]) for who in peers}
        of = {"model": self.model, "definitions": str(self.definitions)}
        return {**of, **kernels, **seconds, **totals, **means}


def summaries(results: Sequence[Result]) -> list[Summary]:
    """One summary per model, and one for all models."""
    complete = [r for r in results if all(who in r.times for who in ALL)]
    models = dict.fromkeys(r.model for r in complete)
    groups = {model: [r for r in complete if r.model == model] for model in models}
    if len(groups) > 1:
        groups["all"] = complete
    return [_summary(model, found) for model, found in groups.items()]


def _summary(model: str, results: Sequence[Result]) -> Summary:
    steps = {who: _total(r.times[who].times(r.calls) for r in results) for who in ALL}
    ratios = {who: [r.ratio(who) for r in results] for who in (EAGER, COMPILED)}
    means = {who: geomean(found) for who, found in ratios.items()}
    return Summary(model, len(results), steps, means)


def _total(times: Iterable[KernelTimes]) -> KernelTimes:
    found = list(times)
    return KernelTimes(sum(t.count for t in found), sum(t.seconds for t in found))


def rendered(results: Sequence[Result], about: dict[str, Any], code: str = "") -> str:
    """All tables as text; ``code`` is a line around each table, "```" for Markdown."""
    parts = [", ".join(f"{key} {value}" for key, value in about.items())]
    parts.append(_table([r.row() for r in results], code))
    totals = summaries(results)
    if totals:
        parts += ["A training step, by model:", _table([s.row() for s in totals], code)]
        worst = sorted(
            (r for r in results if COMPILED in r.times), key=lambda r: r.ratio(COMPILED) or 0.0
        )
        parts += ["Worst against torch.compile:", _table([r.row() for r in worst[:_WORST]], code)]
    parts += [f"{r.name}, {who}: {text}" for r in results for who, text in r.failures.items()]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[dict[str, str]], code: str) -> str:
    return "\n".join(filter(None, (code, table(rows), code)))
