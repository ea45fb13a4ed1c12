"""What a search works with: what prepares schedules, what times them, what proposes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Union

from ...heuristics.schedule import Schedule
from ...lowering.segments.segmented_fusion import SegmentedFusion


@dataclass(frozen=True)
class PreparedSchedule:
    """A schedule whose kernels are compiled.

    Attributes
    ----------
    schedule : Schedule
        As proposed.
    segmented : SegmentedFusion
        What it makes of the definition.
    kernels : tuple
        What tells its kernels from others: schedules with equal ones are the same.
    """

    schedule: Schedule
    segmented: SegmentedFusion
    kernels: tuple[object, ...]


Prepare = Callable[[Schedule], Union[PreparedSchedule, str]]
"""Compiles a schedule on a thread; a text says why that cannot be."""


class Measurer(Protocol):
    """Times schedules. A text in the place of a number says why there is none."""

    def is_ready(self, seconds: float) -> bool:
        """Whether it can measure from now on; waits for that so long."""

    def measure(self, schedules: Sequence[Schedule], rounds: int) -> list[float | str]:
        """The median seconds of each, timed together."""

    def judge(self, schedules: Sequence[Schedule]) -> list[str]:
        """What is wrong with the outputs of each; empty where nothing is."""


class Proposer(Protocol):
    """Says what to try next."""

    def move_to(self, best: SegmentedFusion) -> None: ...

    def __next__(self) -> Schedule: ...
