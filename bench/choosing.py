"""``python -m bench.choosing``: what choosing params of kernels takes, and lowering as a whole.

Recorded definitions and random graphs are lowered for sm_90. The params of each distinct kernel
among them, its facts and what it computes, are then chosen anew, with nothing kept from before.
Nothing is compiled or run, and no GPU is needed.

Milliseconds are those of a CPU that others may use too; calls of functions are the same each time.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import gc
import math
import pstats
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import mean, quantiles
from typing import Any

from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.schedulers import propose
from tritonfuser.heuristics.search.choice import chosen
from tritonfuser.lowering.cost import segment_element_work
from tritonfuser.lowering.segments.segmented_fusion import SegmentedFusion

from .random_graphs import growing
from .recorded.corpus import corpus
from .recorded.definitions import RecordedDefinition, load, make_inputs, record
from .tables.formatting import table

ARCH = "sm_90"
GRAPHS = 250
"""Random graphs that are not held out, which have even numbers."""

Kernel = tuple[Problem, ElementWork]


@dataclass(frozen=True)
class Chosen:
    """What a choice took.

    Attributes
    ----------
    scheduler : str
        Of the kernel.
    seconds : float
        Of the CPU.
    calls : int
        Of functions, those of C too.
    """

    scheduler: str
    seconds: float
    calls: int


def definitions(graphs: int = GRAPHS) -> Iterator[RecordedDefinition]:
    """Those that are lowered."""
    yield from (each for each in (*load(), *corpus()) if not each.held_out)
    yield from (growing.entry(0, 2 * number) for number in range(graphs))


def lowered(given: RecordedDefinition) -> SegmentedFusion:
    """The kernels of a definition."""
    fd = record(given)
    return fd.segments(make_inputs(given, fd.fusion.ir, "meta"), arch=ARCH)


def kernels(given: Iterable[RecordedDefinition]) -> list[Kernel]:
    """The distinct kernels of definitions."""
    found: dict[Kernel, None] = {}
    for each in given:
        for piece in lowered(each).segments:
            if piece.problem is not None:
                found[piece.problem, segment_element_work(piece)] = None
    return list(found)


def measure(given: list[Kernel], rounds: int) -> list[Chosen]:
    """Each kernel's choice, one after another: the fastest of some rounds.

    The garbage collector passes over what was there before: all the kernels that are kept here took
    it 0.3 s, in the midst of a choice.
    """
    gc.freeze()
    seconds = [math.inf] * len(given)
    for _ in range(rounds):
        pairs = zip(seconds, _forgotten(given), strict=True)
        seconds = [min(best, _timed(kernel)) for best, kernel in pairs]
    calls = [calls_of(functools.partial(chosen, *kernel)) for kernel in _forgotten(given)]
    names = [propose(problem).scheduler for problem, _ in given]
    return [Chosen(*each) for each in zip(names, seconds, calls, strict=True)]


def _forgotten(given: list[Kernel]) -> list[Kernel]:
    """The same kernels with nothing kept: problems too keep what follows from their facts."""
    forget()
    return [(replace(problem), work) for problem, work in given]


def _timed(kernel: Kernel) -> float:
    begun = time.process_time()
    chosen(*kernel)
    return time.process_time() - begun


def calls_of(run: Callable[[], Any]) -> int:
    """Calls of functions."""
    profile = cProfile.Profile()
    profile.runcall(run)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def forget() -> None:
    """Empty the caches of this package."""
    for name in [name for name in sys.modules if name.startswith("tritonfuser.")]:
        for item in list(vars(sys.modules[name]).values()):
            if hasattr(item, "cache_clear") and getattr(item, "__module__", None) == name:
                item.cache_clear()


# --- the tables ----------------------------------------------------------------------------------


def rows_of(found: list[Chosen]) -> list[dict[str, str]]:
    """The table's rows: each scheduler, and all."""
    names = sorted({each.scheduler for each in found})
    rows = [_row(name, [each for each in found if each.scheduler == name]) for name in names]
    return [*rows, _row("all", found)]


def _row(name: str, found: list[Chosen]) -> dict[str, str]:
    times = sorted(1e3 * each.seconds for each in found)
    tenths = quantiles(times, n=10) if len(times) > 1 else times * 9
    cells = {"mean": mean(times), "median": tenths[4], "p90": tenths[8], "longest": times[-1]}
    calls = {"calls": mean(each.calls for each in found)}
    milliseconds = {f"{key} ms": f"{value:.2f}" for key, value in cells.items()}
    return {
        "scheduler": name,
        "kernels": str(len(found)),
        **milliseconds,
        **{key: f"{value:.0f}" for key, value in calls.items()},
    }


def recorded_row(rounds: int) -> dict[str, str]:
    """What lowering the recorded definitions takes, from first to last."""
    recorded = [(record(each), each) for each in load()]
    given = [(fd, make_inputs(each, fd.fusion.ir, "meta")) for fd, each in recorded]

    def run() -> None:
        for fd, inputs in given:
            fd.segments(inputs, arch=ARCH)

    seconds = math.inf
    for _ in range(rounds):
        forget()
        begun = time.process_time()
        run()
        seconds = min(seconds, time.process_time() - begun)
    forget()
    return {
        "lowered definitions": str(len(given)),
        "seconds": f"{seconds:.2f}",
        "calls": str(calls_of(run)),
    }


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.choosing", description=__doc__)
    parser.add_argument(
        "--graphs", type=int, default=GRAPHS, help="random graphs (default %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="the fastest counts (default %(default)s)"
    )
    options = parser.parse_args()
    print(table([recorded_row(options.rounds)]))
    print()
    found = measure(kernels(definitions(options.graphs)), options.rounds)
    print(table(rows_of(found)))


if __name__ == "__main__":
    main()
