"""``python -m bench.cold``: the first run of a function, everything cold, ours and torch.compile's.

Each run is a process of its own, one at a time, with empty folders for the caches of Triton,
inductor and ours; ``--warm`` runs it once more with what it left in them. The clock starts where a
user's program stands: torch, triton and the compiler are imported, the GPU has a context, the
function has run in eager. It stops when the GPU is done. torch.compile is ``torch.compile(f)`` as
it comes: a process has no compile workers, its first compilation starts them, and that is in the
figure. Without a GPU ours alone is timed, compiled for sm_90 and not run.
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
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many")
    parser.add_argument("--warm", action="store_true", help="run again with the caches left behind")
    parser.add_argument(
        "--deadline",
        type=float,
        default=float("inf"),
        metavar="SECONDS",
        help="when no further process is started",
    )
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="for one process"
    )
    add_commit(parser)
    parser.add_argument("--json", type=Path, metavar="F", help="write the times here, as they come")
    return parser.parse_args()


def _content(about: dict[str, Any], found: Sequence[Trial]) -> dict[str, Any]:
    return {"run": about, "trials": [asdict(trial) for trial in found]}


def main() -> None:
    """Time first runs, tell of each as it is known, and print the table."""
    options = _parse()
    limits = Limits(options.timeout, time.time() + options.deadline)
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
