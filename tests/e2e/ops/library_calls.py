"""Calls of ops that torch runs: how they are recorded, run and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tests.e2e.checking import copied, round_trip
from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch

D = DataType
EIGHT = torch.float8_e4m3fn
LIMIT = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def definition(
    record: Callable[..., Any], inputs: Sequence[Any], dynamic: bool = True
) -> FusionDefinition:
    """``record(fd, *handles)`` gives the outputs; numbers become scalar inputs."""
    kinds = {bool: D.Bool, int: D.Int, float: D.Double, complex: D.ComplexDouble}
    with FusionDefinition() as fd:
        handles = [
            (fd.from_pytorch(x) if dynamic else _fixed(fd, x))
            if isinstance(x, torch.Tensor)
            else fd.define_scalar(None, kinds[type(x)])
            for x in inputs
        ]
        found = record(fd, *handles)
        for out in found if isinstance(found, list | tuple) else [found]:
            fd.add_output(out)
    return fd


def _fixed(fd: FusionDefinition, x: torch.Tensor) -> Any:
    dtype = from_torch(x.dtype)
    return fd.define_tensor(list(x.shape), x.stride(), dtype=dtype, static_sizes=True)


def run(record: Callable[..., Any], inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The outputs; the printed definition has to give the same."""
    fd = definition(record, inputs)
    found = fd.run(copied(inputs))
    round_trip(fd, inputs, found)
    return found


def assert_near(found: torch.Tensor, wanted: torch.Tensor, times: float = 1.0) -> None:
    limit = times * LIMIT.get(found.dtype, 0.0)
    torch.testing.assert_close(
        found.cpu(), wanted.cpu().to(found.dtype), rtol=limit, atol=limit, equal_nan=True
    )


def drawn(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu", seed: int = 0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator).to(dtype).to(device)
