"""``python -m bench.host``: host time per call, against eager torch and torch.compile.

Contenders are interleaved round by round. Each round starts with an idle device and makes few
enough calls that the launch queue never fills. A target is compared with the median over rounds of
the ratio of two calls.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from ..options import add_commit
from ..tables.files import save_json
from ..tables.provenance import described
from .call_times import CALLS, ON_CPU, ROUNDS, measure, outcome, report, row
from .calls import BARS, all_calls


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables; write the figures to the file given by ``--json``."""
    parser = argparse.ArgumentParser(prog="python -m bench.host", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument(
        "--rounds", type=int, help="rounds; the first is a warm-up and is not counted"
    )
    parser.add_argument("--calls", type=int, help="calls per round")
    add_commit(parser)
    given = parser.parse_args(argv)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    count, rounds = (CALLS, ROUNDS) if device == "cuda" else ON_CPU
    calls = all_calls(device)
    times = measure(calls, device, given.calls or count, given.rounds or rounds)
    rows = [row(call, times[call.name]) for call in calls]
    # In the interpreter the call includes the computation: its time is not host overhead.
    tried = (outcome(bar, times) for bar in BARS if device == "cuda")
    outcomes = [found for found in tried if found is not None]
    where = torch.cuda.get_device_name() if device == "cuda" else "cpu (the interpreter)"
    print(report(rows, outcomes, where))
    if given.json is not None:
        calls_and_bars = {"calls": [asdict(r) for r in rows], "bars": [asdict(o) for o in outcomes]}
        save_json(given.json, {**described(given.commit), **calls_and_bars})


if __name__ == "__main__":
    main()
