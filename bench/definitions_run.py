"""``python -m bench.definitions_run``: run the recorded definitions, check them, time them.

On a GPU: ours, the same functions in eager, and compiled by torch; kernels and their time, also
summed over a training step. Without one: ours in the interpreter, and what its kernels are like
for a GPU that is not here.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from tritonfuser.frontend.oracle import Evaluation

from .definition_job import DefinitionJob, outline, shown
from .definition_results import OURS, Result, rendered, summaries
from .definitions import RecordedDefinition, load, make_inputs, record
from .report import max_error
from .shrink import shrink
from .suite import described
from .timing import copy_bandwidth
from .workers import PROCESSES, Limits, run_jobs


def run_on_gpu(
    entries: Sequence[RecordedDefinition],
    bandwidth: float,
    processes: int,
    limits: Limits,
    *,
    reduced: bool = False,
) -> list[Result]:
    """Compile them side by side, then time one after the other; a failure is a result too."""
    jobs = [DefinitionJob(entry, bandwidth, reduced) for entry in entries]
    outcomes = run_jobs(jobs, processes, limits)
    return [
        _failed(entry, outcome.error, reduced=reduced) if outcome.error else outcome.result
        for entry, outcome in zip(entries, outcomes, strict=True)
    ]


def _failed(entry: RecordedDefinition, error: str, *, reduced: bool) -> Result:
    fd = record(entry)
    cut = fd.segments(make_inputs(entry, fd.fusion.ir, "meta"), arch="sm_90")
    known = outline(entry, fd.fusion.ir, cut, reduced=reduced)
    return Result(**known, kernels=len(cut.segments), failures={OURS: error})


def run_on_cpu(entry: RecordedDefinition, arch: str, *, reduced: bool) -> Result:
    """Run one definition in the interpreter, and compile it for ``arch``."""
    fd = record(entry)
    ir = fd.fusion.ir
    inputs = make_inputs(entry, ir)
    expected = shown(ir, Evaluation(ir, inputs, double=True).outputs)
    start = time.perf_counter()
    actual = fd.run(inputs)
    first = time.perf_counter() - start
    absent = make_inputs(entry, ir, "meta")
    reports = fd.compile_for(arch, absent)
    return Result(
        **outline(entry, ir, fd.segments(absent, arch=arch), reduced=reduced),
        kernels=len(reports),
        error=max_error(actual, expected),
        first_call=first,
        registers=max((report.registers for report in reports), default=0),
        spilled=max((report.spill_bytes for report in reports), default=0),
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.definitions_run", description=__doc__)
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--names", nargs="+", help="only these definitions: nanogpt-3")
    parser.add_argument("--reduced", action="store_true", help="smaller sizes: seconds on a CPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile-for", default="sm_90", metavar="ARCH", help="without a GPU")
    parser.add_argument("--jobs", type=int, default=PROCESSES, help="processes that compile")
    parser.add_argument(
        "--deadline", type=float, default=float("inf"), help="seconds; then peers are left out"
    )
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds in all")
    parser.add_argument("--commit", help="which code this is, where there is no repository")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--markdown", type=Path, help="write the tables here")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[RecordedDefinition]:
    found = [
        shrink(entry) if options.reduced else entry
        for entry in load()
        if (not options.models or entry.model in options.models)
        and (not options.names or entry.name in options.names)
    ]
    if not found:
        raise SystemExit(
            f"python -m bench.definitions_run: expected models or names of recorded definitions, "
            f"got {options.models or options.names}: take some of "
            f"{', '.join(dict.fromkeys(e.model for e in load()))}, nanogpt-0 and so on"
        )
    return found


def main() -> None:
    """Parse the command line, run, print and write the tables."""
    options = _parse()
    entries = _chosen(options)
    about: dict[str, Any] = {"device": "CPU, kernels compiled for " + options.compile_for}
    if options.device == "cuda":
        bandwidth = copy_bandwidth()
        torch.cuda.empty_cache()
        about = described(bandwidth, options.commit)
        limits = Limits(options.deadline, options.limit)
        results = run_on_gpu(entries, bandwidth, options.jobs, limits, reduced=options.reduced)
    else:
        bar = tqdm(entries, unit="definition", leave=False)
        results = [run_on_cpu(e, options.compile_for, reduced=options.reduced) for e in bar]
    print(rendered(results, about))
    if options.markdown:
        options.markdown.write_text(rendered(results, about, "```"))
    if options.json:
        found = {"run": about, "definitions": [asdict(r) for r in results]}
        found["models"] = [asdict(s) for s in summaries(results)]
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
