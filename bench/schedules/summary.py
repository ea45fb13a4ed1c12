"""Times of schedules in, a table out: how far the heuristics are from the best that was drawn."""

from __future__ import annotations

import gzip
import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..tables.formatting import table

Problem = dict[str, Any]
"""A line of the file: a problem with its candidates, the heuristics' schedule first."""


def problems(path: Path) -> Iterator[Problem]:
    """The measured problems of a file, each with the device that the line before them names."""
    device = ""
    with gzip.open(path, "rt") as lines:
        for line in lines:
            found = json.loads(line)
            device = found.get("device", device)
            if "candidates" in found and found["candidates"][0]["seconds"] is not None:
                yield {**found, "device": device}


def regret(problem: Problem) -> float:
    """Time of the heuristics' schedule over that of the fastest one."""
    times = [c["seconds"] for c in problem["candidates"] if c["seconds"] is not None]
    return float(times[0] / min(times))


def summary(paths: Sequence[Path]) -> str:
    """A row for each family, and one for all: the median, the 90th percentile, the worst."""
    found: dict[str, list[float]] = {}
    for problem in (problem for path in paths for problem in problems(path)):
        family = problem["name"].split("/")[0]
        found.setdefault(family, []).append(regret(problem))
    found["all"] = [value for values in found.values() for value in values]
    return table(_row(family, values) for family, values in found.items())


def _row(family: str, values: list[float]) -> dict[str, str]:
    ninth = statistics.quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else 1.0
    figures = {"median": statistics.median(values), "90%": ninth, "worst": max(values)}
    shown = {name: f"{value:.2f}" for name, value in figures.items()}
    return {"family": family, "problems": str(len(values)), **shown}
