"""``python -m bench.passes``: time of tritonfuser's Python passes as definitions grow.

Lowers chains of pointwise ops and stacks of transformer blocks for sm_90; nothing is compiled or
run, and no GPU is needed. An exponent of 1 means time linear in the number of ops.
"""

from __future__ import annotations

import argparse
import functools
import gc
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.dry_run import lower_for
from tritonfuser.lowering.run_options import RunOptions

from .measure.stopwatch import STAGES, Stopwatch
from .model import REAL, blocks
from .tables.files import save_json
from .tables.formatting import table

ARCH = "sm_90"
WIDTH = 1024
Built = tuple[FusionDefinition, list[torch.Tensor]]

# --- what is lowered -----------------------------------------------------------------------------


def line(count: int) -> Built:
    """A chain: each op reads the previous result."""

    def body(ops: Any, x: Any) -> Any:
        for place in range(count):
            x = ops.mul(x, 1.001) if place % 2 else ops.sin(x)
        return x

    return _pointwise(body)


def ladder(count: int) -> Built:
    """A chain in which each result is read by the next two ops."""

    def body(ops: Any, x: Any) -> Any:
        before = x
        for _ in range(count):
            before, x = x, ops.sub(x, before)
        return x

    return _pointwise(body)


def fan(count: int) -> Built:
    """Repeated fan-out and fan-in: eight ops on one value, then their sum."""

    def body(ops: Any, x: Any) -> Any:
        for _ in range(count // 16):
            parts = [ops.mul(x, 0.1 + 0.01 * k) for k in range(8)]
            total = ops.sin(x)
            for part in parts[1:]:
                total = ops.add(total, part)
            x = ops.add(total, parts[0])
        return x

    return _pointwise(body)


def _pointwise(body: Callable[[Any, Any], Any]) -> Built:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float)
        fd.add_output(body(fd.ops, x))
    return fd, [torch.empty(WIDTH, WIDTH, device="meta")]


def stack(count: int, backwards: bool) -> Built:
    """Transformer blocks, with or without their backward."""
    fd = blocks.record(count, backwards=backwards)
    return fd, blocks.make_inputs(REAL, count, torch.bfloat16, "meta")


FAMILIES: dict[str, tuple[Callable[[int], Built], tuple[int, ...]]] = {
    "line": (line, (500, 1000, 2000)),
    "ladder": (ladder, (500, 1000, 2000)),
    "fan": (fan, (500, 1000, 2000)),
    "blocks": (functools.partial(stack, backwards=False), (10, 20, 40)),
    "blocks and backward": (functools.partial(stack, backwards=True), (10, 20, 40)),
}
"""Builders of definitions, and the sizes to build."""

# --- measuring ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """Seconds of one definition in each pass."""

    family: str
    size: int
    ops: int
    kernels: int
    record: float
    concretize: float
    simplify: float
    segment: float
    schedule: float
    tile: float
    emit: float
    total: float


def measure(family: str, size: int, rounds: int = 1) -> Measured:
    """Time the passes on one definition: the fastest of ``rounds`` rounds."""
    return min((_once(family, size) for _ in range(rounds)), key=lambda m: m.total)


def _once(family: str, size: int) -> Measured:
    build, _ = FAMILIES[family]
    watch = Stopwatch()
    gc.collect()
    with watch.stage("record"):
        fd, inputs = build(size)
        fusion = fd.fusion.ir
    started = time.process_time()
    with watch.on(STAGES):
        lowered, _ = lower_for(fusion, inputs, RunOptions(arch=ARCH))
    total = time.process_time() - started + watch.seconds["record"]
    kernels = sum(source is not None for source in lowered.sources)
    return Measured(family, size, len(fusion.nodes), kernels, **watch.seconds, total=total)


def exponent(first: Measured, last: Measured) -> float:
    """The exponent of the growth of total time with the number of ops; 1 is linear."""
    return math.log(last.total / first.total) / math.log(last.ops / first.ops)


# --- the table -----------------------------------------------------------------------------------


def rows_of(found: list[Measured]) -> list[dict[str, str]]:
    """The table's rows in milliseconds, with the growth since the first size of the family."""
    rows: list[dict[str, str]] = []
    for item in found:
        first = next(m for m in found if m.family == item.family)
        cells = {"family": item.family, "size": str(item.size), "ops": str(item.ops)}
        cells["kernels"] = str(item.kernels)
        for name in ("record", *STAGES, "total"):
            cells[f"{name} ms"] = f"{1e3 * getattr(item, name):.0f}"
        cells["us an op"] = f"{1e6 * item.total / item.ops:.0f}"
        cells["exponent"] = "" if item is first else f"{exponent(first, item):.2f}"
        rows.append(cells)
    return rows


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.passes", description=__doc__)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="rounds per definition; the fastest counts (default %(default)s)",
    )
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    options = parser.parse_args()
    measure("line", 10)
    found = [
        measure(family, size, options.rounds)
        for family in options.families
        for size in FAMILIES[family][1]
    ]
    print(f"passes for {ARCH}, nothing compiled")
    print(table(rows_of(found)))
    if options.json:
        save_json(options.json, [asdict(m) for m in found])


if __name__ == "__main__":
    main()
