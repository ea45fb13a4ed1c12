"""A definition over a mesh as the program of one device: local runs with communication between."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import Fusion, Value, print_fusion
from ..record.device_mesh import DeviceMesh
from .placement import Placement

Key = tuple[Value, Placement | None]
"""What exists at run time: a tensor in a placement, or a number."""


@dataclass(frozen=True)
class Exchange:
    """Parts sent around: what ``value`` is in one placement, in another."""

    value: Value
    have: Placement
    want: Placement

    def __str__(self) -> str:
        return f"{self.value.name}: {self.have} -> {self.want}"


@dataclass(frozen=True)
class Run:
    """A fusion on parts, run by this device alone."""

    fusion: Fusion
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]

    def __str__(self) -> str:
        return print_fusion(self.fusion)


@dataclass(frozen=True)
class Program:
    """What one device does, step by step.

    Attributes
    ----------
    mesh : DeviceMesh
        The mesh.
    steps : tuple of Exchange or Run
        In order, the same on all devices.
    inputs : tuple of Key
        What is given, in order.
    outputs : tuple of Key
        What the definition's outputs are, in order, as parts.
    """

    mesh: DeviceMesh
    steps: tuple[Exchange | Run, ...]
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The local runs."""
        return tuple(step for step in self.steps if isinstance(step, Run))

    def __str__(self) -> str:
        return "\n\n".join(str(step) for step in self.steps)
