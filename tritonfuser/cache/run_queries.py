"""What the next run of a definition would do: what follows from its lowering, and nothing runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..device import DeviceProperties
from ..heuristics.params import HeuristicParams
from ..heuristics.schedule import Schedule
from ..heuristics.search.schedule_space import Legality, ScheduleSpace
from ..ir import Fusion
from ..lowering.build import KernelReport
from ..lowering.kernel_source import KernelSource
from ..lowering.lowered import Lowered
from ..lowering.run_options import DEFAULT, RunOptions
from ..lowering.schedules import schedule_of
from ..lowering.segments.segmented_fusion import SegmentedFusion
from .dry_run import compile_for, lower_for
from .schedule_queries import legality, search_space


class RunQueries(ABC):
    """Answers about the next run of a definition. Inputs are flat in all methods."""

    fusion: Fusion

    @abstractmethod
    def lowered(
        self,
        inputs: Sequence[Any],
        options: RunOptions = DEFAULT,
        varying: Sequence[Sequence[Any]] = (),
    ) -> tuple[Lowered, DeviceProperties]:
        """Segments, params and kernels of the next run, and the device they are for.

        ``varying`` has the inputs of earlier runs: sizes that differ from theirs are open.
        """

    def segments(
        self,
        inputs: Sequence[Any],
        options: RunOptions = DEFAULT,
        varying: Sequence[Sequence[Any]] = (),
    ) -> SegmentedFusion:
        """The segments that the next run executes."""
        return self.lowered(inputs, options, varying)[0].segmented

    def heuristics(
        self, inputs: Sequence[Any], options: RunOptions = DEFAULT
    ) -> list[HeuristicParams]:
        """The params of the next run, one for each segment."""
        return [s.params for s in self.segments(inputs, options).segments]

    def kernels(
        self,
        inputs: Sequence[Any],
        options: RunOptions = DEFAULT,
        varying: Sequence[Sequence[Any]] = (),
    ) -> list[KernelSource]:
        """The sources of the kernels, in the order of a run."""
        return [s for s in self.lowered(inputs, options, varying)[0].sources if s is not None]

    def schedule(
        self,
        inputs: Sequence[Any],
        options: RunOptions = DEFAULT,
        varying: Sequence[Sequence[Any]] = (),
    ) -> Schedule:
        """The schedule of the next run: the cut into kernels, with the params of each."""
        return schedule_of(self.segments(inputs, options, varying))

    def search_space(self, inputs: Sequence[Any], options: RunOptions = DEFAULT) -> ScheduleSpace:
        """The space of schedules around the one that a first run would use."""
        found = lower_for(self.fusion, inputs, options)[0].segmented
        return search_space(self.fusion, inputs, options, found)

    def legality(self, inputs: Sequence[Any], options: RunOptions) -> Legality:
        """Whether ``options.schedule`` can be run."""
        return legality(self.fusion, inputs, options)

    def compile_for(
        self, arch: str, inputs: Sequence[Any], options: RunOptions = DEFAULT
    ) -> list[KernelReport]:
        """Compile the kernels for a GPU that need not be here; see ``dry_run.compile_for``."""
        return compile_for(self.fusion, inputs, arch, options)
