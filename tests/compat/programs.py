"""Programs written for nvFuser: recorded under its names, run, and run again as printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tritonfuser.cache.plan.copies import copied
from tritonfuser.compat.nvfuser_direct import DataType, FusionDefinition, TensorView

Make = Callable[[FusionDefinition], Any]
"""Records a program: tensors are defined and outputs added in it."""


def record(make: Make) -> FusionDefinition:
    """The definition that ``make(fd)`` records."""
    with FusionDefinition() as fd:
        make(fd)
    return fd


def printed(fd: FusionDefinition) -> FusionDefinition:
    """The program that ``repr(fd)`` is, recorded."""
    scope: dict[str, Any] = {
        "FusionDefinition": FusionDefinition,
        "DataType": DataType,
        "TensorView": TensorView,
        "torch": torch,
    }
    exec(repr(fd), scope)
    return record(scope["nvfuser_fusion"])


def run(make: Make, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The outputs of a program; its printed form must give equal values and strides."""
    fd, before = record(make), copied(inputs)
    outputs = fd.execute(inputs)
    again = printed(fd).execute(before)
    assert len(again) == len(outputs)
    for one, other in zip(outputs, again, strict=True):
        assert one.stride() == other.stride()
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    return outputs


def ran(call: Callable[..., Any], *inputs: Any) -> Any:
    """What ``call(ops, *handles)`` gives for inputs: one tensor, or a list of them."""

    def make(fd: FusionDefinition) -> None:
        results = call(fd.ops, *handles(fd, inputs))
        for result in results if isinstance(results, list | tuple) else [results]:
            fd.add_output(result)

    outputs = run(make, list(inputs))
    return outputs[0] if len(outputs) == 1 else outputs


def handles(fd: FusionDefinition, inputs: Sequence[Any]) -> list[Any]:
    """Tensors by ``from_pytorch``, numbers as symbolic scalars of their Python type."""
    return [
        fd.from_pytorch(x) if isinstance(x, torch.Tensor) else fd.define_scalar(KINDS[type(x)])
        for x in inputs
    ]


KINDS = {
    bool: DataType.Bool,
    int: DataType.Int,
    float: DataType.Double,
    complex: DataType.ComplexDouble,
}


def equal(found: torch.Tensor, wanted: torch.Tensor, *, within: float = 0.0) -> None:
    """One shape, one dtype, and the same numbers; nan is equal to itself."""
    torch.testing.assert_close(found, wanted, rtol=within, atol=within, equal_nan=True)


def noise(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random numbers that are the same in every run."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu").to(dtype)
