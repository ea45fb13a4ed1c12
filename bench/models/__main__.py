"""``python -m bench.models``: whole steps of models on a GPU, by contender.

Thunder with tritonfuser, torch.compile, and eager torch, forward and backward: kernels that are
fused and those of libraries, the time in which no kernel runs, launches, peak memory, first call.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Union

from ..families.index import FAMILIES
from ..options import add_stop
from ..processes.workers import Limits, run_jobs
from ..tables.files import save_json
from ..tables.formatting import table
from ..tables.provenance import described
from ..tables.records import OURS
from .step_job import FUSION_TYPES, PEERS, ModelStep
from .step_times import StepTimes

MODELS = ("llama", "gpt2", "bert", "dit", "resnet", "convnext", "mixtral")
Found = dict[str, dict[str, Union[StepTimes, str]]]
"""By step and contender: times, or the text of an error."""


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.models", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--sizes", nargs="+", default=["filling"], help="default: filling")
    parser.add_argument("--vs", nargs="*", choices=PEERS, default=PEERS, help="peers")
    parser.add_argument(
        "--fusion-type",
        choices=FUSION_TYPES,
        default=FUSION_TYPES[0],
        help="Thunder's option of this name (default %(default)s, which is Thunder's)",
    )
    add_stop(parser)
    parser.add_argument("--json", type=Path, help="write the times to this file as they come")
    options = parser.parse_args()
    unknown = [name for name in options.models if name not in FAMILIES]
    if unknown:
        parser.error(f"expected some of {', '.join(FAMILIES)}, got {', '.join(unknown)}")
    return options


def measured(
    family: str, size: str, peers: Sequence[str], stop: float, fusion_type: str = FUSION_TYPES[0]
) -> dict[str, Any]:
    """The contenders of a step: compiled side by side, then measured one at a time."""
    jobs = [ModelStep(family, size, who, fusion_type=fusion_type) for who in (OURS, *peers)]
    outcomes = run_jobs(jobs, len(jobs), Limits(total=stop))
    return {
        job.who: outcome.result if outcome.error is None else outcome.error
        for job, outcome in zip(jobs, outcomes, strict=True)
    }


def rendered(found: Found) -> str:
    """The table, and the errors below it."""
    rows, errors = [], []
    for step, by_who in found.items():
        ours = by_who.get(OURS)
        for who, times in by_who.items():
            if isinstance(times, StepTimes):
                known = ours if isinstance(ours, StepTimes) else None
                rows.append({"model": step, "by": who, **times.row(known)})
            else:
                errors.append(f"{step}, {who}: {times}")
    return "\n\n".join(filter(None, (table(rows), "\n".join(errors))))


def main() -> None:
    """Parse the command line, run step after step, print the table."""
    options, begun = _parse(), time.monotonic()
    found: Found
    about, found = described(options.commit), {}
    for name in options.models or MODELS:
        for size in options.sizes:
            left = options.stop - (time.monotonic() - begun)
            if size in FAMILIES[name].sizes and left > 0:
                found[f"{name} {size}"] = measured(
                    name, size, options.vs, left, options.fusion_type
                )
                if options.json:
                    save_json(options.json, {"run": about, "steps": _plain(found)})
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    print(rendered(found))


def _plain(found: Found) -> dict[str, dict[str, Any]]:
    return {
        step: {
            who: asdict(times) if isinstance(times, StepTimes) else times
            for who, times in by_who.items()
        }
        for step, by_who in found.items()
    }


if __name__ == "__main__":
    main()
