"""One problem under many schedules: compiled in ``prepare``, timed together in ``measure``."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

import torch

from tritonfuser import BoundPlan, FusionDefinition, Schedule
from tritonfuser.cache.kernels import compiled
from tritonfuser.devices import of
from tritonfuser.errors import TritonFuserError
from tritonfuser.frontend.tune.candidates import Proposals, candidates
from tritonfuser.heuristics.plain_data.codec import encode
from tritonfuser.lowering.cost import segment_element_work, segment_time
from tritonfuser.lowering.segments.segment import Segment
from tritonfuser.lowering.segments.segmented_fusion import SegmentedFusion

from ..measure.kernel_times import single_kernel_times, warm_up
from ..measure.timing import free
from ..processes.jobs import JobContext
from .graphs import GraphProblem
from .problems import Problem

TRIES = 6
"""Schedules drawn for each candidate that is wanted: some are not legal, some do not compile."""

TOLERANCE = 0.05
"""Largest difference from the results of the heuristics' schedule, relative to their magnitude."""

NEAR = 0.5
"""Share of candidates near the heuristics' schedule; the others are drawn from all that is legal.
What the cost model has to tell apart are candidates that are nearly as good."""

SLOWEST = 3.0
"""Times the heuristics' schedule that another one may be predicted to take. None that is chosen by
the model or by a tuner is so slow, and the slowest compile for minutes: tiles of all registers."""

WIDEST = 1.3
"""Times the registers of a thread that a kernel may be predicted to want, for the same reason."""

_Value = TypeVar("_Value")

_SEGMENT = re.compile(r"s(\d+)_(?!.*_and_s\d)")
"""Names of kernels that compute one segment."""


@dataclass
class Trial:
    """The heuristics' schedule of a problem, and random others.

    Attributes
    ----------
    problem : Problem or GraphProblem
        What is run.
    count : int
        Schedules to try beside that of the heuristics.
    seed : int
        Of the random schedules.
    """

    problem: Problem | GraphProblem
    count: int
    seed: int = 0
    plans: list[Any] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def prepare(self, context: JobContext) -> None:
        """Compile the kernels of all schedules."""
        fd = self.problem.recorded()
        inputs = self.problem.tensors("cuda")
        found = fd.segments(inputs)
        longest = SLOWEST * _predicted(found)
        self._add(fd, inputs, fd.schedule(inputs))
        drawn = _drawn(found, random.Random(f"{self.problem.name} {self.seed}"))
        seen: set[str] = set()
        for _ in range(TRIES * self.count):
            if len(self.plans) > self.count or context.is_late:
                break
            schedule = next(drawn)
            if str(schedule) not in seen:
                seen.add(str(schedule))
                self._add(fd, inputs, schedule, longest)
        warm_up()
        del inputs
        free("cuda")

    def _add(
        self,
        fd: FusionDefinition,
        inputs: list[Any],
        schedule: Schedule,
        longest: float = math.inf,
    ) -> None:
        """Compile a schedule, if that can be, and is predicted to take ``longest`` seconds."""
        try:
            found = fd.segments(inputs, schedule=schedule)
            if _predicted(found) > longest:
                return
            plan = fd.plan(inputs, schedule=schedule)
            registers = _by_segment(_resources(plan), len(found.segments))
        except (TritonFuserError, RuntimeError):
            return
        self.plans.append(plan)
        self.rows.append(
            {
                "schedule": schedule.to_dict(),
                "facts": [_facts(piece) for piece in found.segments],
                "works": [encode(segment_element_work(piece)) for piece in found.segments],
                "registers": registers,
            }
        )

    def measure(self) -> dict[str, Any]:
        """Time the kernels of all of them, in turns, with a cold L2 cache."""
        expected = self.plans[0](self.problem.tensors("cuda"))
        right = [n for n, plan in enumerate(self.plans) if self._is_right(plan, expected)]
        del expected
        inputs = self.problem.tensors("cuda")
        times = single_kernel_times([partial(self.plans[n], inputs) for n in right])
        for row in self.rows:
            row["seconds"], row["kernels"] = None, []
        for n, kernels in zip(right, times, strict=True):
            count = len(self.rows[n]["facts"])
            self.rows[n]["seconds"] = sum(seconds for _, seconds in kernels)
            self.rows[n]["kernels"] = _by_segment(kernels, count)
        del inputs
        free("cuda")
        return {"name": self.problem.name, "candidates": self.rows}

    def _is_right(self, plan: BoundPlan, expected: list[torch.Tensor]) -> bool:
        """Whether results are about those of the heuristics' schedule; random numbers are alike."""
        found = plan(self.problem.tensors("cuda"))
        if self.problem.is_random:
            return True
        pairs = zip(found, expected, strict=True)
        return all(_deviation(a.float(), b.float()) <= TOLERANCE for a, b in pairs)


def _drawn(found: SegmentedFusion, rng: random.Random) -> Iterator[Schedule]:
    """Random schedules, a part of them near the one that was chosen."""
    anywhere, near = candidates(found, rng), Proposals(found, rng, wide=True)
    while True:
        yield next(near) if rng.random() < NEAR else next(anywhere)


def _predicted(found: SegmentedFusion) -> float:
    """Seconds by the cost model; infinite where a kernel wants many more registers than it has."""
    times = [time for piece in found.segments if (time := segment_time(piece)) is not None]
    if any(time.registers > WIDEST * time.register_limit for time in times):
        return math.inf
    return sum(float(time.seconds) for time in times)


def _by_segment(kernels: Sequence[tuple[str, _Value]], count: int) -> list[_Value | None]:
    """What is known of each segment's kernel; None where it shares a launch, or torch runs it."""
    found: list[_Value | None] = [None] * count
    for name, value in kernels:
        if match := _SEGMENT.match(name):
            found[int(match[1])] = value
    return found


def _deviation(a: torch.Tensor, b: torch.Tensor) -> float:
    finite = b.isfinite() & a.isfinite()
    if not bool(finite.any()):
        return 0.0
    scale = float(b[finite].abs().max()) or 1.0
    return float((a - b)[finite].abs().max()) / scale


def _resources(plan: BoundPlan) -> list[tuple[str, tuple[int, int]]]:
    """Name of each kernel, with registers of a thread and spilled words."""
    arch = of(plan.device).arch
    found = []
    for step in plan.steps:
        if step.source is not None:
            kernel = compiled(step.source, arch, step.aligned)
            launcher = kernel.launcher(plan.device.index or 0)
            found.append((step.name, (launcher.registers, launcher.spills)))
    return found


def _facts(piece: Segment) -> Any:
    """The problem that a scheduler decided by, without the device."""
    if piece.problem is None:
        return None
    names = [row.name for row in fields(piece.problem) if row.name != "device"]
    return encode({name: getattr(piece.problem, name) for name in names})
