"""``python -m bench.smoothness --json FILE``: whether sizes that are alike take alike, on a GPU.

Random points of row and column ops at 8 MB to 1 GB, each with two partners within 2% in length and
of the same alignment: time per byte of a point against its partners', and time against
torch.compile's. What misses a figure is timed twice. Points that the file has already are not
measured again, so a run that ended early is continued by the same command.

``--predicted`` needs no GPU: predicted times take the place of measured ones.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..measure.timing import copy_bandwidth
from ..processes.jobs import Outcome
from ..processes.workers import PROCESSES, Limits, run_jobs
from ..tables.files import save_json
from ..tables.provenance import described
from .points import Point, random_points
from .predicted import predicted, predicted_report
from .report import report
from .results import Found
from .trial import Trial

BATCH = 50
"""Points that are compiled together, then timed."""
RESERVED = 0.55
"""Share of the time that is left for timing when compiling with torch ends."""


def main() -> None:
    """Parse the command line, measure, store, print."""
    options = _parse()
    points = random_points(options.points, options.seed)
    if options.list:
        print("\n".join(f"{point.name}, partners {point.sizes[1:]}" for point in points))
        return
    if options.predicted:
        print(predicted_report(predicted(points)))
        return
    known = read(options.json) if options.json and options.json.exists() else {}
    if not options.show:
        if not torch.cuda.is_available():
            raise SystemExit("python -m bench.smoothness: times kernels, which needs a CUDA device")
        measure(points, known, options)
    print(report([known[p.name] for p in points if p.name in known]))
    missing = sum(point.name not in known for point in points)
    if missing:
        print(f"\n{missing} of {len(points)} points are not measured yet: run it again")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.smoothness", description=__doc__)
    parser.add_argument("--points", type=int, default=100, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="of the points")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the results; go on with it")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds for everything")
    parser.add_argument("--jobs", type=int, default=PROCESSES, help="worker processes")
    parser.add_argument("--alone", action="store_true", help="leave torch.compile out")
    parser.add_argument("--list", action="store_true", help="print the points and exit")
    parser.add_argument("--predicted", action="store_true", help="predict times, without a GPU")
    parser.add_argument("--show", action="store_true", help="measure nothing: print the file")
    return parser.parse_args()


def measure(points: Sequence[Point], known: dict[str, Found], options: argparse.Namespace) -> None:
    """Measure the points that are not known, batch by batch, until time is up."""
    begun = time.monotonic()
    about = {**described(None), "bandwidth": copy_bandwidth(), "seed": options.seed}
    left = [point for point in points if point.name not in known]
    longest = 0.0
    for first in range(0, len(left), BATCH):
        batch = left[first : first + BATCH]
        seconds = options.limit - (time.monotonic() - begun)
        if seconds <= longest:
            return
        started = time.monotonic()
        jobs = [Trial(point, about["bandwidth"], not options.alone) for point in batch]

        def keep(outcomes: Mapping[int, Outcome], batch: Sequence[Point] = batch) -> None:
            known.update(_measured(batch, outcomes))
            if options.json:
                save_json(options.json, document(about, known))

        limits = Limits((1 - RESERVED) * seconds, seconds)
        outcomes = run_jobs(jobs, options.jobs, limits, keep=keep)
        keep(dict(enumerate(outcomes)))
        for point, outcome in zip(batch, outcomes, strict=True):
            if outcome.error is not None:
                print(f"{point.name}: {outcome.error}")
        longest = max(longest, time.monotonic() - started)


def _measured(batch: Sequence[Point], outcomes: Mapping[int, Outcome]) -> dict[str, Found]:
    """The points that were measured, by name; without those that there was no time for."""
    found = {
        batch[place].name: Found(**outcome.result)
        for place, outcome in outcomes.items()
        if outcome.error is None
    }
    return {name: point for name, point in found.items() if point.is_complete}


def document(about: Mapping[str, Any], known: Mapping[str, Found]) -> dict[str, Any]:
    """What the file holds."""
    return {"run": dict(about), "points": [asdict(found) for found in known.values()]}


def read(path: Path) -> dict[str, Found]:
    """The points of a file, by name.

    Raises
    ------
    SystemExit
        It holds something else.
    """
    try:
        found = [Found(**item) for item in json.loads(path.read_text())["points"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SystemExit(
            f"python -m bench.smoothness: expected a file that --json wrote, got {path}: {error!r}"
        ) from None
    return {point.name: point for point in found}


if __name__ == "__main__":
    main()
