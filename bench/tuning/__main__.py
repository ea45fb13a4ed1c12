"""``python -m bench.tuning --json FILE``: short tunings against long ones, on a GPU.

Rows of the suite and random graphs are tuned for a short time and for a long one. The heuristics'
schedule and both that were found are then timed in the same rounds. All cases together take more
than an hour: cases that the file has already are not tuned again, so a run that ended early is
continued by the same command.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import torch

from ..options import add_commit, positive_seconds
from ..processes.progress import Progress
from ..processes.workers import fresh_caches
from ..tables.files import save_json
from ..tables.provenance import described
from .cases import SEED, TuningCase, random_cases
from .report import report
from .results import LONG, SHORT, Found, Level, parsed
from .trial import found_of

OVERHEAD = 10.0
"""Seconds that a case is expected to take beside its tunings, before one has been seen."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, tune, store, print."""
    options = parse(arguments)
    cases = random_cases(options.cases, options.seed)
    if options.list:
        print("\n".join(case.name for case in cases))
        return
    known = read(options.json, asked(options)) if options.json and options.json.exists() else {}
    if not options.show:
        if not torch.cuda.is_available():
            raise SystemExit("python -m bench.tuning: times kernels, which needs a CUDA device")
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder, fresh_caches(folder):
            measure(cases, known, options)
    print(report([known[case.name] for case in cases if case.name in known]))
    missing = sum(case.name not in known for case in cases)
    if missing:
        print(f"\n{missing} of {len(cases)} cases are not tuned yet: run it again")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.tuning", description=__doc__)
    parser.add_argument("--cases", type=int, default=60, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=SEED, help="of the cases")
    parser.add_argument(
        "--budgets",
        nargs=2,
        type=positive_seconds,
        default=[SHORT, LONG],
        metavar="SECONDS",
        help="of the short and of the long tuning (default %(default)s)",
    )
    parser.add_argument("--level", choices=get_args(Level), default="params", help="of the tunings")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the results; go on with it")
    parser.add_argument("--limit", type=float, default=580.0, help="seconds for everything")
    parser.add_argument("--list", action="store_true", help="print the cases and exit")
    parser.add_argument("--show", action="store_true", help="tune nothing: print the file")
    add_commit(parser)
    options = parser.parse_args(arguments)
    options.budgets = sorted(options.budgets)
    return options


def asked(options: argparse.Namespace) -> dict[str, Any]:
    """What the cases of one file have in common."""
    return {"budgets": options.budgets, "level": options.level}


def measure(
    cases: Sequence[TuningCase],
    known: dict[str, Found],
    options: argparse.Namespace,
    device: str = "cuda",
) -> None:
    """Tune the cases that are not known, one after the other, while there is time for one more."""
    begun = time.monotonic()
    about = {**described(options.commit), **asked(options)}
    left = [case for case in cases if case.name not in known]
    progress, longest = Progress(len(left), "case"), sum(options.budgets) + OVERHEAD
    for place, case in enumerate(left):
        started = time.monotonic()
        if started - begun + longest > options.limit:
            return
        progress.show(place, case.name)
        known[case.name] = found_of(case, options.budgets, options.level, device)
        if options.json:
            save_json(options.json, document(about, known))
        longest = max(longest, time.monotonic() - started)


def document(about: dict[str, Any], known: dict[str, Found]) -> dict[str, Any]:
    """What the file holds."""
    return {"run": about, "cases": [asdict(one) for one in known.values()]}


def read(path: Path, wanted: dict[str, Any]) -> dict[str, Found]:
    """The cases of a file, by name.

    Parameters
    ----------
    wanted : dict
        Budgets and level: those of a file with others cannot be put beside them.

    Raises
    ------
    SystemExit
        It holds something else.
    """
    try:
        content = json.loads(path.read_text())
        run, found = content["run"], [parsed(item) for item in content["cases"]]
        have = {name: run[name] for name in wanted}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SystemExit(
            f"python -m bench.tuning: expected a file that --json wrote, got {path}: {error!r}"
        ) from None
    if have != wanted:
        raise SystemExit(
            f"python -m bench.tuning: {path} is of {have}, and asked for is {wanted}; "
            "give another file"
        )
    return {one.name: one for one in found}


if __name__ == "__main__":
    main()
