"""``python -m bench.model``: time a training step on a GPU, or compile its kernels without one."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import torch

from ..measure.timing import copy_bandwidth
from ..options import add_stop
from ..processes.workers import Limits
from ..tables.files import save_json
from ..tables.formatting import table
from ..tables.provenance import described
from .run import PEERS, compiled_kernels, rows, run_steps
from .sizes import REAL, SMALL


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.model", description=__doc__)
    parser.add_argument(
        "--vs", nargs="+", choices=PEERS, default=["compile"], help="peers to compare with"
    )
    parser.add_argument("--small", action="store_true", help="use the small sizes of the tests")
    parser.add_argument(
        "--compile-for",
        metavar="ARCH",
        help="compile only, for an architecture such as sm_90; implied without CUDA",
    )
    add_stop(parser)
    parser.add_argument("--json", type=Path, help="write the times to this file")
    return parser.parse_args()


def main() -> None:
    """Parse the command line and print the table."""
    options = _parse()
    sizes = SMALL if options.small else REAL
    arch = options.compile_for or (None if torch.cuda.is_available() else "sm_90")
    if arch is not None:
        print(f"compiled for {arch}, not run")
        print(compiled_kernels(sizes, arch))
        return
    about = {**described(options.commit), "bandwidth": copy_bandwidth()}
    outcomes = run_steps(sizes, options.vs, 1 + len(options.vs), Limits(total=options.stop))
    print(table(rows(outcomes)))
    failed = {who: outcome.error for who, outcome in outcomes.items() if outcome.error}
    for who, error in failed.items():
        print(f"{who}: {error}")
    if options.json:
        steps = {who: asdict(o.result) for who, o in outcomes.items() if o.error is None}
        found = {"run": about, "sizes": asdict(sizes), "steps": steps, "failures": failed}
        save_json(options.json, found)


if __name__ == "__main__":
    main()
