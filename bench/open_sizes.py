"""``python -m bench.open_sizes``: kernels with open sizes against kernels of one size.

Random definitions are run at sizes over a range of 1,000x, as a program whose shapes vary would.
What serves each size when it is new, and what serves it when it has run often, are timed against
kernels that are compiled for the size alone. With ``--compile`` kernels are compiled alone, for
sm_90, and what they compile to is compared.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tritonfuser import BoundPlan, FusionDefinition
from tritonfuser.cache.hot_sizes import FIRST_CALLS

from .lengths import option, static_sizes
from .measure.timing import free, interleaved
from .open_compiled import Compared, as_data, compared, report
from .options import add_commit
from .processes.jobs import JobContext, Outcome
from .processes.workers import PROCESSES, Limits, run_jobs
from .schedules.problems import DTYPES, FAMILIES, Problem
from .tables.files import save_json
from .tables.formatting import table
from .tables.provenance import described

RANGE = 1000
"""The longest size over the shortest."""

BYTES = 1 << 28
"""Bytes of the largest tensor, at most."""

FIRST = (40, 72)
"""Sizes of the first two signatures, which are compiled for themselves."""

BAR = 1.1
"""Target: time of open sizes over that of one size, at most."""

OFTEN = FIRST_CALLS + 4
"""Calls of a size until it has kernels of its own, where compiling is said to cost nothing: those
before the first look, and the looks."""

_SIZES_IN_DEFINITION = ("dropout",)
"""Families whose definitions contain the sizes, so that one definition has one size."""


@dataclass(frozen=True)
class Point:
    """One size of a definition.

    Attributes
    ----------
    name, varies, dtype, rows, columns
        The definition, and the size.
    is_open : bool
        Whether kernels with open sizes serve the size when it is new.
    is_open_often : bool
        Whether they do when it has run often.
    open_s, often_s, static_s : float
        Seconds when it is new, when it has run often, and of kernels for that size.
    """

    name: str
    varies: str
    dtype: str
    rows: int
    columns: int
    is_open: bool
    is_open_often: bool
    open_s: float
    often_s: float
    static_s: float

    @property
    def ratio(self) -> float:
        return self.open_s / self.static_s

    @property
    def often(self) -> float:
        return self.often_s / self.static_s


@dataclass(frozen=True)
class Plans:
    """What serves one size when it is new, when it has run often, and kernels for it alone."""

    new: BoundPlan
    often: BoundPlan
    static: BoundPlan


@dataclass
class Varying:
    """One definition at several sizes.

    Attributes
    ----------
    problem : Problem
        The definition.
    varies : str
        "rows", "columns" or "both".
    sizes : list of tuple of int
        Rows and columns, in the order of the calls.
    device : str
        Where it is run.
    plans : list of Plans
        For each size.
    """

    problem: Problem
    varies: str
    sizes: list[tuple[int, int]]
    device: str = "cuda"
    plans: list[Plans] = field(default_factory=list)

    @property
    def first(self) -> list[tuple[int, int]]:
        """Rows and columns of the first signatures."""
        rows, columns = self.sizes[0]
        return [
            (
                rows if self.varies == "columns" else size,
                columns if self.varies == "rows" else size + 1,
            )
            for size in FIRST
        ]

    def prepare(self, context: JobContext) -> None:
        """Compile what is run at each size."""
        # One kind for all sizes at a time: other settings drop the variants of a definition.
        new = self._served(context, 1)
        with option("TRITONFUSER_HOT_SIZES", "1e-9"):
            often = self._served(context, OFTEN)
        with static_sizes():
            static = []
            for size in self.sizes[: len(often)]:
                static.append(self._plan(self._definition(), *size))
        self.plans = [Plans(*found) for found in zip(new, often, static, strict=False)]

    def _served(self, context: JobContext, calls: int) -> list[BoundPlan]:
        """What serves each size in the last of so many calls of it; fewer where it is late."""
        fd = self._definition()
        for size in self.first:
            self._plan(fd, *size)
        found = []
        for size in self.sizes:
            if not context.is_late:
                found.append(self._plan(fd, *size, calls))
        return found

    def _definition(self) -> FusionDefinition:
        return self.problem.definition(open_sizes=True)[0]

    def _plan(self, fd: FusionDefinition, rows: int, columns: int, calls: int = 1) -> BoundPlan:
        inputs = self._at(rows, columns).tensors(self.device)
        for _ in range(calls):
            plan = fd.plan(inputs)
        del inputs
        free(self.device)
        return plan

    def _at(self, rows: int, columns: int) -> Problem:
        return replace(self.problem, rows=rows, columns=columns)

    def measure(self) -> list[Point]:
        """Time the plans of each size."""
        found = []
        for (rows, columns), plans in zip(self.sizes, self.plans, strict=False):
            inputs = self._at(rows, columns).tensors(self.device)
            kinds = {"new": plans.new, "often": plans.often, "static": plans.static}
            times = interleaved({k: partial(p, inputs) for k, p in kinds.items()}, self.device)
            seconds = [times[kind].median for kind in kinds]
            about = self.problem.name, self.varies, self.problem.dtype, rows, columns
            found.append(Point(*about, is_open(plans.new), is_open(plans.often), *seconds))
            del inputs
            free(self.device)
        return found


def is_open(plan: BoundPlan) -> bool:
    """Whether sizes are arguments of its kernels."""
    return any(step.source is not None and step.source.sizes for step in plan.steps)


def random_jobs(count: int, sizes: int, seed: int) -> list[Varying]:
    """As many definitions of each family as of the others."""
    names = [name for name in FAMILIES if name not in _SIZES_IN_DEFINITION]
    return [_job(names[n % len(names)], n // len(names), sizes, seed) for n in range(count)]


def _job(family: str, number: int, count: int, seed: int) -> Varying:
    name = f"{family}/{seed}.{number}"
    rng = random.Random(f"open sizes of {name}")
    dtype = rng.choice(list(DTYPES))
    varies = rng.choice(("rows", "columns", "both"))
    problem = Problem(name, dtype, 0, 0)
    return Varying(problem, varies, [_size(rng, varies, dtype) for _ in range(count)])


def _size(rng: random.Random, varies: str, dtype: str) -> tuple[int, int]:
    """Rows and columns, log-uniform; those that do not vary are 1024."""
    multiple = rng.choice((1, 1, 8, 64))
    longest = BYTES // getattr(torch, dtype).itemsize // 1024
    most = (longest * 1024) ** 0.5 if varies == "both" else longest

    def drawn(is_drawn: bool) -> int:
        span = RANGE**0.5 if varies == "both" else RANGE
        size = int(most / span * span ** rng.random())
        return max(size // multiple * multiple, multiple) if is_drawn else 1024

    return drawn(varies != "columns"), drawn(varies != "rows")


def summary(points: Sequence[Point], shown: int = 12) -> str:
    """Quantiles of the ratios, and the largest ones of sizes that are new."""
    worst = sorted(points, key=lambda point: -point.ratio)[:shown]
    rows = [
        {
            "definition": point.name,
            "varies": point.varies,
            "dtype": point.dtype,
            "rows": point.rows,
            "columns": point.columns,
            "new us": f"{point.open_s * 1e6:.1f}",
            "often us": f"{point.often_s * 1e6:.1f}",
            "static us": f"{point.static_s * 1e6:.1f}",
            "new/static": f"{point.ratio:.2f}",
            "often/static": f"{point.often:.2f}",
        }
        for point in worst
    ]
    new = _quantiles([point.ratio for point in points])
    often = _quantiles([point.often for point in points])
    return (
        f"{table(rows)}\n\n{len(points)} sizes\n"
        f"new: {sum(p.is_open for p in points)} of them with open sizes: {new}\n"
        f"run often: {sum(p.is_open_often for p in points)} of them with open sizes: {often}"
    )


def _quantiles(ratios: Sequence[float]) -> str:
    over = sum(ratio > BAR for ratio in ratios)
    return f"median {statistics.median(ratios):.3f}, {over} above {BAR}, most {max(ratios):.2f}"


def _compare_code(jobs: Sequence[Varying], chosen: argparse.Namespace) -> None:
    """Print what kernels compile to; write it to the file that was asked for."""
    found: list[Compared] = []
    for job in jobs:
        for rows, columns in job.sizes:
            found += compared(replace(job.problem, rows=rows, columns=columns), job.first)
    print(report(found, BAR))
    if chosen.json is not None:
        save_json(chosen.json, {**described(chosen.commit), "kernels": as_data(found)})


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.open_sizes", description=__doc__)
    parser.add_argument("--definitions", type=int, default=27)
    parser.add_argument("--sizes", type=int, default=8, help="sizes of a definition")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--prepare", type=float, default=400.0, help="seconds to compile for")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds for everything")
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    parser.add_argument("--compile", action="store_true", help="compare code, without a GPU")
    add_commit(parser)
    chosen = parser.parse_args(arguments)
    jobs = random_jobs(chosen.definitions, chosen.sizes, chosen.seed)
    if chosen.compile:
        _compare_code(jobs, chosen)
        return

    def keep(known: Mapping[int, Outcome]) -> None:
        points = [p for place in sorted(known) for p in known[place].result or ()]
        if chosen.json is not None:
            found: Any = {**described(chosen.commit), "points": [asdict(p) for p in points]}
            save_json(chosen.json, found)

    limits = Limits(chosen.prepare, chosen.limit)
    outcomes = run_jobs(jobs, chosen.processes, limits, keep=keep)
    keep(dict(enumerate(outcomes)))
    for job, outcome in zip(jobs, outcomes, strict=True):
        if outcome.error is not None:
            print(f"{job.problem.name}: {outcome.error}")
    points = [point for outcome in outcomes for point in outcome.result or ()]
    if points:
        print(summary(points))


if __name__ == "__main__":
    main()
