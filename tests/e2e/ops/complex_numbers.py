"""Complex numbers of tests, the ops that take them, and how results are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tests.e2e.checking import copied, round_trip
from tritonfuser import DataType, FusionDefinition
from tritonfuser.ops.forms import Pointwise
from tritonfuser.ops.registry import OPS

D = DataType
SINGLE, DOUBLE = torch.complex64, torch.complex128
LIMIT = {SINGLE: 2e-5, DOUBLE: 1e-12, torch.float32: 2e-5, torch.float64: 1e-12}
Record = Callable[..., Any]


def numbers(
    *shape: int, dtype: torch.dtype = DOUBLE, device: str = "cpu", seed: int = 0
) -> torch.Tensor:
    """Random numbers around 0, up to 2 in size."""
    generator = torch.Generator().manual_seed(seed + 31 * len(shape))
    found = torch.randn(shape, dtype=DOUBLE, generator=generator) * 1.3
    return (found if dtype.is_complex else found.real).to(dtype).to(device)


def definition(record: Record, inputs: Sequence[Any]) -> FusionDefinition:
    """``record(fd, *handles)`` gives the outputs; numbers become scalar inputs."""
    with FusionDefinition() as fd:
        handles = [
            fd.from_pytorch(x) if isinstance(x, torch.Tensor) else fd.define_scalar(None, kind(x))
            for x in inputs
        ]
        found = record(fd, *handles)
        for out in found if isinstance(found, list | tuple) else [found]:
            fd.add_output(out)
    return fd


def kind(number: complex) -> DataType:
    return D.ComplexDouble if isinstance(number, complex) else D.Double


def run(record: Record, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The outputs; the printed definition has to give the same."""
    fd = definition(record, inputs)
    found = fd.run(copied(inputs))
    round_trip(fd, inputs, found)
    return found


def assert_near(found: torch.Tensor, wanted: torch.Tensor, times: float = 1.0) -> None:
    """The dtype of ``found``, the numbers of ``wanted``."""
    assert found.shape == wanted.shape
    limit = times * LIMIT.get(found.dtype, 0.0)
    torch.testing.assert_close(
        found.cpu(), wanted.cpu().to(found.dtype), rtol=limit, atol=limit, equal_nan=True
    )


ROWS = [op for op in OPS.values() if isinstance(op.form, Pointwise) and op.complex is not None]
COUNTS = {n: [op.name for op in ROWS if len(op.params) == n] for n in (1, 2)}


def op_of(name: str) -> Record:
    return lambda fd, *operands: getattr(fd.ops, name)(*operands)
