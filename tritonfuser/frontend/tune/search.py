"""The search: proposals are prepared in parallel, timed together, and the best are timed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ...heuristics.schedule import Schedule
from .candidates import joined, kernels_of
from .finals import GAIN, decided
from .interfaces import Measurer, Prepare, PreparedSchedule, Proposer
from .prepare_queue import PrepareQueue
from .report import Trial, difference

ROUNDS = 5
"""Interleaved rounds of a first comparison."""

STARTED = 0.5
"""Share of the budget that there is at least once the measurer is ready, however late that is."""

RESERVED = 0.12
"""Share of the budget that is left for the last rounds."""

POLL_SECONDS = 0.02
"""Seconds to wait for a compiled candidate, or for the measurer, before looking at the other."""

BATCH = 8
"""Most schedules that are timed together."""

TOGETHER = (2, 3)
"""So many of the fastest schedules are tried as one."""

AHEAD, AHEAD_AT_FIRST = 2, 8
"""Schedules that are prepared ahead of their timing, for each thread: few, so that they are near
the best one, and more until the measurer is ready, which takes seconds in a new process."""

FRUITLESS = 400
"""Proposals in a row that were all tried before, after which a space counts as exhausted."""


@dataclass
class Search:
    """One search.

    Attributes
    ----------
    prepare : callable
        Compiles a schedule.
    measurer : Measurer
        Times schedules.
    proposals : Proposer
        What to try.
    budget : float
        Seconds that ``run`` may take.
    threads : int
        Threads that compile.
    clock : callable
        Seconds now.
    tell : callable
        Is given the trials after each step.
    trials : list of Trial
        The schedules that were timed or failed, in order.
    interrupted : bool
        Whether the user ended it before its budget was spent.
    """

    prepare: Prepare
    measurer: Measurer
    proposals: Proposer
    budget: float
    threads: int
    clock: Callable[[], float] = time.monotonic
    tell: Callable[[Sequence[Trial]], object] = lambda trials: None
    trials: list[Trial] = field(default_factory=list)
    interrupted: bool = False
    _first: list[Schedule] = field(default_factory=list)
    _later: list[Schedule] = field(default_factory=list)
    _known: set[Schedule] = field(default_factory=set)
    _kernels: set[tuple[object, ...]] = field(default_factory=set)
    _best: int = 0
    _exhausted: bool = False
    _took: float = 0.0

    def run(self, first: PreparedSchedule, others: Iterable[Schedule] = ()) -> int:
        """Search until the budget is spent; the number of the best trial.

        Parameters
        ----------
        first : PreparedSchedule
            The heuristics' schedule. It is the best one where no other is faster by ``GAIN``.
        others : iterable of Schedule
            What to try before anything else. It may take time to find them.
        """
        end = self.clock() + self.budget
        self._known.add(first.schedule)
        self._kernels.add(first.kernels)
        self.trials.append(Trial(first.schedule))
        pool = ThreadPoolExecutor(self.threads, "tritonfuser autotune")
        with self._until_interrupted():
            try:
                self._first.extend(others)
                self._explore(PrepareQueue(self.prepare, pool), end - RESERVED * self.budget)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        best = decided(self.trials, self.measurer)
        self.tell(self.trials)
        return best

    @contextmanager
    def _until_interrupted(self) -> Iterator[None]:
        """Ctrl-C ends the search and keeps what was found."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    # --- exploring -------------------------------------------------------------------------

    def _explore(self, queue: PrepareQueue, end: float) -> None:
        ready: list[PreparedSchedule] = []
        is_ready = False
        while end > self.clock() or not is_ready:
            self._ask(queue, len(ready), AHEAD if is_ready else AHEAD_AT_FIRST)
            if not queue and not ready:
                return
            # While schedules wait to be timed nothing else is waited for.
            for schedule, made in queue.finished(0.0 if ready else POLL_SECONDS):
                self._sort(schedule, made, ready)
            if not is_ready and self.measurer.is_ready(POLL_SECONDS):
                is_ready = True
                self._compare([])
                end = max(end, self.clock() + STARTED * self.budget)
            if ready and is_ready:
                left = end - self.clock()
                if left < self._took:
                    return
                if self._compare_some(ready, left):
                    # These are near a schedule that is not the best any more. They are tried once
                    # nothing else is proposed.
                    self._later.extend(queue.cancelled())
            self.tell(self.trials)

    def _ask(self, queue: PrepareQueue, ready: int, ahead: int) -> None:
        """Ask for schedules until ``ahead`` for each thread are prepared or ready to be timed."""
        while len(queue) + ready < ahead * self.threads + BATCH:
            schedule = self._next()
            if schedule is None:
                return
            queue.ask(schedule)

    def _compare_some(self, ready: list[PreparedSchedule], left: float) -> bool:
        """Time as many as there is time for, the first ones; whether one of them is the best."""
        count = min(BATCH, len(ready), int(left / self._took) if self._took else 1)
        batch, begun = ready[:count], self.clock()
        del ready[:count]
        is_better = self._compare(batch)
        # One takes about as long as others did, or there is no time for it.
        took = (self.clock() - begun) / count
        self._took = min(self._took, took) if self._took else took
        return is_better

    def _next(self) -> Schedule | None:
        """A schedule that is new; None where there seems to be no other."""
        if not self._exhausted or self._first:
            for _ in range(FRUITLESS):
                schedule = self._first.pop(0) if self._first else next(self.proposals)
                if schedule not in self._known:
                    self._known.add(schedule)
                    return schedule
            self._exhausted = True
        return self._later.pop(0) if self._later else None

    def _sort(
        self, schedule: Schedule, made: PreparedSchedule | str, ready: list[PreparedSchedule]
    ) -> None:
        """Note why a schedule cannot run, or add it to those to be timed if its kernels are new."""
        if isinstance(made, str):
            self._note(Trial(schedule, failure=made))
        elif made.kernels not in self._kernels:
            self._kernels.add(made.kernels)
            ready.append(made)

    def _note(self, trial: Trial) -> None:
        change = difference(trial.schedule, self.trials[0].schedule)
        self.trials.append(replace(trial, change=change))

    def _compare(self, batch: Sequence[PreparedSchedule]) -> bool:
        """Time some schedules together with the best one; whether one of them is the best now.

        None at first: a process that measures begins slowly, which says nothing of the others.
        """
        best = self.trials[self._best]
        found = self.measurer.measure([best.schedule, *(one.schedule for one in batch)], ROUNDS)
        now = found[0]
        if isinstance(now, str):
            # The best one so far fails now: it is tried no more.
            self.trials[self._best] = replace(best, failure=now)
            self._best = 0
            return False
        before = self._best
        self.trials[before] = replace(best, seconds=now)
        for one, seconds in zip(batch, found[1:], strict=True):
            if isinstance(seconds, str):
                self._note(Trial(one.schedule, failure=seconds))
                continue
            self._note(Trial(one.schedule, seconds=seconds))
            if seconds < now:
                now, self._best = seconds, len(self.trials) - 1
                self.proposals.move_to(one.segmented)
        self._first.extend(self._joined())
        return self._best != before

    def _joined(self) -> Iterator[Schedule]:
        """What the fastest ones changed, as one schedule: kernels gain side by side, fields often.
        Those of other kernels than the best one are left out.

        Where they change the same field, the fastest one decides.
        """
        kernels = kernels_of(self.trials[self._best].schedule)
        first, *others = (t for t in self.trials if kernels_of(t.schedule) == kernels)
        enough = GAIN * (first.seconds or 0.0)
        timed = (t for t in others if t.seconds is not None and not t.failure)
        better = [trial for trial in timed if (trial.seconds or 0.0) < enough]
        fastest = sorted(better, key=lambda trial: trial.seconds or 0.0)[: max(TOGETHER)]
        for count in TOGETHER:
            if count <= len(fastest):
                slowest_first = [trial.schedule for trial in reversed(fastest[:count])]
                yield joined(first.schedule, slowest_first)
