"""``python -m bench.lengths``: one definition at a hundred sequence lengths.

For an adaptive layer norm: the number of kernels compiled for all lengths, the host time of a new
length, and the time of kernels with dynamic sizes against kernels with static sizes. The peer is
torch.compile with ``dynamic=True``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch._dynamo.utils import counters
from torch._inductor import metrics

from tritonfuser import DataType, FusionDefinition, options
from tritonfuser.cache.executor import FusionExecutorCache
from tritonfuser.cache.keys.recompiles import Recompiles

from .measure.timing import interleaved, synchronize
from .options import add_commit
from .tables.files import save_json
from .tables.formatting import table
from .tables.provenance import described

LENGTHS = range(128, 12801, 128)
WIDTH = 1024
BATCH = {"cuda": 4, "cpu": 1}
TIMED = (128, 640, 2048, 4096, 12800)
"""The lengths at which kernels are timed."""

RESERVED_BYTES = 4 << 30
"""Bytes reserved from the driver up front: more than the longest length needs."""

MAX_KERNELS = 4
MAX_NEW_LENGTH_MS = 1.0
"""Targets: kernels for all lengths, and median host milliseconds of a new length, at most."""


@dataclass(frozen=True)
class Compiled:
    """What a contender compiled for all lengths.

    Attributes
    ----------
    name : str
        The contender.
    kernels : int
        Kernels that were compiled.
    compiles : int
        Calls that compiled something.
    compile_seconds : float
        Seconds of these calls.
    new_ms : tuple of float
        Host milliseconds of the first call at each length that compiled nothing.
    """

    name: str
    kernels: int
    compiles: int
    compile_seconds: float
    new_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        return statistics.median(self.new_ms) if self.new_ms else 0.0


@dataclass(frozen=True)
class Timed:
    """Microseconds of the kernels at one length: static sizes, dynamic sizes, torch.compile."""

    length: int
    static: float
    dynamic: float
    compiled: float


def definition() -> FusionDefinition:
    """``norm(x) * (1 + scale) + shift`` over [B, T, D], scale and shift [B, 1, D]."""
    with FusionDefinition() as fd:
        shapes = ([-1, -1, -1], [-1, 1, -1], [-1, 1, -1])
        given = [
            fd.define_tensor(shape=s, contiguity=True, dtype=DataType.BFloat16) for s in shapes
        ]
        x, scale, shift = (fd.ops.cast(t, DataType.Float) for t in given)
        var, mean = fd.ops.var_mean(x, dims=[2], correction=0, keepdim=True)
        normed = fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))
        made = fd.ops.add(fd.ops.mul(normed, fd.ops.add(scale, 1.0)), shift)
        fd.add_output(fd.ops.cast(made, DataType.BFloat16))
    return fd


def eager(x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """The same computation in torch."""
    normed = F.layer_norm(x.float(), x.shape[-1:], eps=1e-5)
    return (normed * (1 + scale.float()) + shift.float()).to(x.dtype)


def inputs_at(length: int, device: str, width: int = WIDTH) -> list[torch.Tensor]:
    batch = BATCH[device]
    shapes = ((batch, length, width), (batch, 1, width), (batch, 1, width))
    return [torch.randn(*shape, device=device, dtype=torch.bfloat16) for shape in shapes]


def _first_calls(
    run: Callable[[list[torch.Tensor]], object],
    compiles: Callable[[], int],
    lengths: Sequence[int],
    device: str,
) -> tuple[list[float], float]:
    """Milliseconds of each first call that compiled nothing, and total seconds of the others."""
    new: list[float] = []
    spent = 0.0
    for length in lengths:
        inputs = inputs_at(length, device)
        before = compiles()
        synchronize(device)
        started = time.perf_counter()
        run(inputs)
        took = time.perf_counter() - started
        if compiles() == before:
            new.append(took * 1e3)
        else:
            spent += took
    return new, spent


def ours(lengths: Sequence[int], device: str) -> tuple[Compiled, FusionDefinition, Recompiles]:
    """Run the definition at all lengths.

    On a CPU plans are looked up and not run, because the interpreter is slow.
    """
    fd = definition()
    core = FusionExecutorCache(fd.fusion.ir)
    found = fd.explain_recompiles if device == "cuda" else core.recompiles
    run = fd.run if device == "cuda" else core.plan
    new, spent = _first_calls(run, lambda: len(found()), lengths, device)
    made = found()
    return Compiled("tritonfuser", made.kernels, len(made), spent, tuple(new)), fd, made


def peer(lengths: Sequence[int], device: str) -> tuple[Compiled, Callable[..., Any]]:
    """Run the function compiled by ``torch.compile(dynamic=True)`` at all lengths."""
    torch._dynamo.reset()
    counters.clear()
    metrics.reset()
    compiled = torch.compile(eager, dynamic=True)
    new, spent = _first_calls(
        lambda inputs: compiled(*inputs),
        lambda: int(counters["stats"]["unique_graphs"]),
        lengths,
        device,
    )
    graphs = int(counters["stats"]["unique_graphs"])
    kernels = int(metrics.generated_kernel_count)
    return Compiled("torch.compile, dynamic", kernels, graphs, spent, tuple(new)), compiled


@contextmanager
def option(name: str, value: str) -> Iterator[None]:
    """Context in which an environment variable of ours has a value."""
    before = os.environ.get(name)
    os.environ[name] = value
    options.refresh()
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before
        options.refresh()


def static_sizes() -> AbstractContextManager[None]:
    """Context in which every size is compiled as a constant."""
    return option("TRITONFUSER_DYNAMIC_SIZES", "0")


def kernel_times(fd: FusionDefinition, compiled: Callable[..., Any]) -> list[Timed]:
    """Time bound plans at the lengths that the dynamic variant serves."""
    found: list[Timed] = []
    # First, since other settings drop the variants of a definition.
    opened = [fd.plan(inputs_at(length, "cuda")) for length in TIMED]
    for length, open_plan in zip(TIMED, opened, strict=True):
        inputs = inputs_at(length, "cuda")
        with static_sizes():
            static_plan = definition().plan(inputs)
        times = interleaved(
            {
                "static": lambda: static_plan(inputs),  # noqa: B023
                "dynamic": lambda: open_plan(inputs),  # noqa: B023
                "compiled": lambda: compiled(*inputs),  # noqa: B023
            },
            "cuda",
        )
        found.append(
            Timed(length, *(times[n].median * 1e6 for n in ("static", "dynamic", "compiled")))
        )
    return found


def compiled_table(rows: Sequence[Compiled]) -> str:
    return table(
        [
            {
                "": row.name,
                "kernels": row.kernels,
                "compilations": row.compiles,
                "compiling s": f"{row.compile_seconds:.2f}",
                "new length ms, median": f"{row.median_ms:.3f}",
                "most": f"{max(row.new_ms, default=0.0):.3f}",
            }
            for row in rows
        ]
    )


def times_table(rows: Sequence[Timed]) -> str:
    return table(
        [
            {
                "length": row.length,
                "static us": f"{row.static:.1f}",
                "dynamic us": f"{row.dynamic:.1f}",
                "dynamic/static": f"{row.dynamic / row.static:.3f}",
                "torch.compile us": f"{row.compiled:.1f}",
            }
            for row in rows
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; exit status 1 where a target is missed."""
    options = _parse(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    lengths = _shuffled(LENGTHS) if options.shuffled else list(LENGTHS)
    if device == "cuda":
        # Reserve memory now, so that no timed call waits for the driver.
        torch.empty(RESERVED_BYTES, dtype=torch.uint8, device=device)
    made, fd, recompiles = ours(lengths, device)
    rows, times = [made], []
    if device == "cuda" and not options.no_peer:
        theirs, compiled = peer(lengths, device)
        rows.append(theirs)
        times = kernel_times(fd, compiled)
    print(compiled_table(rows))
    print(f"\n{recompiles}\n")
    if times:
        print(times_table(times))
    met = made.kernels <= MAX_KERNELS and made.median_ms <= MAX_NEW_LENGTH_MS
    print(
        f"bar: {made.kernels} kernels (at most {MAX_KERNELS}), {made.median_ms:.3f} ms a new "
        f"length (at most {MAX_NEW_LENGTH_MS}): {'met' if met else 'missed'}"
    )
    if options.json is not None:
        report = {
            **described(options.commit),
            "compiled": [asdict(row) for row in rows],
            "times": [asdict(row) for row in times],
            "recompiles": [str(found) for found in recompiles],
            "met": met,
        }
        save_json(options.json, report)
    return 0 if met else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.lengths", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    parser.add_argument("--no-peer", action="store_true", help="leave torch.compile out")
    parser.add_argument(
        "--shuffled", action="store_true", help="visit the lengths in a random order"
    )
    add_commit(parser)
    return parser.parse_args(arguments)


def _shuffled(lengths: Sequence[int]) -> list[int]:
    """The lengths in a random order, the same each time."""
    order = torch.randperm(len(lengths), generator=torch.Generator().manual_seed(0))
    return [lengths[place] for place in order.tolist()]


if __name__ == "__main__":
    raise SystemExit(main())
