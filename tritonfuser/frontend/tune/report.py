"""What a tuner tried and found: ``TuneReport``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tabulate import tabulate

from ...errors import ArgumentError
from ...heuristics.schedule import Schedule
from ..vocabulary.location import user_line
from ..vocabulary.units import seconds_text

SHOWN = 20
"""Rows of the table that ``print`` shows."""


@dataclass(frozen=True)
class Trial:
    """One schedule that was tried.

    Attributes
    ----------
    schedule : Schedule
        What was tried.
    change : str
        How it differs from the heuristics' schedule: ``"s0.block_x 1024 -> 2048"``. Empty for that
        schedule itself.
    seconds : float, optional
        Median GPU time of a run with a cold L2 cache; None where it was not timed.
    failure : str
        Why it cannot be used: not legal, not compiled, wrong, a fault while it ran. Empty where it
        can.
    finalist : bool
        Whether ``seconds`` is from the last rounds, in which the fastest and the heuristics'
        schedule were timed together and their outputs were checked.
    """

    schedule: Schedule
    change: str = ""
    seconds: float | None = None
    failure: str = ""
    finalist: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        told = {"change": self.change, "seconds": self.seconds, "failure": self.failure}
        return {**told, "finalist": self.finalist, "schedule": self.schedule.to_dict()}


@dataclass(frozen=True)
class TuneReport:
    """What ``fd.autotune`` found; prints as a table.

    Attributes
    ----------
    schedule : Schedule
        The fastest that was found, the heuristics' own where nothing beats it:
        ``fd.run(inputs, schedule=report.schedule)``.
    heuristic_seconds : float
        Time of the heuristics' schedule.
    seconds : float
        Time of ``schedule``, from the same rounds.
    trials : tuple of Trial
        All that was tried, the heuristics' schedule first.
    device : str
        The GPU.
    spent_seconds : float
        What the tuning took.
    interrupted : bool
        Whether Ctrl-C ended it.
    stored : str
        The file that later runs find the schedule in; empty where it was not stored.
    predicted : bool
        Whether all times are the cost model's, and nothing was run.
    """

    schedule: Schedule
    heuristic_seconds: float
    seconds: float
    trials: tuple[Trial, ...]
    device: str
    spent_seconds: float
    interrupted: bool = False
    stored: str = ""
    predicted: bool = False

    @property
    def speedup(self) -> float:
        """Time of the heuristics' schedule over that of ``schedule``; 1.0 or more."""
        return self.heuristic_seconds / self.seconds if self.seconds else 1.0

    @property
    def is_better(self) -> bool:
        """Whether ``schedule`` is another one than the heuristics'."""
        return self.schedule != self.trials[0].schedule

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "schedule": self.schedule.to_dict(),
            "heuristic_seconds": self.heuristic_seconds,
            "seconds": self.seconds,
            "device": self.device,
            "spent_seconds": self.spent_seconds,
            "interrupted": self.interrupted,
            "stored": self.stored,
            "predicted": self.predicted,
            "trials": [trial.to_dict() for trial in self.trials],
        }

    def to_json(self) -> str:
        """``to_dict`` as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def to_csv(self) -> str:
        """A line for each trial: number, change, seconds, finalist, failure."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("trial", "change", "seconds", "finalist", "failure"))
        for number, trial in enumerate(self.trials):
            seconds = "" if trial.seconds is None else repr(trial.seconds)
            row = (number, trial.change, seconds, int(trial.finalist), trial.failure)
            writer.writerow(row)
        return out.getvalue()

    def plot(self, axes: Any = None) -> Any:
        """Draw the time of each trial, and of the best up to it, on axes of matplotlib.

        Parameters
        ----------
        axes : matplotlib.axes.Axes
            ``plt.gca()`` for the current ones.

        Returns
        -------
        Axes
            The same.

        Raises
        ------
        ArgumentError
            There are no axes.
        """
        if not hasattr(axes, "scatter"):
            raise ArgumentError(
                f"plot: expected axes of matplotlib, got {axes!r}",
                loc=user_line(),
                hint="import matplotlib.pyplot as plt; report.plot(plt.gca()); plt.show(). "
                "matplotlib is no dependency of tritonfuser: pip install matplotlib.",
            )
        timed = [(n, t.seconds * 1e6) for n, t in enumerate(self.trials) if t.seconds is not None]
        numbers, times = [n for n, _ in timed], [time for _, time in timed]
        best = [min(times[: place + 1]) for place in range(len(times))]
        axes.scatter(numbers, times, s=8, label="trial")
        axes.step(numbers, best, where="post", label="best so far")
        axes.axhline(self.heuristic_seconds * 1e6, linestyle="--", label="heuristics")
        axes.set_xlabel("trial")
        axes.set_ylabel("GPU time [us]")
        axes.legend()
        return axes

    def __str__(self) -> str:
        timed = [trial for trial in self.trials if trial.seconds is not None]
        ranked = sorted(timed, key=lambda t: (bool(t.failure), not t.finalist, t.seconds))
        rows = [self._row(trial) for trial in ranked[:SHOWN]]
        parts = [self._heading(), tabulate(rows, headers="keys", disable_numparse=True)]
        if len(ranked) > SHOWN:
            parts.append(f"and {len(ranked) - SHOWN} slower; to_csv() has all")
        parts += [f"{count} x {why}" for why, count in _reasons(self.trials)]
        return "\n".join(parts)

    def _heading(self) -> str:
        found = (
            f"{seconds_text(self.seconds)} for {seconds_text(self.heuristic_seconds)}, "
            f"{self.speedup:.2f}x the heuristics' schedule"
            if self.is_better
            else f"nothing beats the heuristics' schedule, {seconds_text(self.seconds)}"
        )
        ended = ", interrupted" if self.interrupted else ""
        if self.predicted:
            return f"{found}, by the cost model for {self.device}: nothing was run"
        return (
            f"{found}, on {self.device}; {len(self.trials)} schedules in "
            f"{self.spent_seconds:.1f} s{ended}"
        )

    def _row(self, trial: Trial) -> Mapping[str, str]:
        assert trial.seconds is not None
        marks = ["best"] if trial.schedule == self.schedule else []
        marks += ["finalist"] if trial.finalist else []
        marks += [trial.failure.splitlines()[0]] if trial.failure else []
        base = self.heuristic_seconds  # None of it where there is no kernel.
        return {
            "time": seconds_text(trial.seconds),
            "of heuristics": f"{trial.seconds / base:.2f}" if base else "",
            "change": trial.change or "heuristics",
            "": ", ".join(marks),
        }


