"""``python -m bench.cold``: the first run of a function in a process, everything cold.

Each run is a process of its own that has imported torch and triton, with empty caches on disk; and
once more with the caches that it left. Without a GPU ours alone is timed, compiled for sm_90.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from .cold_cases import CASES, ColdCase
from .functions import write
from .report import table

PARTS = ("import", "record", "passes", "kernels", "front end", "llvm", "ptxas")
CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
Row = dict[str, Any]


def measure(case: ColdCase, rounds: int, peers: tuple[str, ...]) -> Row:
    """Seconds of a case by peer: cold, with its parts, and with the caches of the run before."""
    row: Row = {"case": case.name}
    for peer in peers:
        pairs = [_pair(case, peer) for _ in range(rounds)]
        for name, runs in zip(("cold", "warm"), zip(*pairs, strict=True), strict=True):
            keys = runs[0].keys()
            row[f"{peer} {name}"] = {k: statistics.median(r[k] for r in runs) for k in keys}
    return row


def _pair(case: ColdCase, peer: str) -> tuple[dict[str, float], dict[str, float]]:
    """One process with empty caches, and another with what it left in them."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "function.py"
        text.write_text(write(case.record().fusion.ir).text)
        text.with_suffix(".json").write_text(json.dumps(case.shapes))
        environment = {**os.environ, **{name: f"{folder}/{name}" for name in CACHES}}
        command = [sys.executable, "-m", "bench.cold_child", peer, case.name, str(text)]
        first, second = (
            subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            for _ in range(2)
        )
    return _parts(first.stdout), _parts(second.stdout)


def _parts(output: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(output.splitlines()[-1])
    return found


def cells(row: Row) -> dict[str, str]:
    """A line of the table, in milliseconds; kernels are compiled at the same time, so that the

    last three parts may add up to more than all of it.
    """
    cold = row["ours cold"]
    line = {"case": row["case"], "kernels": f"{cold.get('compiled', 0):.0f}"}
    line["ours ms"] = _milliseconds(cold["total"])
    line.update({name: _milliseconds(cold.get(name, 0.0)) for name in PARTS if name != "kernels"})
    line["all kernels"] = _milliseconds(cold.get("kernels", 0.0))
    line["warm ms"] = _milliseconds(row["ours warm"]["total"])
    if "torch cold" in row:
        line["compile ms"] = _milliseconds(row["torch cold"]["total"])
        line["ours/compile"] = f"{cold['total'] / row['torch cold']['total']:.2f}"
        line["compile warm ms"] = _milliseconds(row["torch warm"]["total"])
    return line


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f}"


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold", description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    options = parser.parse_args()
    peers = ("ours", "torch") if torch.cuda.is_available() else ("ours",)
    rows = [measure(CASES[name], options.rounds, peers) for name in options.cases]
    print("first run in a process, caches empty")
    print(table([cells(row) for row in rows]))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
