"""``python -m bench.products``: matrix products with prologues and epilogues.

Times tritonfuser, eager torch and torch.compile (max-autotune) on a GPU. Without a GPU the kernels
are compiled for sm_90.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition

from .cases import size_name
from .measure.timing import interleaved
from .tables.files import save_json
from .tables.formatting import human_ratio, machine_code, table

Size = tuple[int, int, int]
SIZES: tuple[Size, ...] = (
    (4096, 4096, 4096),
    (8192, 14336, 4096),
    (16, 4096, 4096),
    (512, 1024, 512),
)
BF16 = DataType.BFloat16


@dataclass(frozen=True)
class ProductCase:
    """A product as a definition and as a torch function."""

    name: str
    record: Callable[[FusionDefinition, Sequence[Any]], Any]
    eager: Callable[..., torch.Tensor]
    inputs: Callable[[Size, torch.device], list[torch.Tensor]]


def _operands(size: Size, device: torch.device) -> list[torch.Tensor]:
    """x [M, K], w [N, K] and b [N]; w is scaled so that the product has unit variance."""
    m, n, k = size
    x = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    w = torch.randn(n, k, device=device, dtype=torch.bfloat16) / k**0.5
    return [x, w, torch.randn(n, device=device, dtype=torch.bfloat16)]


def _with_residual(size: Size, device: torch.device) -> list[torch.Tensor]:
    rest = torch.randn(size[0], size[1], device=device, dtype=torch.bfloat16)
    return [*_operands(size, device), rest]


def _record_gelu(fd: FusionDefinition, t: Sequence[Any]) -> Any:
    y = fd.ops.cast(fd.ops.linear(*t), DataType.Float)
    cdf = fd.ops.add(fd.ops.erf(fd.ops.mul(y, 0.5**0.5)), 1.0)
    return fd.ops.cast(fd.ops.mul(fd.ops.mul(y, 0.5), cdf), BF16)


def _record_residual(fd: FusionDefinition, t: Sequence[Any]) -> Any:
    y = fd.ops.cast(fd.ops.linear(*t[:3]), DataType.Float)
    return fd.ops.cast(fd.ops.add(fd.ops.mul(y, 0.5), t[3]), BF16)


def _record_row_sum(fd: FusionDefinition, t: Sequence[Any]) -> Any:
    y = fd.ops.cast(fd.ops.linear(*t), DataType.Float)
    return fd.ops.sum(fd.ops.mul(y, y), [1])


CASES: tuple[ProductCase, ...] = (
    ProductCase(
        "linear + bias + gelu",
        _record_gelu,
        lambda x, w, b: F.gelu(F.linear(x, w, b)),
        _operands,
    ),
    ProductCase(
        "linear + bias, scale, residual",
        _record_residual,
        lambda x, w, b, r: F.linear(x, w, b) * 0.5 + r,
        _with_residual,
    ),
    ProductCase(
        "sum of squares of linear + bias",
        _record_row_sum,
        lambda x, w, b: F.linear(x, w, b).float().square().sum(1),
        _operands,
    ),
)


@dataclass(frozen=True)
class Measured:
    """One case at one size; times in seconds, the error relative to the largest magnitude."""

    case: str
    size: Size
    schedulers: tuple[str, ...]
    ours: float
    fused: float
    eager: float
    autotuned: float
    error: float

    def row(self) -> dict[str, str]:
        """The line of the table: times in microseconds."""
        work = 2e-12 * self.size[0] * self.size[1] * self.size[2]
        return {
            "case": self.case,
            "M x N x K": size_name(self.size),
            "ours us": f"{self.ours * 1e6:.1f}",
            "kernels": " ".join(self.schedulers),
            "fuse_matmul us": f"{self.fused * 1e6:.1f}",
            "eager us": f"{self.eager * 1e6:.1f}",
            "max-autotune us": f"{self.autotuned * 1e6:.1f}",
            "TFLOP/s": f"{work / self.ours:.0f}",
            "vs eager": human_ratio(self.eager / self.ours),
            "vs max-autotune": human_ratio(self.autotuned / self.ours),
            "error": f"{self.error:.1e}",
        }


def record(case: ProductCase, inputs: Sequence[torch.Tensor]) -> FusionDefinition:
    """Record the case for inputs of these shapes and dtypes."""
    with FusionDefinition() as fd:
        fd.add_output(case.record(fd, [fd.from_pytorch(t) for t in inputs]))
    return fd


def measure(case: ProductCase, size: Size, device: str = "cuda") -> Measured:
    """Measure one case at one size; in the interpreter the times are meaningless."""
    torch.manual_seed(0)
    inputs = case.inputs(size, torch.device(device))
    fd = record(case, inputs)
    (out,) = fd.run(inputs)
    wanted = case.eager(*(t.double() for t in inputs))
    error = float((out.double() - wanted).abs().max() / wanted.abs().max())
    torch._dynamo.reset()
    compiled = torch.compile(case.eager, dynamic=False, mode="max-autotune-no-cudagraphs")
    runs: dict[str, Callable[[], Any]] = {
        "ours": partial(fd.run, inputs),
        "fused": partial(fd.run, inputs, _enable_options=["fuse_matmul"]),
        "eager": partial(case.eager, *inputs),
        "autotuned": partial(compiled, *inputs),
    }
    for run in (*runs.values(), *runs.values()):
        run()
    times = interleaved(runs, device)
    return Measured(
        case=case.name,
        size=size,
        schedulers=tuple(s.scheduler for s in fd.segments(inputs).segments),
        error=error,
        **{name: found.median for name, found in times.items()},
    )


def compiled_rows() -> list[dict[str, Any]]:
    """Compile the kernels of every case for sm_90 without a GPU; returns table rows."""
    rows: list[dict[str, Any]] = []
    for case in CASES:
        for size in SIZES:
            inputs = case.inputs(size, torch.device("meta"))
            fd = record(case, inputs)
            for found in fd.compile_for("sm_90", inputs):
                line = {"case": case.name, "M x N x K": size_name(size), "kernel": found.name}
                rows.append({**line, **machine_code(found)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print(table(compiled_rows()))
        return
    found = [measure(case, size) for case in CASES for size in SIZES]
    if arguments.json is not None:
        save_json(arguments.json, [asdict(m) for m in found])
    print(table(m.row() for m in found))


if __name__ == "__main__":
    main()