def _reasons(trials: Sequence[Trial]) -> Iterator[tuple[str, int]]:
    """Why schedules could not be used, the most frequent reason first."""
    counts: dict[str, int] = {}
    for trial in trials:
        if trial.failure:
            why = trial.failure.splitlines()[0]
            counts[why] = counts.get(why, 0) + 1
    yield from sorted(counts.items(), key=lambda item: -item[1])


def difference(schedule: Schedule, base: Schedule) -> str:
    """How a schedule differs from another: ``s0.num_warps 4 -> 8, splits[0].parts 8 -> 16``."""
    return ", ".join(differences(schedule, base))


def differences(schedule: Schedule, base: Schedule) -> list[str]:
    """The fields of a trial as texts."""
    before, after = base.to_dict(), schedule.to_dict()
    if len(base.segments) != len(schedule.segments):
        before["segments"], after["segments"] = len(base.segments), len(schedule.segments)
    found = _differences("", before, after)
    return [f"{name} {was} -> {now}" for name, was, now in found]


def _differences(where: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for name in dict.fromkeys((*was, *now)):
            path = name if not where else f"{where}.{name}"
            yield from _differences(path, was.get(name), now.get(name))
    elif _are_alike(was, now):
        for place, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from _differences(f"{where}[{place}]", one, other)
    elif was != now:
        yield _short(where), was, now


def _are_alike(was: Any, now: Any) -> bool:
    """Whether these are lists of dicts, of one length."""
    lists = isinstance(was, list) and isinstance(now, list) and len(was) == len(now)
    return lists and all(isinstance(item, Mapping) for item in (*was, *now))


def _short(path: str) -> str:
    """``segments[0].params.block_x`` as ``s0.block_x``."""
    if not path.startswith("segments["):
        return path
    place, _, rest = path.removeprefix("segments[").partition("]")
    return f"s{place}.{rest.lstrip('.').removeprefix('params.')}"
