"""``python -m bench.schedules --out FILE``: time random schedules of random problems on a GPU.

``--show FILE ...`` sums files up: the time of the heuristics' schedule over that of the fastest.
``--fit FILE ...`` fits the constants of the cost model to them; that needs no GPU.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Mapping
from pathlib import Path

from ..measure.timing import copy_bandwidth
from ..processes.jobs import Outcome
from ..processes.workers import PROCESSES, Limits, run_jobs
from ..tables.provenance import described
from .fit import fit
from .graphs import GraphProblem, graph_problems
from .problems import Problem, random_problems
from .summary import summary
from .trial import Trial


def main() -> None:
    """Fit, sum up, or measure, as the command line says."""
    options = _parse()
    if options.fit:
        print(fit(options.fit))
    elif options.show:
        print(summary(options.show))
    else:
        measure(options)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.schedules", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="measure, and write JSON lines, gzipped")
    what.add_argument("--show", type=Path, nargs="+", metavar="FILE", help="sum files up")
    what.add_argument("--fit", type=Path, nargs="+", metavar="FILE", help="fit the cost model")
    parser.add_argument("--problems", type=int, default=120)
    parser.add_argument("--graphs", type=int, default=120, help="random definitions beside them")
    parser.add_argument("--candidates", type=int, default=48, help="schedules of a problem")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--limit", type=float, default=540.0, help="seconds for everything")
    parser.add_argument("--prepare", type=float, default=400.0, help="seconds to compile for")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> None:
    """Measure schedules of random problems, store them as they come, and print what failed."""
    begun = time.monotonic()
    about = {**described(None), "bandwidth": copy_bandwidth(), "seed": options.seed}
    problems: list[Problem | GraphProblem] = [
        *random_problems(options.problems, options.seed),
        *graph_problems(options.graphs, options.seed),
    ]
    random.Random(options.seed).shuffle(problems)  # a run that ends early has some of each family
    jobs = [Trial(problem, options.candidates, options.seed) for problem in problems]

    def keep(known: Mapping[int, Outcome]) -> None:
        store(options.out, about, known)

    limits = Limits(options.prepare, options.limit)
    outcomes = run_jobs(jobs, options.processes, limits, keep=keep)
    keep(dict(enumerate(outcomes)))
    failed = [(p.name, o.error) for p, o in zip(problems, outcomes, strict=True) if o.error]
    for name, error in failed[:10]:
        print(f"{name}: {error}")
    measured = sum(len(o.result["candidates"]) for o in outcomes if o.error is None)
    print(f"{measured} schedules of {len(outcomes) - len(failed)} problems, {len(failed)} failed")
    print(f"{time.monotonic() - begun:.0f} s")


def store(path: Path, about: object, known: Mapping[int, Outcome]) -> None:
    """Write the provenance, then a line for each problem."""
    with gzip.open(path, "wt") as out:
        out.write(json.dumps(about) + "\n")
        for place in sorted(known):
            if known[place].error is None:
                out.write(json.dumps(known[place].result) + "\n")


if __name__ == "__main__":
    main()
