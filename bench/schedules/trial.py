"""One problem under many schedules: compiled in ``prepare``, timed together in ``measure``."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from tritonfuser import BoundPlan, FusionDefinition, Schedule
from tritonfuser.cache.kernels import compiled
from tritonfuser.device import of
from tritonfuser.errors import TritonFuserError
from tritonfuser.frontend.tune.candidates import candidates
from tritonfuser.heuristics.plain_data.codec import encode

from ..measure.timing import free, interleaved
from ..processes.jobs import JobContext
from .problems import Problem

TRIES = 6
"""Schedules drawn for each candidate that is wanted: some are not legal, some do not compile."""

TOLERANCE = 0.05
"""Largest difference from the results of the heuristics' schedule, relative to their magnitude."""


@dataclass
class Trial:
    """The heuristics' schedule of a problem, and random others.

    Attributes
    ----------
    problem : Problem
        What is run.
    count : int
        Schedules to try beside that of the heuristics.
    seed : int
        Of the random schedules.
    """

    problem: Problem
    count: int
    seed: int = 0
    plans: list[Any] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    facts: list[Any] = field(default_factory=list)

    def prepare(self, context: JobContext) -> None:
        """Compile the kernels of all schedules."""
        fd, _ = self.problem.definition()
        inputs = self.problem.tensors("cuda")
        found = fd.segments(inputs)
        self.facts = [_facts(piece) for piece in found.segments]
        self._add(fd, inputs, fd.schedule(inputs))
        rng = random.Random(f"{self.problem.name} {self.seed}")
        drawn = candidates(found, rng)
        seen: set[str] = set()
        for _ in range(TRIES * self.count):
            if len(self.plans) > self.count or context.is_late:
                break
            schedule = next(drawn)
            if str(schedule) not in seen:
                seen.add(str(schedule))
                self._add(fd, inputs, schedule)
        del inputs
        free("cuda")

    def _add(self, fd: FusionDefinition, inputs: list[torch.Tensor], schedule: Schedule) -> None:
        """Compile a schedule, if that can be."""
        try:
            plan = fd.plan(inputs, schedule=schedule)
            segments = fd.segments(inputs, schedule=schedule).segments
        except (TritonFuserError, RuntimeError):
            return
        self.plans.append(plan)
        self.rows.append(
            {
                "schedule": schedule.to_dict(),
                "facts": [_facts(piece) for piece in segments],
                "bytes": [piece.bytes_read + piece.bytes_written for piece in segments],
                "registers": _registers(plan),
            }
        )

    def measure(self) -> dict[str, Any]:
        """Time all of them, interleaved, with a cold L2 cache."""
        inputs = self.problem.tensors("cuda")
        expected = self.plans[0](inputs)
        right = [self._is_right(plan(inputs), expected) for plan in self.plans]
        runs = {str(n): partial(p, inputs) for n, p in enumerate(self.plans) if right[n]}
        times = interleaved(runs, "cuda")
        for n, row in enumerate(self.rows):
            row["seconds"] = times[str(n)].median if right[n] else None
        del inputs, expected
        free("cuda")
        problem = {"name": self.problem.name, "dtype": self.problem.dtype}
        sizes = {"rows": self.problem.rows, "columns": self.problem.columns}
        return {**problem, **sizes, "candidates": self.rows}

    def _is_right(self, found: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
        """Whether results are about those of the heuristics' schedule; random numbers are alike."""
        if self.problem.family == "dropout":
            return True
        pairs = zip(found, expected, strict=True)
        return all(_deviation(a.float(), b.float()) <= TOLERANCE for a, b in pairs)


def _deviation(a: torch.Tensor, b: torch.Tensor) -> float:
    finite = b.isfinite()
    if not bool(finite.any()):
        return 0.0
    scale = float(b[finite].abs().max()) or 1.0
    return float((a - b)[finite].abs().max()) / scale


def _registers(plan: BoundPlan) -> list[tuple[int, int] | None]:
    """Registers of a thread and spilled bytes of each kernel. None for what torch runs."""
    arch = of(plan.device).arch
    found: list[tuple[int, int] | None] = []
    for step in plan.steps:
        if step.source is None:
            found.append(None)
            continue
        launcher = compiled(step.source, arch, step.aligned).launcher(plan.device.index or 0)
        found.append((launcher.registers, launcher.spills))
    return found


def _facts(piece: Any) -> Any:
    """The problem that a scheduler decided by, without the device."""
    if piece.problem is None:
        return None
    return encode(replace(piece.problem, device=None))
