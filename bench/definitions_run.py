"""``python -m bench.definitions_run``: run, check and time the recorded definitions.

On a GPU: kernel counts and kernel times of tritonfuser, of eager torch and of torch.compile, also
summed over a training step. Without a GPU: tritonfuser runs in the interpreter, and its kernels are
compiled for sm_90.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from tritonfuser.frontend.inspect.oracle import Evaluation

from .measure.errors import max_error
from .measure.timing import copy_bandwidth
from .options import add_workers, limits_of
from .processes.jobs import Outcome
from .processes.progress import Progress
from .processes.workers import Limits, forget, run_jobs
from .recorded.definition_job import DefinitionJob, brief, shown
from .recorded.definition_outline import outline
from .recorded.definition_results import ALL, Result
from .recorded.definition_tables import rendered, summaries
from .recorded.definitions import RecordedDefinition, make_inputs, record
from .recorded.earlier import earlier
from .recorded.selection import add_arguments, chosen
from .tables.files import save_json
from .tables.formatting import machine_code
from .tables.provenance import described
from .tables.records import OURS

Keep = Callable[[Sequence[Result]], None]
"""Called with the results so far."""
ARCH = "sm_90"
PEERS = tuple(who for who in ALL if who != OURS)


def run_on_gpu(
    entries: Sequence[RecordedDefinition],
    bandwidth: float,
    processes: int,
    limits: Limits,
    *,
    reduced: bool = False,
    keep: Keep = forget,
    peers: tuple[str, ...] = PEERS,
    checked: bool = True,
) -> list[Result]:
    """Compile the definitions in parallel, then time them one at a time; failures are results."""
    jobs = [
        DefinitionJob(entry, bandwidth, reduced, peers=peers, checked=checked) for entry in entries
    ]

    def results(known: Mapping[int, Outcome]) -> list[Result]:
        return [_result(jobs[place], known[place]) for place in sorted(known)]

    outcomes = run_jobs(
        jobs,
        processes,
        limits,
        keep=lambda known: keep(results(known)),
        costs=[entry.text.count("\n") for entry in entries],
    )
    return results(dict(enumerate(outcomes)))


def _result(job: DefinitionJob, outcome: Outcome) -> Result:
    if isinstance(outcome.result, Result):
        return outcome.result
    return failed(job.entry, outcome.error or "no result", ARCH, reduced=job.reduced)


def failed(entry: RecordedDefinition, error: str, arch: str, *, reduced: bool) -> Result:
    """The result of a definition that could not be run."""
    fd = record(entry)
    try:
        cut = fd.segments(make_inputs(entry, fd.fusion.ir, "meta"), arch=arch)
    except Exception:
        cut = None
    known = outline(entry, fd.fusion.ir, cut, reduced=reduced)
    return Result(**known, kernels=len(known["segments"]), failures={OURS: error})


def run_on_cpu(
    entries: Sequence[RecordedDefinition],
    arch: str = ARCH,
    stop: float = float("inf"),
    *,
    reduced: bool = False,
    keep: Keep = forget,
) -> list[Result]:
    """Interpret each definition and compile it for ``arch``; start none after ``stop`` seconds."""
    progress, begun = Progress(len(entries), "definition"), time.monotonic()
    found: list[Result] = []
    for entry in entries:
        if time.monotonic() - begun > stop:
            progress.say(f"{entry.name} and what comes behind it are left out, out of time")
            break
        progress.show(len(found), entry.name)
        try:
            found.append(_interpreted(entry, arch, reduced=reduced))
        except Exception as error:
            found.append(failed(entry, brief(error), arch, reduced=reduced))
        keep(found)
    return found


def _interpreted(entry: RecordedDefinition, arch: str, *, reduced: bool) -> Result:
    fd = record(entry)
    ir = fd.fusion.ir
    inputs = make_inputs(entry, ir)
    expected = shown(ir, Evaluation(ir, inputs, double=True).outputs)
    start = time.perf_counter()
    actual = fd.run(inputs)
    first = time.perf_counter() - start
    absent = make_inputs(entry, ir, "meta")
    codes = [machine_code(report) for report in fd.compile_for(arch, absent)]
    return Result(
        **outline(entry, ir, fd.segments(absent, arch=arch), reduced=reduced),
        kernels=len(codes),
        error=max_error(actual, expected),
        first_call=first,
        registers=max((code["registers"] for code in codes), default=0),
        spilled=max((code["spilled"] for code in codes), default=0),
    )


# --- the command ---------------------------------------------------------------------------------


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.definitions_run", description=__doc__)
    add_arguments(parser.add_argument_group("definitions"))
    parser.add_argument(
        "--reduced", action="store_true", help="shrink the sizes, so that a CPU takes seconds"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--compile-for",
        default=ARCH,
        metavar="ARCH",
        help="architecture to compile for without a GPU (default %(default)s)",
    )
    parser.add_argument(
        "--vs", nargs="*", choices=PEERS, default=PEERS, help="peers to compare with"
    )
    parser.add_argument(
        "--unchecked", action="store_true", help="do not compare results with float64"
    )
    add_workers(parser)
    parser.add_argument("--json", type=Path, help="write the results to this file as they come")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file as they come")
    parser.add_argument(
        "--resume",
        nargs="+",
        type=Path,
        default=[],
        metavar="JSON",
        help="files of --json: what they have is shown and not run again",
    )
    parser.add_argument(
        "--render",
        nargs="+",
        type=Path,
        metavar="JSON",
        help="run nothing: the tables of files of --json, later ones replacing earlier ones",
    )
    return parser.parse_args()


def _write(results: Sequence[Result], about: dict[str, Any], options: argparse.Namespace) -> None:
    if options.markdown:
        options.markdown.write_text(rendered(results, about, "```"))
    if options.json:
        found = {"run": about, "definitions": [asdict(r) for r in results]}
        save_json(options.json, {**found, "models": [asdict(s) for s in summaries(results)]})


def main() -> None:
    """Parse the command line, run, print and write the tables."""
    options = _parse()
    if options.render:
        about = json.loads(options.render[0].read_text())["run"]
        results = earlier(options.render)
        _write(results, about, options)
        print(rendered(results, about))
        return
    limits, known = limits_of(options), earlier(options.resume)
    done = {result.name for result in known}
    entries = [entry for entry in chosen(options) if entry.name not in done]
    about = described(options.commit)

    def keep(results: Sequence[Result]) -> None:
        _write([*known, *results], about, options)

    given: dict[str, Any] = {"reduced": options.reduced, "keep": keep}
    if options.device == "cuda":
        about["bandwidth"] = bandwidth = copy_bandwidth()
        given.update(peers=tuple(options.vs), checked=not options.unchecked)
        results = run_on_gpu(entries, bandwidth, options.jobs, limits, **given)
    else:
        about["device"] = f"CPU, kernels compiled for {options.compile_for}"
        results = run_on_cpu(entries, options.compile_for, limits.total, **given)
    keep(results)
    print(rendered([*known, *results], about))


if __name__ == "__main__":
    main()
