"""``KernelExecutor``: a definition compiled as one kernel, for inputs of one signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ..errors import ExecutionModeError, InputError, SchedulingError
from ..heuristics.params import HeuristicParams
from ..ir import Fusion
from ..lowering.run_options import DEFAULT, RunOptions
from ..lowering.schedules import schedule_of
from ..lowering.segments.segmented_fusion import SegmentedFusion
from .calls.diagnosis import explain_mismatch
from .calls.gradient_warning import warn_detached
from .dry_run import lower_for
from .executor import FusionExecutorCache
from .keys.signature import MISFIT_ERRORS, key_maker
from .plan.execution_plan import ExecutionPlan


class KernelExecutor:
    """One kernel of one definition at one signature: no segmentation, no cache."""

    def __init__(self) -> None:
        self._plan: ExecutionPlan | None = None
        self._fusion: Fusion | None = None
        self._keys: tuple[Any, Any] = (None, None)

    def compile(self, fusion: Fusion, inputs: Sequence[Any], options: RunOptions = DEFAULT) -> None:
        """Compile the definition as one kernel for inputs like these.

        Raises
        ------
        SchedulingError
            It takes more than one kernel. The message lists the cuts.
        """
        warn_detached(inputs)
        options = replace(options, two_steps=False)
        found = lower_for(fusion, inputs, replace(options, params=None))[0].segmented
        if len(found.segments) > 1:
            cuts = "\n  ".join(found.cuts or [f"{s.name}: {s.reason}" for s in found.segments])
            raise SchedulingError(
                "KernelExecutor does not support the Fusion provided. It takes "
                f"{len(found.segments)} kernels:\n  {cuts}",
                hint="Use fd.run(inputs), which cuts a definition into kernels.",
            )
        self._plan = FusionExecutorCache(fusion).plan(inputs, _of_any_scheduler(options, found))
        self._fusion = fusion
        self._keys = key_maker(fusion), key_maker(fusion)(inputs)

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether inputs have the signature that was compiled for."""
        maker, key = self._keys
        try:
            return maker is not None and maker(inputs) == key
        except MISFIT_ERRORS:
            return False

    def run(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """Run the kernel on inputs of the signature it was compiled for.

        Raises
        ------
        InputError
            The inputs have another signature.
        """
        if self._plan is None or self._fusion is None:
            raise ExecutionModeError("KernelExecutor.run() before compile()")
        if not self.fits(inputs):
            raise explain_mismatch(self._fusion, inputs) or InputError(
                "KernelExecutor: the kernel was compiled for other inputs",
                hint="Sizes, strides and alignment are built in: compile again for these.",
            )
        return self._plan.run(inputs)

    def is_compiled(self) -> bool:
        """Whether ``compile`` was called."""
        return self._plan is not None

    def newest(self) -> ExecutionPlan | None:
        """The plan of the kernel; None before ``compile``."""
        return self._plan

    @property
    def params(self) -> HeuristicParams:
        """The params of the kernel."""
        if self._plan is None:
            raise ExecutionModeError("KernelExecutor.params before compile()")
        (segment,) = self._plan.lowered.segmented.segments
        return segment.params


def _of_any_scheduler(options: RunOptions, found: SegmentedFusion) -> RunOptions:
    """The options with a schedule in the place of params of another scheduler than the kernel's."""
    if options.params is None or len(options.params) != len(found.segments):
        return options
    pairs = list(zip(options.params, found.segments, strict=True))
    if all(params.scheduler == segment.scheduler for params, segment in pairs):
        return options
    made = schedule_of(found)
    segments = (replace(s, params=p) for s, p in zip(made.segments, options.params, strict=True))
    schedule = replace(made, segments=tuple(segments))
    return replace(options, params=None, schedule=schedule)
