"""What travels to other processes, importable there: definitions, modules and their workers."""

from __future__ import annotations

from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.compat import nvfuser, nvfuser_direct


def gelu(fd: FusionDefinition) -> FusionDefinition:
    """``0.5 * x * (1 + erf(x / sqrt(2)))``, and its sum over rows."""
    with fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.Float)
        half = fd.ops.mul(x, 0.5)
        y = fd.ops.mul(half, fd.ops.add(fd.ops.erf(fd.ops.mul(x, 0.5**0.5)), 1.0))
        fd.add_output(y)
        fd.add_output(fd.ops.sum(y, dims=[1]))
    return fd


class Recorded(FusionDefinition):
    """A user's class: attributes of its own, an argument of its own, ops in ``definition``."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def definition(self) -> None:
        x = self.define_tensor(shape=[-1], contiguity=True)
        self.add_output(self.ops.mul(x, self.factor))


class Layer(torch.nn.Module):
    """A module that holds a definition, and a handle of it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(5))
        self.fd = gelu(FusionDefinition())
        self.result = self.fd.fusion.outputs()[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.fd.run([x])[0]
        return found * self.weight


class Rows(torch.utils.data.Dataset[Any]):
    """A data set whose items a definition computes."""

    def __init__(self, fd: FusionDefinition) -> None:
        self.fd = fd

    def __len__(self) -> int:
        return 4

    def __getitem__(self, place: int) -> torch.Tensor:
        found: torch.Tensor = self.fd.run([torch.full((1, 3), float(place))])[1]
        return found


CLASSES = {
    "tritonfuser": FusionDefinition,
    "nvfuser_direct": nvfuser_direct.FusionDefinition,
    "nvfuser": nvfuser.FusionDefinition,
}


def run_there(fd: FusionDefinition, x: torch.Tensor, answers: Any) -> None:
    """The work of a spawned process."""
    answers.put([out.tolist() for out in fd.run([x])])


def fail_there(fd: FusionDefinition) -> None:
    """A run on inputs that do not fit."""
    fd.run([torch.zeros(2)])
