"""Runs a definition over a mesh: this device's parts of inputs -> its parts of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ...cache import executor
from ...cache.keys.recompiles import Recompiles
from ...cache.keys.run_device import device_of
from ...cache.plan.copies import put
from ...cache.plan.execution_plan import ExecutionPlan
from ...device import DeviceProperties
from ...errors import InputError, ParamsError
from ...heuristics.params import HeuristicParams
from ...heuristics.schedule import Schedule
from ...heuristics.search.schedule_space import Legality, ScheduleSpace
from ...ir import Fusion, Value
from ...lowering.build import KernelReport
from ...lowering.kernel_source import KernelSource
from ...lowering.lowered import Lowered
from ...lowering.run_options import DEFAULT, RunOptions
from ..record.sharding import Sharding, Shardings
from ..vocabulary.unavailable import UnavailableError
from .agreement import check_sizes
from .exchanges import exchange
from .local_programs import LocalPrograms
from .mesh_program import Key, Program, Run

Tensors = dict[Key, Any]


class ShardedExecutor(executor.FusionExecutorCache):
    """As the executor of one device; inputs and outputs are this device's parts.

    Parameters
    ----------
    fusion : Fusion
        The definition, of whole tensors.
    shardings : Shardings
        The tensors that were put on a mesh, all on the same one.

    Raises
    ------
    InputError
        Several meshes, or one that this process is not in.
    """

    def __init__(
        self, fusion: Fusion, shardings: Shardings, *, max_plans: int = 256, fusion_id: int = 0
    ) -> None:
        super().__init__(fusion, max_plans=max_plans, fusion_id=fusion_id)
        self._programs = LocalPrograms(fusion, shardings, max_plans)
        self.mesh = self._programs.mesh

    # -- running -----------------------------------------------------------------------------

    def execute(self, inputs: Sequence[Any], options: RunOptions = DEFAULT) -> list[torch.Tensor]:
        """Run this device's program on its parts, together with all devices of the mesh."""
        _refuse_given(options)
        where = device_of(inputs, options.device)
        bound = self._programs.get(inputs, where)
        program = bound.program
        if bound.sizes_may_differ:
            check_sizes(self.fusion, program, inputs, where)
            # On a GPU a check waits for the stream, so each size is checked once.
            bound.sizes_may_differ = where.type == "cpu"
        have: Tensors = dict(zip(program.inputs, inputs, strict=True))
        for number, step in enumerate(program.steps):
            if isinstance(step, Run):
                given = [have[key] for key in step.inputs]
                core = bound.cores[number]
                made = core.execute(given, _local_options(options, given, where))
                have.update(zip(step.outputs, made, strict=True))
            elif (step.value, step.want) not in have:
                own = have[step.value, step.have]
                have[step.value, step.want] = exchange(own, step.have, step.want, program.mesh)
        return self._returned(program, have)

    def _returned(self, program: Program, have: Tensors) -> list[torch.Tensor]:
        """The outputs that are not hidden, those that alias an input written into it."""
        given = dict(zip(self.fusion.inputs, program.inputs, strict=True))
        buffers = {
            have[key].untyped_storage().data_ptr() for v, key in given.items() if v.is_tensor
        }
        outputs = [have[key] for key in program.outputs]
        targets = [
            None if o.alias_of is None else have[given[o.alias_of]] for o in self.fusion.outputs
        ]
        # All that is written is read first: inputs may be written crosswise.
        fresh = [
            x.clone() if t is not None and x.untyped_storage().data_ptr() in buffers else x
            for x, t in zip(outputs, targets, strict=True)
        ]
        for x, target in zip(fresh, targets, strict=True):
            if target is not None:
                put(target, x)
        pairs = zip(self.fusion.outputs, fresh, targets, strict=True)
        return [x if target is None else target for o, x, target in pairs if not o.hidden]

    def is_compiled(self, inputs: Sequence[Any]) -> bool:
        """Whether parts like these have been run."""
        return self._programs.has(inputs)

    def output_shardings(self) -> list[Sharding]:
        """Where the outputs of the last run are, hidden ones left out."""
        newest = self._programs.newest()
        if newest is None:
            raise InputError("get_output_shardings: nothing was executed yet")
        pairs = zip(self.fusion.outputs, newest.program.outputs, strict=True)
        placements = [placement for output, (_, placement) in pairs if not output.hidden]
        return [Sharding(self.mesh, p.shards) for p in placements if p is not None]

    def program(self, inputs: Sequence[Any]) -> Program:
        """What this device does for parts like these."""
        return self._programs.get(inputs, device_of(inputs)).program

    def newest_program(self) -> Program | None:
        """What this device did in the last run."""
        newest = self._programs.newest()
        return None if newest is None else newest.program

    # -- looking -----------------------------------------------------------------------------

    def plan(self, inputs: Sequence[Any], options: RunOptions = DEFAULT) -> ExecutionPlan:
        """The plan, where all is done by one local run."""
        core, given = self._single(inputs)
        return core.plan(given, options)

    def newest(self) -> ExecutionPlan | None:
        """The plan that ran last, where all is done by one local run."""
        bound = self._programs.newest()
        return bound.cores[0].newest() if bound is not None and list(bound.cores) == [0] else None

    def recompiles(self) -> Recompiles:
        """What was compiled for all local runs."""
        cores = [core for bound in self._programs.all() for core in bound.cores.values()]
        return Recompiles(made for core in cores for made in core.recompiles())

    def lowered(
        self,
        inputs: Sequence[Any],
        options: RunOptions = DEFAULT,
        varying: Sequence[Sequence[Any]] = (),
    ) -> tuple[Lowered, DeviceProperties]:
        """What is decided for the local run, where all is done by one."""
        _refuse_varying(varying)
        core, given = self._single(inputs)
        return core.lowered(given, options)

    def heuristics(
        self, inputs: Sequence[Any], options: RunOptions = DEFAULT
    ) -> list[HeuristicParams]:
        """The params of all local runs."""
        found = [core.heuristics(given, options) for core, given in self._examples(inputs)]
        return [params for each in found for params in each]

    def kernels(
        self,
        inputs: Sequence[Any],
        options: RunOptions = DEFAULT,
        varying: Sequence[Sequence[Any]] = (),
    ) -> list[KernelSource]:
        """The kernels of all local runs."""
        _refuse_varying(varying)
        found = [core.kernels(given, options) for core, given in self._examples(inputs)]
        return [kernel for each in found for kernel in each]

    def schedule(
        self,
        inputs: Sequence[Any],
        options: RunOptions = DEFAULT,
        varying: Sequence[Sequence[Any]] = (),
    ) -> Schedule:
        """The schedule, where there is one local run."""
        _refuse_varying(varying)
        core, given = self._single(inputs)
        return core.schedule(given, options)

    def search_space(self, inputs: Sequence[Any], options: RunOptions = DEFAULT) -> ScheduleSpace:
        """What could be tried in the place of the schedule, where there is one local run."""
        core, given = self._single(inputs)
        return core.search_space(given, options)

    def legality(self, inputs: Sequence[Any], options: RunOptions) -> Legality:
        """Whether a schedule can be run, where there is one local run."""
        core, given = self._single(inputs)
        return core.legality(given, options)

    def compile_for(
        self, arch: str, inputs: Sequence[Any], options: RunOptions = DEFAULT
    ) -> list[KernelReport]:
        """Compile the kernels of all local runs for a GPU that need not be here."""
        _refuse_given(options)
        found = [core.compile_for(arch, given) for core, given in self._examples(inputs)]
        return [report for each in found for report in each]

    def _single(self, inputs: Sequence[Any]) -> tuple[executor.FusionExecutorCache, list[Any]]:
        found = self._examples(inputs)
        if len(found) != 1:
            raise UnavailableError(
                f"a definition over a mesh that is run in {len(found)} pieces has no one plan",
                hint="fd.kernels(inputs) and fd.heuristics(inputs) give those of all pieces.",
            )
        return found[0]

    def _examples(
        self, inputs: Sequence[Any]
    ) -> list[tuple[executor.FusionExecutorCache, list[Any]]]:
        """The executor of each local run, and what stands for its inputs."""
        where = device_of(inputs)
        bound = self._programs.get(inputs, where)
        have: Tensors = dict(zip(bound.program.inputs, inputs, strict=True))
        found: list[tuple[executor.FusionExecutorCache, list[Any]]] = []
        for number, core in bound.cores.items():
            run = bound.program.steps[number]
            assert isinstance(run, Run)
            pairs = zip(run.inputs, run.fusion.inputs, strict=True)
            found.append((core, [have[k] if k in have else _stand_in(v) for k, v in pairs]))
        return found


def _local_options(options: RunOptions, given: Sequence[Any], where: torch.device) -> RunOptions:
    """The options of a local run, with the device where no tensor among its inputs says it."""
    device = None if any(isinstance(x, torch.Tensor) for x in given) else where
    return options if device == options.device else replace(options, device=device)


def _stand_in(value: Value) -> Any:
    if not value.is_tensor:
        return 1
    return torch.empty(value.tensor.sizes, dtype=value.dtype.info.torch, device="meta")


def _refuse_varying(varying: Sequence[Sequence[Any]]) -> None:
    if varying:
        raise UnavailableError(
            "sizes that vary of a definition over a mesh are not available in tritonfuser",
            hint="Leave varying out: each size has its own kernels.",
        )


def _refuse_given(options: RunOptions) -> None:
    if options.params is not None or options.schedule is not None:
        raise ParamsError(
            "params and schedules cannot be given to a definition over a mesh",
            hint="It is run in pieces; each is scheduled by itself.",
        )
