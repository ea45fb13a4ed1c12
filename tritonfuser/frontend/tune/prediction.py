"""Ranks schedules by the cost model: what is tried first, or everything without a GPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from ...cache.dry_run import alternatives_for, lower_for
from ...errors import LoweringError, TritonFuserError
from ...heuristics.schedule import Schedule, SegmentSchedule
from ...ir import Fusion
from ...lowering.cost import (
    kernel_predictors,
    launch_seconds,
    segment_time,
    slowdown_in_last_programs,
)
from ...lowering.run_options import RunOptions
from ...lowering.schedules import schedule_of
from ...lowering.segments.segmented_fusion import SegmentedFusion
from .candidates import Proposals
from .interfaces import Proposer
from .report import Trial, TuneReport, difference

POOL = 16
"""Proposals of which the one that is predicted to be fastest is tried next. Of 45 random schedules
of a problem, and the heuristics' own, the best of four chosen by the model was the fastest of all
at the median (problems that the model was not fitted to, H200)."""

REPEATS = 64
"""Proposals in a row that are known, after which those at hand are taken."""


class Prediction:
    """The time of any schedule of one definition, by the model.

    Parameters
    ----------
    base : SegmentedFusion
        A schedule as lowered. What only has other params needs no lowering.
    lowered : callable
        Lowers another schedule.
    """

    def __init__(
        self, base: SegmentedFusion, lowered: Callable[[Schedule], SegmentedFusion]
    ) -> None:
        self._lowered = lowered
        self._known: dict[Schedule, float] = {}
        self._bases: dict[Any, _Kernels | None] = {}
        self._bases[_without_params(schedule_of(base))] = _Kernels(base)

    def __call__(self, schedule: Schedule) -> float:
        """Seconds. Infinite where it cannot be, and for the interpreter."""
        if schedule not in self._known:
            self._known[schedule] = self._seconds(schedule)
        return self._known[schedule]

    def _seconds(self, schedule: Schedule) -> float:
        key = _without_params(schedule)
        if key not in self._bases:
            self._bases[key] = self._kernels_of(schedule)
        kernels = self._bases[key]
        return math.inf if kernels is None else kernels.seconds(schedule)

    def _kernels_of(self, schedule: Schedule) -> _Kernels | None:
        """The kernels of a schedule; None where it cannot be."""
        try:
            return _Kernels(self._lowered(schedule))
        except TritonFuserError:
            return None


class _Kernels:
    """The times of schedules that have the same kernels, but for their params."""

    def __init__(self, base: SegmentedFusion) -> None:
        self._kernels, self._launch = kernel_predictors(base), launch_seconds(base)
        self._slowdown = cache(partial(slowdown_in_last_programs, base.segments))

    def seconds(self, schedule: Schedule) -> float:
        """Seconds of a schedule."""
        return self._launch + sum(map(self._of_kernel, itertools.count(), schedule.segments))

    def _of_kernel(self, place: int, segment: SegmentSchedule) -> float:
        seconds = self._kernels[place](segment.params)
        return self._slowdown(place) * seconds if segment.finishes else seconds


def _without_params(schedule: Schedule) -> Any:
    """What decides which kernels there are."""
    segments = tuple((s.computes, s.stores, s.loads, s.co_reduced) for s in schedule.segments)
    return schedule.rewrites, segments


class Ranked:
    """Proposals, of ``POOL`` the one first that is predicted to be fastest.

    Parameters
    ----------
    proposals : Proposer
        What to try.
    prediction : callable
        Seconds of a schedule.
    """

    def __init__(self, proposals: Proposer, prediction: Callable[[Schedule], float]) -> None:
        self._proposals, self._prediction = proposals, prediction
        self._pool: list[Schedule] = []
        self._given: set[Schedule] = set()

    def move_to(self, best: SegmentedFusion) -> None:
        """From here on, schedules near this one."""
        self._proposals.move_to(best)

    def __next__(self) -> Schedule:
        found = next(self._proposals)
        for _ in range(REPEATS):
            if found not in self._given:
                self._given.add(found)
                self._pool.append(found)
            if len(self._pool) >= POOL:
                break
            found = next(self._proposals)
        if not self._pool:
            return found
        place = min(range(len(self._pool)), key=lambda n: self._prediction(self._pool[n]))
        return self._pool.pop(place)


# --- without a GPU -------------------------------------------------------------------------------

CUTS = 32
"""Ways to cut a definition into kernels that are looked at."""

PROPOSED = 512
"""Schedules that are predicted."""

KEPT = 32
"""Of these, those that are looked at: whether they can be run."""

GAIN = 0.9
"""Another schedule is given where it is predicted to take less than this share of the time of the
heuristics' one. Of 73 problems that the model was not fitted to, each with some 45 measured
schedules (H200), 8 had such a one whose registers suffice: 5 were 5% faster, none 5% slower. Of
smaller gains about as many were losses."""


def predicted(
    fusion: Fusion,
    inputs: Sequence[Any],
    arch: str,
    proposals: Callable[[Any], Proposals],
    wide: bool = False,
) -> TuneReport:
    """Rank schedules for a GPU that is not here.

    Parameters
    ----------
    proposals : callable
        Makes the proposals around the heuristics' schedule.
    wide : bool
        Whether the definition may be cut into other kernels.

    Raises
    ------
    LoweringError
        No kernel of the definition runs on a GPU.
    """

    def lowered(schedule: Schedule | None = None) -> SegmentedFusion:
        options = RunOptions(arch=arch, schedule=schedule)
        return lower_for(fusion, inputs, options)[0].segmented

    base = lowered()
    schedule, prediction = schedule_of(base), Prediction(base, lowered)
    seconds = prediction(schedule)
    if not math.isfinite(seconds):
        raise LoweringError(f"the cost model has no times for {arch}: it is of GPUs")
    drawn = proposals(base)
    others = dict.fromkeys(next(drawn) for _ in range(PROPOSED))
    other_cuts = _cuts(fusion, inputs, arch) if wide else {}
    for made in (others, other_cuts):
        made.pop(schedule, None)
    # Other cuts are reported whatever they rank: params of one cut differ by less.
    kept = dict.fromkeys(sorted(others, key=prediction)[:KEPT]) | other_cuts
    ranked = sorted(kept, key=prediction)
    trials = [Trial(schedule, seconds=seconds)]
    trials += [_trial(one, schedule, prediction, lowered) for one in ranked]
    best = next((t for t in trials[1:] if not t.failure), trials[0])
    assert best.seconds is not None
    chosen = best if best.seconds < GAIN * seconds else trials[0]
    return TuneReport(
        schedule=chosen.schedule,
        heuristic_seconds=seconds,
        seconds=chosen.seconds or seconds,
        trials=tuple(trials),
        device=arch,
        spent_seconds=0.0,
        predicted=True,
    )


def _cuts(fusion: Fusion, inputs: Sequence[Any], arch: str) -> dict[Schedule, None]:
    """Schedules that cut a definition into kernels in different ways, the fastest first."""
    tries, options = iter(range(CUTS)), RunOptions(arch=arch)
    found = alternatives_for(fusion, inputs, options, lambda: next(tries, None) is not None)
    return dict.fromkeys(map(schedule_of, found))


def _trial(
    schedule: Schedule,
    base: Schedule,
    prediction: Callable[[Schedule], float],
    lowered: Callable[[Schedule], SegmentedFusion],
) -> Trial:
    """What is predicted of a schedule, or why it cannot be."""
    found = Trial(schedule, change=difference(schedule, base), seconds=prediction(schedule))
    try:
        segmented = lowered(schedule)
    except TritonFuserError as error:
        return replace(found, seconds=None, failure=f"not legal: {error.message}")
    times = {segment.name: segment_time(segment) for segment in segmented.segments}
    short = [name for name, time in times.items() if time is not None and time.may_spill]
    why = f"registers may not suffice: {', '.join(short)}" if short else ""
    return replace(found, failure=why)
