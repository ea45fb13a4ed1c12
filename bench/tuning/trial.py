"""One case: tuned for a short and for a long time, and all schedules timed together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tritonfuser import FusionDefinition, Schedule, TuneReport

from ..measure.ideal_bytes import minimum_bytes
from ..measure.timing import free, interleaved
from .cases import TuningCase
from .results import Found, Level, Tuning

INPUT_SEED = 2


def found_of(
    case: TuningCase, budgets: Sequence[float], level: Level, device: str = "cuda"
) -> Found:
    """Tune a case twice, the shorter first, and time what came of it; a failure is a result.

    Nothing is stored, so the long tuning knows nothing of the short one, but for kernels that the
    process has compiled.

    Parameters
    ----------
    budgets : sequence of float
        Seconds of both tunings, the shorter first.
    level : str
        That of ``fd.autotune``.
    device : str
        ``"cuda"``, or ``"cpu"`` for the interpreter in tests.
    """
    try:
        return _found(case, budgets, level, device)
    except Exception as error:
        first = f"{type(error).__name__}: {error}".splitlines()[0]
        return Found(case.name, case.origin, failure=first)
    finally:
        free(device)


def _found(case: TuningCase, budgets: Sequence[float], level: Level, device: str) -> Found:
    fd, inputs = case.made(device, INPUT_SEED)
    reports = [
        fd.autotune(inputs, budget, level, progress=False, store=False) for budget in budgets
    ]
    heuristic = reports[0].trials[0].schedule
    seconds = _seconds(fd, inputs, {heuristic, *(r.schedule for r in reports)}, device)
    return Found(
        name=case.name,
        origin=case.origin,
        kernels=len(heuristic.segments),
        bytes=minimum_bytes(fd.fusion.ir),
        heuristic=seconds[heuristic],
        tunings=tuple(
            _tuning(report, budget, seconds[report.schedule])
            for report, budget in zip(reports, budgets, strict=True)
        ),
    )


def _seconds(
    fd: FusionDefinition, inputs: list[Any], schedules: set[Schedule], device: str
) -> dict[Schedule, float]:
    """Median seconds of each schedule, all in the same rounds; equal ones are timed once."""
    named = {str(place): schedule for place, schedule in enumerate(schedules)}
    runs = {
        name: partial(fd.plan(inputs, schedule=schedule), inputs)
        for name, schedule in named.items()
    }
    for run in runs.values():
        run()
    times = interleaved(runs, device)
    return {schedule: times[name].median for name, schedule in named.items()}


def _tuning(report: TuneReport, budget: float, seconds: float) -> Tuning:
    others = report.trials[1:]
    changes = {trial.schedule: trial.change for trial in reversed(report.trials)}
    return Tuning(
        budget=budget,
        spent=report.spent_seconds,
        tried=len(others),
        timed=sum(trial.seconds is not None for trial in others),
        change=changes[report.schedule],
        seconds=seconds,
    )
