"""nvFuser's executor classes: a Fusion's cache of compiled variants, and its one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import torch

from ...cache import executor
from ...errors import InputError, UndefinedFusionError
from ...heuristics.params import HeuristicParams
from ..multidevice.sharded_executor import ShardedExecutor
from ..record.inputs import Inputs, device_for, flat, placing, run_opened
from ..record.sharding import Sharding
from ..vocabulary.nvfuser_options import products_of
from ..vocabulary.unavailable import UnavailableError
from .bound_plan import BoundPlan, bind
from .fusion import Fusion

Params = Union[HeuristicParams, Sequence[HeuristicParams]]


class FusionExecutorCache:
    """Runs a Fusion; keeps what is compiled for each signature of inputs.

    Parameters
    ----------
    fusion : Fusion
        The definition. What is added to it afterwards is not seen.
    fusion_id : int
        The number that profiles call it by.
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
        self.core = _core(fusion, max_plans, fusion_id)

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
        usual = params is None and device is None
        if usual and not _enable_options and not _disable_options:
            return run_opened(self.core.execute, self._fusion, inputs)
        products = products_of(_enable_options, _disable_options)
        given = flat(inputs)
        with placing(self._fusion):
            where = device_for(self.core.fusion, given, device)
            return self.core.execute(given, params=params, device=where, products=products)

    def plan(self, inputs: Inputs) -> BoundPlan:
        """What ``execute`` calls for inputs like these; see ``FusionDefinition.plan``."""
        with placing(self._fusion):
            return bind(self.core, flat(inputs), self._fusion)

    def is_compiled(self, inputs: Inputs, device: torch.device | str | int | None = None) -> bool:
        """Whether inputs like these have been run."""
        return self.core.is_compiled(flat(inputs))

    def fusion(self) -> Fusion:
        """The definition."""
        return self._fusion

    def get_scheduled_ir(self, inputs: Inputs, tensor_transforms: bool = False) -> str:
        """The segments with their ops and params, as text; there are no transforms to add."""
        return str(self.core.segments(flat(inputs)))

    def get_most_recent_scheduled_ir(self, tensor_transforms: bool = False) -> str:
        """The same for what ran last."""
        plan = self.core.newest()
        if plan is None:
            raise InputError("get_most_recent_scheduled_ir: nothing was executed yet")
        return str(plan.lowered.segmented)

    def get_cuda_kernel(self, inputs: Inputs) -> str:
        """The generated kernels: Triton source, where nvFuser gives CUDA."""
        return "\n".join(kernel.text for kernel in self.core.kernels(flat(inputs)))

    def get_output_shardings(self) -> list[Sharding]:
        """How the outputs of the last run are spread over a mesh; empty without a mesh."""
        return self.core.output_shardings() if isinstance(self.core, ShardedExecutor) else []


def _core(fusion: Fusion, max_plans: int, fusion_id: int) -> executor.FusionExecutorCache:
    """What runs a fusion: on one device, or on its part of what is spread over a mesh."""
    shardings = fusion.shardings
    if shardings:
        return ShardedExecutor(fusion.ir, shardings, max_plans=max_plans, fusion_id=fusion_id)
    return executor.FusionExecutorCache(fusion.ir, max_plans=max_plans, fusion_id=fusion_id)


class KernelExecutor:
    """One kernel of one Fusion at one signature of inputs: not segmented, not cached."""

    def __init__(self) -> None:
        self.core = executor.KernelExecutor()
        self._fusion: Fusion | None = None

    def compile(
        self,
        fusion: Fusion,
        args: Inputs = (),
        params: Params | None = None,
        *,
        device: torch.device | None = None,
    ) -> None:
        """Compile for inputs like these; ``device`` where no tensor among them says one.

        Raises
        ------
        SchedulingError
            It takes more than one kernel; the message says where it would be cut.
        """
        if not fusion.defined():
            raise UndefinedFusionError("Fusion is empty!")
        if fusion.shardings:
            raise UnavailableError(
                "one kernel for a definition over a mesh is not available in tritonfuser",
                hint="Use fd.run(inputs), which runs it in pieces.",
            )
        self._fusion = fusion
        with placing(fusion):
            self.core.compile(fusion.ir, flat(args), params, device)

    def run(self, args: Inputs) -> list[torch.Tensor]:
        """Run on inputs of the signature it was compiled for."""
        return self.core.run(flat(args))

    def is_compiled(self) -> bool:
        """Whether ``compile`` was called."""
        return self.core.is_compiled()

    @property
    def params(self) -> HeuristicParams:
        """The params that the kernel was made with: to change, and give to ``run_kernel``."""
        return self.core.params
