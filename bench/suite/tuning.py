"""Rows of the suite tuned one after the other, and timed beside the heuristics' schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from ..measure.timing import free, interleaved
from ..processes.progress import Progress
from ..processes.workers import forget
from ..tables.records import TUNED, Record, Results, Tuned
from .selection import Row

SEED = 2
"""Seed of the inputs."""


def tuned_row(row: Row, budget: float, device: str = "cuda") -> Tuned:
    """Tune a row, then time both schedules in the same rounds.

    Parameters
    ----------
    budget : float
        Seconds for ``fd.autotune``. What it finds is not stored.
    """
    fd = row.of.record(row.size, row.torch_dtype)
    inputs = row.of.inputs(row.size, row.torch_dtype, device, SEED)
    try:
        report = fd.autotune(inputs, budget, progress=False, store=False)
        plans = {
            "heuristic": fd.plan(inputs, schedule=report.trials[0].schedule),
            TUNED: fd.plan(inputs, schedule=report.schedule),
        }
        runs = {name: partial(plan, inputs) for name, plan in plans.items()}
        for run in runs.values():
            run()
        times = interleaved(runs, device)
    finally:
        inputs.clear()
        free(device)
    changes = {trial.schedule: trial.change for trial in reversed(report.trials)}
    return Tuned(
        heuristic=times["heuristic"],
        tuned=times[TUNED],
        change=changes[report.schedule],
        trials=len(report.trials),
    )


def with_tuned(
    results: Results,
    rows: Sequence[Row],
    budget: float,
    stop: float = float("inf"),
    *,
    keep: Callable[[Results], None] = forget,
    device: str = "cuda",
) -> Results:
    """The results with the times of tuned schedules.

    Parameters
    ----------
    rows : sequence of Row
        Those of the records, in their order.
    budget : float
        Seconds for each row.
    stop : float
        Seconds after which no more rows are begun.
    keep : callable, optional
        Called with the results so far after each row.
    """
    begun = time.monotonic()
    progress = Progress(len(rows), "row")
    records = list(results.records)
    for place, row in enumerate(rows):
        if time.monotonic() - begun > stop:
            progress.say(f"{row.name} and what comes behind it are not tuned, out of time")
            break
        progress.show(place, row.name)
        records[place] = _with_tuned(records[place], row, budget, device)
        keep(Results(results.runs, tuple(records)))
    return Results(results.runs, tuple(records))


def _with_tuned(record: Record, row: Row, budget: float, device: str) -> Record:
    try:
        return replace(record, tuned=tuned_row(row, budget, device))
    except Exception as error:
        first = f"{type(error).__name__}: {error}".splitlines()[0]
        return replace(record, failures={**record.failures, TUNED: first})
