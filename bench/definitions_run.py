"""``python -m bench.definitions_run``: run the recorded definitions, check them, time them."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch
from tqdm import tqdm

from tritonfuser import FusionDefinition
from tritonfuser.frontend.oracle import reference
from tritonfuser.ir import Fusion
from tritonfuser.lowering.segments import SegmentedFusion

from .definitions import RecordedDefinition, load, make_inputs, record
from .report import (
    human_bytes,
    human_seconds,
    kernel_seconds,
    max_error,
    moved_bytes,
    table,
)
from .shrink import shrink

Inputs = list[torch.Tensor | int | float]


@dataclass(frozen=True)
class SegmentLine:
    """One segment of a definition, as it was scheduled."""

    name: str
    scheduler: str
    ops: int
    params: str


@dataclass(frozen=True)
class Result:
    """One definition, checked against torch and timed.

    ``seconds`` is the kernels' time on a GPU; on a CPU the first call, lowering included.
    """

    name: str
    reduced: bool
    ops: int
    kernels: int
    segments: tuple[SegmentLine, ...]
    bytes: int
    device: str
    error: float
    seconds: float
    eager_seconds: float | None

    def row(self) -> dict[str, str]:
        """The line of the table."""
        cells = {
            "definition": self.name + (" (reduced)" if self.reduced else ""),
            "ops": str(self.ops),
            "kernels": str(self.kernels),
            "moved": human_bytes(self.bytes),
            "device": self.device,
            "max error": f"{self.error:.1e}",
            "time": human_seconds(self.seconds),
        }
        if self.eager_seconds is not None:
            cells["eager"] = human_seconds(self.eager_seconds)
            cells["vs eager"] = f"{self.eager_seconds / self.seconds:.1f}x"
        return cells


def run_definition(entry: RecordedDefinition, device: str, *, reduced: bool) -> Result:
    """Run one definition on ``device``: against torch in float64, then for the clock."""
    entry = shrink(entry) if reduced else entry
    fd = record(entry)
    inputs = make_inputs(entry, fd.fusion.ir, device)
    expected = reference(fd.fusion, inputs)
    start = time.perf_counter()
    actual = fd.run(inputs)
    first = time.perf_counter() - start
    error = max_error(actual, expected)
    del expected, actual
    cut = fd.segments(inputs)
    return Result(
        name=entry.name,
        reduced=reduced,
        ops=len(fd.fusion.ir.nodes),
        kernels=len(fd.kernels(inputs)),
        segments=segment_lines(cut),
        bytes=sum(moved_bytes(s.nodes, s.inputs, s.outputs) for s in cut.segments),
        device=device,
        error=error,
        seconds=kernel_seconds(partial(fd.run, inputs)) if device == "cuda" else first,
        eager_seconds=_eager_seconds(fd, inputs) if device == "cuda" else None,
    )


def segment_lines(cut: SegmentedFusion) -> tuple[SegmentLine, ...]:
    """The segments for a table."""
    return tuple(
        SegmentLine(s.name, s.scheduler, len(s.nodes), str(s.params)) for s in cut.segments
    )


def _eager_seconds(fd: FusionDefinition, inputs: Inputs) -> float:
    """The definition op by op in torch, each in its own dtype: the kernels alone."""
    fusion = _unseeded(fd.fusion.ir)
    return kernel_seconds(partial(reference, fusion, inputs, double=False))


def _unseeded(fusion: Fusion) -> Fusion:
    """Without seeds, so that random numbers come from ``torch.rand`` as they would in eager."""
    nodes = tuple(
        replace(node, args=(*node.args[:3], None, None)) if node.op == "uniform" else node
        for node in fusion.nodes
    )
    return replace(fusion, nodes=nodes)


def run_all(
    entries: Sequence[RecordedDefinition], device: str, *, reduced: bool
) -> Iterator[Result]:
    """Run them one after the other, with a bar that names the one at work."""
    bar = tqdm(entries, unit="definition", leave=False)
    for entry in bar:
        bar.set_postfix_str(entry.name)
        yield run_definition(entry, device, reduced=reduced)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.definitions_run", description=__doc__)
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--reduced", action="store_true", help="smaller sizes: seconds on a CPU")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", type=Path, help="write the results here")
    return parser.parse_args()


def main() -> None:
    """Parse the command line and print the table."""
    options = _parse()
    entries = [e for e in load() if not options.models or e.model in options.models]
    results = list(run_all(entries, options.device, reduced=options.reduced))
    print(table(result.row() for result in results))
    if options.json:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=1) + "\n")


if __name__ == "__main__":
    main()
