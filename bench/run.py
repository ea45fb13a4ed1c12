"""Time the cases on a CUDA device: ours, eager, torch.compile, and the machine's copy speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from tqdm import tqdm

from .cases import Case, Run, Shape
from .report import device_seconds, flat, max_error, minimum_bytes, table

COPY_BYTES = 1 << 31
"""Large enough that the copy's launch does not show."""


@dataclass(frozen=True)
class Measurement:
    """One case at one size; times in seconds."""

    case: str
    shape: Shape
    dtype: str
    kernels: int
    bytes: int
    light: float
    ours: float
    eager: float
    compiled: float
    autotuned: float | None
    error: float
    eager_error: float

    def row(self) -> dict[str, str]:
        """The line of the table: times in microseconds."""
        cells = {
            "case": self.case,
            "size": f"{self.shape[0]}x{self.shape[1]}",
            "kernels": str(self.kernels),
            "ours us": _us(self.ours),
            "eager us": _us(self.eager),
            "compile us": _us(self.compiled),
        }
        if self.autotuned is not None:
            cells["max-autotune us"] = _us(self.autotuned)
        return cells | {
            "SOL us": _us(self.light),
            "% of SOL": f"{100 * self.light / self.ours:.0f}",
            "vs eager": f"{self.eager / self.ours:.2f}x",
            "vs compile": f"{self.compiled / self.ours:.2f}x",
            "max error": f"{self.error:.1e}",
            "eager's": f"{self.eager_error:.1e}",
        }


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}"


def copy_bandwidth() -> float:
    """Bytes a second, read and written, of a large device-to-device copy."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / device_seconds(partial(target.copy_, source))


def measure_all(
    cases: Sequence[Case], shapes: Sequence[Shape], dtype: torch.dtype, *, autotune: bool
) -> list[Measurement]:
    """Every case at every size, in one run on one machine."""
    bandwidth = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}: copy {bandwidth / 1e12:.2f} TB/s")
    jobs = [(case, shape) for case in cases for shape in shapes]
    return [
        measure(case, shape, dtype, bandwidth, autotune=autotune)
        for case, shape in tqdm(jobs, unit="case", leave=False)
    ]


def measure(
    case: Case, shape: Shape, dtype: torch.dtype, bandwidth: float, *, autotune: bool
) -> Measurement:
    """One case at one size; ours and eager's result against eager in float64."""
    torch.manual_seed(0)
    inputs = case.inputs(shape, dtype, "cuda")
    fd = case.record(shape, dtype)
    expected = flat(case.eager(*(t.double() for t in inputs)))
    actual, eager = fd.run(inputs), flat(case.eager(*inputs))
    error = max_error(actual, _as_ours(expected, actual))
    eager_error = max_error(eager, _as_ours(expected, eager))
    del expected, actual, eager
    traffic = minimum_bytes(fd.fusion.ir)
    return Measurement(
        case=case.name,
        shape=shape,
        dtype=str(dtype).removeprefix("torch."),
        kernels=len(fd.kernels(inputs)),
        bytes=traffic,
        light=traffic / bandwidth,
        ours=device_seconds(partial(fd.run, inputs)),
        eager=device_seconds(case.eager_run(inputs)),
        compiled=device_seconds(_compiled(case, inputs, None)),
        autotuned=device_seconds(_compiled(case, inputs, "max-autotune")) if autotune else None,
        error=error,
        eager_error=eager_error,
    )


def _as_ours(expected: list[torch.Tensor], actual: list[torch.Tensor]) -> list[torch.Tensor]:
    """The reference without the outputs that only eager has."""
    return [e.reshape(a.shape) for a, e in zip(actual, expected, strict=False)]


def _compiled(case: Case, inputs: list[torch.Tensor], mode: str | None) -> Run:
    torch._dynamo.reset()
    compiled: Callable[..., Any] = torch.compile(case.eager, dynamic=False, mode=mode)
    return partial(compiled, *inputs)


# --- without a GPU -------------------------------------------------------------------------------


def compile_all(
    cases: Sequence[Case], shapes: Sequence[Shape], dtype: torch.dtype, arch: str
) -> Iterator[dict[str, str]]:
    """What the kernels of every case look like on ``arch``, which need not be here."""
    jobs = [(case, shape) for case in cases for shape in shapes]
    for case, shape in tqdm(jobs, unit="case", leave=False):
        fd = case.record(shape, dtype)
        for report in fd.compile_for(arch, case.inputs(shape, dtype, "meta")):
            yield {
                "case": case.name,
                "size": f"{shape[0]}x{shape[1]}",
                "kernel": report.name,
                "scheduler": report.scheduler,
                "registers": str(report.registers),
                "spilled": str(report.spill_bytes),
                "shared": str(report.shared_bytes),
                "load bytes": str(report.max_load_bytes),
                "store bytes": str(report.max_store_bytes),
            }


def print_measurements(measured: Sequence[Measurement]) -> None:
    print(table(m.row() for m in measured))
