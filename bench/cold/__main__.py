"""``python -m bench.cold``: time the first run of a function, tritonfuser against torch.compile.

Each run is a new process, one at a time, with empty cache folders of Triton, inductor and
tritonfuser. ``--warm`` runs it a second time with the caches that the first run filled. Before the
clock starts, torch, triton and the compiler are imported, the CUDA context exists, and the function
has run in eager torch. The clock stops when the GPU is idle. torch.compile runs with its defaults:
the first compilation starts its compile workers, which is part of its time. Without a GPU only
tritonfuser is timed: kernels are compiled for sm_90 and not run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..options import add_commit
from ..processes.child_process import ending_tidily
from ..tables.files import save_json
from ..tables.formatting import table
from ..tables.provenance import described
from ..tables.records import OURS
from .cases import CASES, DEFAULT
from .trials import TORCH, Limits, Trial, rows, trials


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cold", description=__doc__)
    parser.add_argument(
        "--cases",
        nargs="+",
        choices=CASES,
        default=DEFAULT,
        metavar="NAME",
        help=f"cases of the suite, or block (default {' '.join(DEFAULT)})",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="runs per case; the table shows the median (default %(default)s)",
    )
    parser.add_argument("--warm", action="store_true", help="run each case again with warm caches")
    parser.add_argument(
        "--deadline",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="start no further process after this time",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="time limit of one process (default %(default).0f)",
    )
    add_commit(parser)
    parser.add_argument(
        "--json", type=Path, metavar="F", help="write the times to this file after every run"
    )
    return parser.parse_args()


def _content(about: dict[str, Any], found: Sequence[Trial]) -> dict[str, Any]:
    return {"run": about, "trials": [asdict(trial) for trial in found]}


def main() -> None:
    """Time first runs, print each result when it is known, then print the table."""
    options = _parse()
    limits = Limits(options.timeout, time.monotonic() + options.deadline)
    on_gpu = torch.cuda.is_available()
    device, peers = ("cuda", (OURS, TORCH)) if on_gpu else ("meta", (OURS,))
    if not on_gpu:
        print("no GPU here: ours is compiled for sm_90 and not run, torch.compile is left out")
    about = described(options.commit)
    cases = [CASES[name] for name in options.cases]
    found: list[Trial] = []
    with ending_tidily():
        for trial in trials(cases, peers, device, options.rounds, limits, warm=options.warm):
            found.append(trial)
            print(trial.line, flush=True)
            if options.json:
                save_json(options.json, _content(about, found))
    wanted = len(cases) * len(peers) * options.rounds * (1 + options.warm)
    left_out = f"; {wanted - len(found)} runs left out, out of time" if len(found) < wanted else ""
    print(f"\nfirst run of a function, {about['device']}, caches empty{left_out}\n")
    print(table(rows(found)), flush=True)


if __name__ == "__main__":
    main()
