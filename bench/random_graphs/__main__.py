"""``python -m bench.random_graphs``: random definitions against torch.compile.

Definitions of 5 to 40 ops as users and tracers record them, whose inputs and outputs take 10 to
1000 us at 4 TB/s. On a GPU each is compared with float64 and with torch.compile, in values and in
time. Without a GPU the kernels are compiled, or run in the interpreter with ``--reduced``. Those
with odd numbers are held out: nothing is said of any one of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..definitions_run import ARCH, Keep, run_on_cpu
from ..measure.timing import copy_bandwidth
from ..options import add_workers, limits_of
from ..recorded.definition_results import COMPILED, Result
from ..recorded.definitions import RecordedDefinition, make_inputs, record
from ..recorded.earlier import earlier
from ..tables.files import save_json
from ..tables.provenance import described
from .families import FAMILIES
from .growing import entry
from .job import Compiled, GraphJob, run
from .report import rendered

REDUCED = 1 << 16
"""Bytes of a reduced definition's inputs and outputs."""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.random_graphs", description=__doc__)
    parser.add_argument("--count", type=int, default=250, help="definitions (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all of them (default %(default)s)")
    parser.add_argument(
        "--family",
        choices=FAMILIES,
        default="graph",
        help="graph: steps of models; rare: also the ops that they hardly have",
    )
    parser.add_argument(
        "--names", nargs="+", metavar="NAME", help="only these definitions, such as graph-0-12"
    )
    parser.add_argument("--show", nargs="+", metavar="NAME", help="print these and their schedules")
    parser.add_argument("--reduced", action="store_true", help="at sizes that take a CPU seconds")
    parser.add_argument("--unchecked", action="store_true", help="do not compare with float64")
    parser.add_argument("--alone", action="store_true", help="do not run torch.compile")
    add_workers(parser)
    parser.add_argument("--json", type=Path, help="write the results to this file as they come")
    parser.add_argument(
        "--resume",
        nargs="+",
        type=Path,
        default=[],
        metavar="JSON",
        help="files of --json: what they have is not run again",
    )
    return parser.parse_args(arguments)


def named(name: str, *, reduced: bool = False) -> RecordedDefinition:
    """The definition of a name such as ``graph-0-12``."""
    family, seed, number = name.split("-")
    bytes = REDUCED if reduced else None
    return entry(int(seed), int(number), bytes=bytes, family=family)


def shown(name: str, *, reduced: bool = False) -> str:
    """The program of a definition that is not held out, and what it is cut into."""
    found = named(name, reduced=reduced)
    if found.held_out:
        return f"{name} is held out"
    fd = record(found)
    absent = make_inputs(found, fd.fusion.ir, "meta")
    return f"{found.text}\n{fd.explain(absent, measure=False, arch=ARCH)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, print the report."""
    options = parse(arguments)
    if options.show:
        print("\n\n".join(shown(name, reduced=options.reduced) for name in options.show))
        return
    known = earlier([p for p in options.resume if p.exists()])
    done = {result.name for result in known}
    names = options.names or [f"{options.family}-{options.seed}-{n}" for n in range(options.count)]
    entries = [named(name, reduced=options.reduced) for name in names if name not in done]
    about = described(options.commit)

    def keep(results: Sequence[Result]) -> None:
        if options.json:
            found = [asdict(r) for r in (*known, *results)]
            save_json(options.json, {"run": about, "definitions": found})

    results = _run(entries, options, keep)
    keep(results)
    print(rendered([*known, *results]))


def _run(
    entries: Sequence[RecordedDefinition], options: argparse.Namespace, keep: Keep
) -> list[Result]:
    limits, reduced = limits_of(options), options.reduced
    if not torch.cuda.is_available():
        if reduced:
            return run_on_cpu(entries, ARCH, limits.total, reduced=True, keep=keep)
        compiled = [Compiled(e, ARCH) for e in entries]
        return run(compiled, options.jobs, limits, keep, ARCH)
    bandwidth = copy_bandwidth()
    peers = () if options.alone else (COMPILED,)
    given: dict[str, Any] = {"reduced": reduced, "peers": peers, "checked": not options.unchecked}
    jobs = [GraphJob(e, bandwidth, **given) for e in entries]
    return run(jobs, options.jobs, limits, keep, ARCH)


if __name__ == "__main__":
    main()
