"""One tuning run: the heuristics' schedule, a search from it, a report."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ... import devices
from ...cache.kernels import usable_threads
from ...errors import LoweringError
from ...heuristics.schedule import Schedule
from ...ir import Fusion
from .candidates import Proposals
from .child_process import ChildProcess, shared_child
from .compile_pool import CompilePool, shared_pool
from .compiling import Compiler
from .interfaces import Measurer
from .prediction import Prediction, Ranked
from .progress import progress
from .report import TuneReport
from .search import Search

MOST_THREADS = 8
"""Threads that compile where no processes do, at most: a part of each compilation holds Python's
lock. H200, 16 cores, ten cases of 5 s: 2, 4, 8 and 16 threads have 27, 32, 35 and 21 schedules
timed at the median."""

SHARE_OF_CUTS = 0.2
"""Share of the budget in which other ways to cut the definition into kernels are looked for."""

MOST_CUTS = 12
"""Most of these that are timed before other schedules: those that are predicted to be fastest."""

WAITING = 2
"""Schedules that are lowered while all processes compile."""


@dataclass(frozen=True)
class Task:
    """What to tune.

    Attributes
    ----------
    fusion : Fusion
        As recorded.
    definition : dict
        The same as plain data.
    inputs : sequence
        Flat.
    device : torch.device
        Where it runs.
    budget : float
        Seconds.
    wide : bool
        Whether other schedulers, and other parts of split reductions, are tried too.
    known : tuple of Schedule
        What to try first.
    seed : int
        Of the order in which candidates are tried.
    shown : bool
        Whether to show a progress bar.
    """

    fusion: Fusion
    definition: Mapping[str, Any]
    inputs: Sequence[Any]
    device: torch.device
    budget: float
    wide: bool = False
    known: tuple[Schedule, ...] = ()
    seed: int = 0
    shown: bool = True

    @property
    def target(self) -> torch.device | None:
        """The device to compile for, where no tensor among the inputs says so."""
        takes_tensors = any(value.is_tensor for value in self.fusion.inputs)
        return None if takes_tensors else self.device


def autotune(task: Task) -> TuneReport:
    """Tune on the GPU that the inputs are on."""
    torch.cuda.synchronize(task.device)
    with shared_child() as child:
        try:
            return tuned(task, child)
        finally:
            child.close()


def tuned(task: Task, measurer: ChildProcess | Measurer) -> TuneReport:
    """Tune with given times.

    Raises
    ------
    LoweringError
        The heuristics' schedule does not run.
    """
    begun = time.monotonic()
    compiler = Compiler(task.fusion, task.inputs, task.target)
    heuristics = compiler.heuristics()
    pool: CompilePool | None = None
    if isinstance(measurer, ChildProcess):
        measurer.open(dict(task.definition), task.inputs, str(task.device), heuristics)
        pool = _started_pool(task.device)
    first = compiler.prepared(heuristics)
    drawn = Proposals(first.segmented, random.Random(task.seed), task.wide)
    with progress(task.budget, task.shown) as bar:
        search = Search(
            prepare=Compiler(task.fusion, task.inputs, task.target, pool),
            measurer=measurer,
            proposals=Ranked(drawn, Prediction(first.segmented, compiler.segmented)),
            budget=task.budget - (time.monotonic() - begun),
            threads=min(usable_threads(), MOST_THREADS) if pool is None else pool.count + WAITING,
            tell=bar,
        )
        try:
            best = search.run(first, _tried_first(task, compiler))
        finally:
            if pool is not None:
                pool.forget()
    return _report(task, search, best, time.monotonic() - begun)


def _tried_first(task: Task, compiler: Compiler) -> Iterator[Schedule]:
    """What is known of other runs, and other ways to cut the definition into kernels."""
    yield from task.known
    if task.wide:
        end = time.monotonic() + SHARE_OF_CUTS * task.budget
        yield from compiler.cuts(lambda: time.monotonic() < end)[:MOST_CUTS]


def _report(task: Task, search: Search, best: int, spent: float) -> TuneReport:
    """The report of a search that took ``spent`` seconds.

    Raises
    ------
    LoweringError
        The heuristics' schedule, or the best one, has no time.
    """
    base, found = search.trials[0], search.trials[best]
    if base.seconds is None or found.seconds is None:
        raise LoweringError(f"the heuristics' schedule could not be timed: {base.failure}")
    return TuneReport(
        schedule=found.schedule,
        heuristic_seconds=base.seconds,
        seconds=found.seconds,
        trials=tuple(search.trials),
        device=devices.of(task.device).name,
        spent_seconds=spent,
        interrupted=search.interrupted,
    )


def _started_pool(device: torch.device) -> CompilePool | None:
    """The processes that compile for a GPU, if there can be any."""
    pool = shared_pool()
    if device.type != "cuda":
        return None
    pool.start()
    return pool if pool.works else None
