"""``make demo``: definitions, their kernels, and results checked against torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition

from .definitions_run import ARCH, run_on_cpu, run_on_gpu
from .measure.errors import max_error
from .measure.timing import copy_bandwidth
from .processes.workers import PROCESSES, Limits
from .recorded.definition_outline import segment_lines
from .recorded.definitions import RecordedDefinition, load, make_inputs, of_model, record
from .tables.formatting import table

LLAMA = "hf-llama3-block"
SHOWN = 6
"""Index of the definition whose kernel is printed in full: residual add and RMS norm."""


def main() -> None:
    """Run the README's example, then recorded definitions: all on a GPU, Llama's on a CPU."""
    start = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    _say(f"tritonfuser on {torch.cuda.get_device_name() if device == 'cuda' else 'the CPU'}")
    readme_example(device)
    show_definition(of_model(LLAMA)[SHOWN], device)
    run_definitions(load() if device == "cuda" else of_model(LLAMA), device)
    print(f"\n{time.perf_counter() - start:.0f} s in all")


def _say(title: str) -> None:
    print(f"\n=== {title} ===\n", flush=True)


def readme_example(device: str) -> None:
    """Run the README's example: add, multiply and sum in one kernel."""
    _say("README's first example: sum((a + b) * 3) over the last dim")
    with FusionDefinition() as fd:
        a = fd.define_tensor(shape=[-1, -1, -1], contiguity=True, dtype=DataType.Float)
        b = fd.define_tensor(shape=[-1, -1, -1], contiguity=True, dtype=DataType.Float)
        scaled = fd.ops.mul(fd.ops.add(a, b), 3.0)
        fd.add_output(fd.ops.sum(scaled, dims=[2]))
    print(fd)
    inputs = [torch.randn(2, 4, 1024, device=device) for _ in range(2)]
    (out,) = fd.run(inputs)
    expected = ((inputs[0].double() + inputs[1].double()) * 3.0).sum(2)
    print(f"max error against float64: {max_error([out], [expected]):.1e}\n")
    show_segments(fd, inputs)


def show_definition(entry: RecordedDefinition, device: str) -> None:
    """Print a recorded definition, its segments, and one kernel in full, as for an H200."""
    _say(f"{entry.name}: residual add and rmsnorm of a Llama-3-8B block")
    fd = record(entry)
    inputs = make_inputs(entry, fd.fusion.ir, device)
    show_segments(fd, inputs)
    report = fd.compile_for(ARCH, inputs)[0]
    print(report.source)
    print(
        f"compiled for {ARCH}: {report.registers} registers, {report.spill_bytes} bytes "
        f"spilled, {report.shared_bytes} bytes of shared memory, loads of "
        f"{report.max_load_bytes} bytes, stores of {report.max_store_bytes}"
    )


def show_segments(fd: FusionDefinition, inputs: Sequence[Any]) -> None:
    """Print the segments with schedulers and params, and the reason of every cut."""
    cut = fd.segments(inputs)
    print(table(asdict(line) for line in segment_lines(cut)))
    for reason in cut.cuts:
        print(f"  cut: {reason}")
    print()


def run_definitions(entries: Sequence[RecordedDefinition], device: str) -> None:
    """Print the table: the error of every definition against float64, and its time."""
    _say(f"{len(entries)} recorded definitions of training steps, at full size")
    if device == "cpu":
        results = run_on_cpu(entries)
    else:
        results = run_on_gpu(entries, copy_bandwidth(), PROCESSES, Limits())
    lines = [(result, line) for result in results for line in result.segments]
    print(table({"definition": result.name} | asdict(line) for result, line in lines))
    print()
    print(table(result.row() for result in results))
    if device == "cpu":
        print(
            "\nNo GPU here: the kernels ran in Triton's interpreter on the CPU. That checks the "
            "numbers; the times, of a first call, say nothing about a GPU."
        )
    else:
        print(
            "\ntime: of the kernels, L2 cold, without the gaps between them; "
            "eager: the same of torch, op by op."
        )


if __name__ == "__main__":
    main()
