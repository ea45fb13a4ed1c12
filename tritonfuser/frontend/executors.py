"""nvFuser's executor classes: a Fusion's cache of compiled variants, and its one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import torch

from ..cache import executor
from ..errors import InputError, UndefinedFusionError
from ..heuristics.params import HeuristicParams
from .fusion import Fusion
from .inputs import Inputs, device_for, flat, placing
from .nvfuser_options import check_options

Params = Union[HeuristicParams, Sequence[HeuristicParams]]


class FusionExecutorCache:
    """Runs a Fusion; keeps what is compiled for each signature of inputs.

    Parameters
    ----------
    fusion : Fusion
        The definition. What is added to it afterwards is not seen.
    fusion_id : int
        Accepted for nvFuser's sake.
    auto_schedule : bool
        Accepted for nvFuser's sake; must be True.
    max_plans : int
        Compiled variants kept.
    """

    def __init__(
        self,
        fusion: Fusion,
        fusion_id: int = 0,
        auto_schedule: bool = True,
        *,
        max_plans: int = 256,
    ) -> None:
        if not fusion.defined():
            raise UndefinedFusionError("Fusion is empty!")
        self._fusion = fusion
        self.core = executor.FusionExecutorCache(fusion.ir, max_plans=max_plans)

    def execute(
        self,
        inputs: Inputs,
        *,
        params: Sequence[HeuristicParams] | None = None,
        device: torch.device | str | int | None = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[torch.Tensor]:
        """Run on a list of inputs; arguments as for ``FusionDefinition.run``."""
        check_options(_enable_options, _disable_options)
        given = flat(inputs)
        with placing(self._fusion):
            where = device_for(self.core.fusion, given, device)
            return self.core.execute(given, params=params, device=where)

    def is_compiled(self, inputs: Inputs, device: torch.device | str | int | None = None) -> bool:
        """Whether inputs like these have been run."""
        return self.core.is_compiled(flat(inputs))

    def fusion(self) -> Fusion:
        """The definition."""
        return self._fusion

    def get_scheduled_ir(self, inputs: Inputs) -> str:
        """The segments with their ops and params, as text."""
        return str(self.core.segments(flat(inputs)))

    def get_most_recent_scheduled_ir(self) -> str:
        """The same for what ran last."""
        plan = self.core.newest()
        if plan is None:
            raise InputError("get_most_recent_scheduled_ir: nothing was executed yet")
        return str(plan.lowered.segmented)

    def get_cuda_kernel(self, inputs: Inputs) -> str:
        """The generated kernels: Triton source, where nvFuser gives CUDA."""
        return "\n".join(kernel.text for kernel in self.core.kernels(flat(inputs)))

    def get_output_shardings(self) -> list[Any]:
        """How outputs are spread over devices: none is, one device runs everything."""
        return []


class KernelExecutor:
    """One kernel of one Fusion at one signature of inputs: not segmented, not cached."""

    def __init__(self) -> None:
        self.core = executor.KernelExecutor()
        self._fusion: Fusion | None = None

    def compile(self, fusion: Fusion, inputs: Inputs = (), params: Params | None = None) -> None:
        """Compile for inputs like these.

        Raises
        ------
        SchedulingError
            It takes more than one kernel; the message says where it would be cut.
        """
        if not fusion.defined():
            raise UndefinedFusionError("Fusion is empty!")
        self._fusion = fusion
        with placing(fusion):
            self.core.compile(fusion.ir, flat(inputs), params)

    def run(self, inputs: Inputs) -> list[torch.Tensor]:
        """Run on inputs of the signature it was compiled for."""
        return self.core.run(flat(inputs))

    def is_compiled(self) -> bool:
        """Whether ``compile`` was called."""
        return self.core.is_compiled()
