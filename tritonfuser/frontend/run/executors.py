"""nvFuser's executor classes: ``FusionExecutorCache`` and ``KernelExecutor``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...cache import executor, kernel_executor
from ...errors import ArgumentError, InputError, UndefinedFusionError
from ...heuristics.params import HeuristicParams
from ...lowering.run_options import DEFAULT
from ...pickling import Unpicklable
from ..multidevice.sharded_executor import ShardedExecutor
from ..record.inputs import Inputs, flatten_inputs, locate_errors, run_or_flatten
from ..record.sharding import Sharding
from ..tune.stored_tuning import first_tuning
from ..vocabulary.argument_types import expect
from ..vocabulary.unavailable import UnavailableError
from ..vocabulary.untraced import untraced
from .arguments import Device, Params, run_options
from .bound_plan import BoundPlan, bind
from .fusion import Fusion


class FusionExecutorCache:
    """Runs a Fusion, and keeps a compiled plan for each signature of inputs.

    Parameters
    ----------
    fusion : Fusion
        The definition. Ops added to it afterwards have no effect.
    fusion_id : int
        The number of the definition in profiles.
    auto_schedule : bool
        Accepted, as nvFuser has it, and not read.
    max_plans : int
        Compiled plans kept.
    """

    def __init__(
        self,
        fusion: Fusion,
        fusion_id: int = 0,
        auto_schedule: bool = True,
        *,
        max_plans: int = 256,
    ) -> None:
        expect("FusionExecutorCache", Fusion, fusion)
        expect("FusionExecutorCache", int, max_plans)
        if max_plans < 1:
            raise ArgumentError(
                f"FusionExecutorCache: max_plans must be 1 or more, got {max_plans}"
            )
        if not fusion.defined():
            raise UndefinedFusionError("Fusion is empty!")
        self._fusion = fusion
        self._fusion_id = fusion_id
        self._max_plans = max_plans
        self.core = _core(fusion, max_plans, fusion_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_executor, (self._fusion, self._fusion_id, self._max_plans)

    @untraced
    def execute(
        self,
        inputs: Inputs,
        *,
        params: Params | None = None,
        device: Device = None,
        _enable_options: Sequence[str] = (),
        _disable_options: Sequence[str] = (),
    ) -> list[torch.Tensor]:
        """Run on a list of inputs; arguments as for ``FusionDefinition.run``."""
        options = run_options(params, device, _enable_options, _disable_options)
        if options is DEFAULT and not self._fusion.gpu_only():
            return run_or_flatten(self.core.execute, self._fusion, inputs)
        given = flatten_inputs(inputs)
        with locate_errors(self._fusion):
            return self.core.execute(given, self._fusion.options_for(given, options))

    def plan(self, inputs: Inputs) -> BoundPlan:
        """What ``execute`` calls for inputs like these; see ``FusionDefinition.plan``."""
        given = flatten_inputs(inputs)
        with locate_errors(self._fusion):
            return bind(self.core, given, self._fusion, self._fusion.options_for(given))

    def is_compiled(self, inputs: Inputs, device: Device = None) -> bool:
        """Whether inputs like these have been run; ``device`` is accepted and not read."""
        return self.core.is_compiled(flatten_inputs(inputs))

    def fusion(self) -> Fusion:
        """The definition."""
        return self._fusion

    def get_scheduled_ir(self, inputs: Inputs, tensor_transforms: bool = False) -> str:
        """The segments with their ops and params, as text; ``tensor_transforms`` has no effect."""
        return str(self.core.segments(flatten_inputs(inputs)))

    def get_most_recent_scheduled_ir(self, tensor_transforms: bool = False) -> str:
        """``get_scheduled_ir`` for the inputs of the last run."""
        plan = self.core.newest()
        if plan is None:
            raise InputError("get_most_recent_scheduled_ir: nothing was executed yet")
        return str(plan.lowered.segmented)

    def get_cuda_kernel(self, inputs: Inputs, *, intrinsic_code: bool = True) -> str:
        """The generated kernels: Triton source, where nvFuser gives CUDA.

        ``intrinsic_code`` is accepted and has no effect.
        """
        return "\n".join(kernel.text for kernel in self.core.kernels(flatten_inputs(inputs)))

    def get_output_shardings(self) -> list[Sharding]:
        """How the outputs of the last run are sharded over the mesh; empty without a mesh."""
        return self.core.output_shardings() if isinstance(self.core, ShardedExecutor) else []


def restored_executor(fusion: Fusion, fusion_id: int, max_plans: int) -> FusionExecutorCache:
    """An executor without plans. Copies and pickles of executors call it."""
    return FusionExecutorCache(fusion, fusion_id, max_plans=max_plans)


def _core(fusion: Fusion, max_plans: int, fusion_id: int) -> executor.FusionExecutorCache:
    """The executor of a fusion: for one device, or for this device's part over a mesh."""
    shardings = fusion.shardings
    if shardings:
        return ShardedExecutor(fusion.ir, shardings, max_plans=max_plans, fusion_id=fusion_id)
    tune = first_tuning(fusion)
    return executor.FusionExecutorCache(
        fusion.ir, max_plans=max_plans, fusion_id=fusion_id, tune=tune
    )


class KernelExecutor(Unpicklable):
    """One kernel of one Fusion at one signature of inputs: no segmentation, no cache."""

    send_instead = "Send the definition, and call fd.run_kernel(inputs) where it arrives."

    def __init__(self) -> None:
        self.core = kernel_executor.KernelExecutor()
        self._fusion: Fusion | None = None

    @untraced
    def compile(
        self,
        fusion: Fusion,
        args: Inputs = (),
        params: Params | None = None,
        *,
        device: Device = None,
    ) -> None:
        """Compile for inputs like these.

        Parameters
        ----------
        fusion : Fusion
            The definition.
        args : list or tuple
            Example inputs: tensors and numbers.
        params : HeuristicParams, optional
            Params to use in place of those the heuristics propose.
        device : torch.device, str or int, optional
            Where to run a definition that takes no tensors.

        Raises
        ------
        SchedulingError
            It takes more than one kernel. The message lists the cuts.
        """
        expect("compile", Fusion, fusion)
        if not fusion.defined():
            raise UndefinedFusionError("Fusion is empty!")
        if fusion.shardings:
            raise UnavailableError(
                "one kernel for a definition over a mesh is not available in tritonfuser",
                hint="Use fd.run(inputs), which runs it in pieces.",
            )
        self._fusion = fusion
        with locate_errors(fusion):
            self.core.compile(fusion.ir, flatten_inputs(args), run_options(params, device))

    @untraced
    def run(self, args: Inputs) -> list[torch.Tensor]:
        """Run on inputs of the signature it was compiled for."""
        if self._fusion is None:
            return self.core.run(flatten_inputs(args))
        with locate_errors(self._fusion):
            return self.core.run(flatten_inputs(args))

    def is_compiled(self) -> bool:
        """Whether ``compile`` was called."""
        return self.core.is_compiled()

    @property
    def params(self) -> HeuristicParams:
        """The params that the kernel was made with: to change, and give to ``run_kernel``."""
        return self.core.params
