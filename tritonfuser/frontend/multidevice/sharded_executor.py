"""Runs a definition over a mesh: this device's parts of inputs in, its parts of outputs out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ...cache import executor
from ...cache.calls.diagnosis import InputMismatch, explain_mismatch
from ...cache.calls.gradient_warning import warn_detached
from ...cache.keys.recompiles import Recompiles
from ...cache.keys.run_device import device_of
from ...cache.keys.signature import signature
from ...cache.lru import LRU
from ...cache.plan.execution_plan import ExecutionPlan
from ...device import DeviceProperties
from ...errors import InputError, ParamsError, SourceLoc
from ...heuristics.params import HeuristicParams
from ...heuristics.schedule import Schedule
from ...heuristics.search.schedule_space import Legality, ScheduleSpace
from ...ir import Fusion, Value
from ...lowering.build import KernelReport
from ...lowering.kernel_source import KernelSource
from ...lowering.passes.concretize import concretize
from ...lowering.passes.simplify import simplify
from ...lowering.pipeline import Lowered
from ...lowering.run_options import DEFAULT, RunOptions
from ..record.cuts import span
from ..record.device_mesh import DeviceMesh
from ..record.sharding import Sharding, Shardings
from ..vocabulary.unavailable import UnavailableError
from .agreement import check_sizes, exchanges_parts, has_open_sizes
from .communicator import Communicator
from .exchanges import exchange
from .mesh_program import Key, Program, Run, plan
from .placement import Placement

Tensors = dict[Key, Any]


@dataclass
class _Bound:
    """A program with what runs its local fusions, and whether devices may disagree on sizes."""

    program: Program
    cores: dict[int, executor.FusionExecutorCache]
    sizes_may_differ: bool


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
        self.mesh = _only_mesh(shardings)
        self._shardings = dict(shardings)
        self._programs: LRU[Any, _Bound] = LRU(max_plans)

    # -- running -----------------------------------------------------------------------------

    def execute(self, inputs: Sequence[Any], options: RunOptions = DEFAULT) -> list[torch.Tensor]:
        """Run this device's program on its parts, together with all devices of the mesh."""
        _refuse_given(options)
        where = device_of(inputs, options.device)
        bound = self._bound(inputs, where)
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
                target.copy_(x)
        pairs = zip(self.fusion.outputs, fresh, targets, strict=True)
        return [x if target is None else target for o, x, target in pairs if not o.hidden]

    def is_compiled(self, inputs: Sequence[Any]) -> bool:
        """Whether parts like these have been run."""
        return self._program_key(inputs) in self._programs

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
        return self._bound(inputs, device_of(inputs)).program

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
        cores = [core for bound in self._programs.values() for core in bound.cores.values()]
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
        bound = self._bound(inputs, where)
        have: Tensors = dict(zip(bound.program.inputs, inputs, strict=True))
        found: list[tuple[executor.FusionExecutorCache, list[Any]]] = []
        for number, core in bound.cores.items():
            run = bound.program.steps[number]
            assert isinstance(run, Run)
            pairs = zip(run.inputs, run.fusion.inputs, strict=True)
            found.append((core, [have[k] if k in have else _stand_in(v) for k, v in pairs]))
        return found

    # -- programs ----------------------------------------------------------------------------

    def _bound(self, inputs: Sequence[Any], where: torch.device) -> _Bound:
        return self._programs.get_or_make(
            self._program_key(inputs), lambda: self._make(inputs, where)
        )

    def _program_key(self, inputs: Sequence[Any]) -> Any:
        own = Communicator.instance().rank()
        return own, tuple(
            (x.shape, x.stride(), x.dtype, x.device) if isinstance(x, torch.Tensor) else x
            for x in inputs
        )

    def _make(self, inputs: Sequence[Any], where: torch.device) -> _Bound:
        device = Communicator.instance().rank()
        if device not in self.mesh:
            raise InputError(
                f"multidevice: this process is device {device}, the definition is for {self.mesh}",
                hint="Run a definition on the devices of its mesh alone.",
            )
        warn_detached(inputs)
        whole = [self._whole(v, x) for v, x in zip(self.fusion.inputs, inputs, strict=False)]
        error = explain_mismatch(self.fusion, whole, abstract=True)
        if error is not None:
            raise self._in_whole(error, inputs)
        fusion = simplify(concretize(self.fusion, signature(self.fusion, whole, where)))
        made = plan(
            fusion,
            self.mesh,
            [self._placed(*pair) for pair in zip(self.fusion.inputs, fusion.inputs, strict=True)],
            [
                self._placed(recorded.value, output.value)
                for recorded, output in zip(self.fusion.outputs, fusion.outputs, strict=True)
            ],
            self._inside(fusion),
            device,
        )
        steps = enumerate(made.steps)
        # Results that several devices compute have the same bits on all of them, at all times.
        cores = {
            n: executor.FusionExecutorCache(s.fusion, hot_sizes=False)
            for n, s in steps
            if isinstance(s, Run)
        }
        return _Bound(made, cores, has_open_sizes(self.fusion) and exchanges_parts(made))

    def _placed(self, recorded: Value, value: Value) -> Placement | None:
        """Where a tensor was put, at the sizes of this run."""
        sharding = self._shardings.get(recorded)
        if sharding is None:
            return None
        for dim, (cut, size) in enumerate(zip(sharding.shards, value.tensor.sizes, strict=True)):
            if size % span(self.mesh, cut):
                raise InputError(
                    f"multidevice: dim {dim} of {recorded.name} has {size} elements, which are "
                    f"not cut evenly by {span(self.mesh, cut)}",
                    loc=self._line(recorded),
                    hint="Pad the dim, or cut another one.",
                )
        return Placement(sharding.at(value.tensor.sizes))

    def _line(self, recorded: Value) -> SourceLoc | None:
        node = self.fusion.producers.get(recorded)
        return None if node is None else node.loc

    def _inside(self, fusion: Fusion) -> dict[Value, Placement]:
        """Where results of ops were put that are still computed after simplification."""
        made = {out.index: out for node in fusion.nodes for out in node.outs if out.is_tensor}
        found: dict[Value, Placement] = {}
        for recorded, sharding in self._shardings.items():
            value = made.get(recorded.index)
            if value is None or value.tensor.rank != len(sharding.shards):
                continue
            placement = self._placed(recorded, value)
            if placement is not None and any(placement.shards):
                found[value] = placement
        return found

    def _whole(self, value: Value, given: Any) -> Any:
        """What stands for the whole tensor of which an input is a part."""
        sharding = self._shardings.get(value)
        if sharding is None or not isinstance(given, torch.Tensor):
            return given
        if given.dim() != len(sharding.shards):
            return given
        factors = [sharding.parts(dim) for dim in range(given.dim())]
        layout = value.tensor.layout
        order = range(given.dim())[::-1] if layout is None else layout.stride_order
        fastest_first = sorted(range(given.dim()), key=lambda dim: order[dim])
        sizes = [n * factor for n, factor in zip(given.shape, factors, strict=True)]
        moving = [dim for dim in fastest_first if not value.tensor.dims[dim].expanded]
        strides = _stretched(given, factors, moving)
        return torch.empty_strided(sizes, strides, dtype=given.dtype, device="meta")

    def _in_whole(self, error: InputError, inputs: Sequence[Any]) -> InputError:
        """An error about a whole tensor, with what the part is that it was told from."""
        if not isinstance(error, InputMismatch):
            return error
        given = inputs[error.place]
        if not isinstance(given, torch.Tensor) or not self._is_cut(error.place):
            return error
        hint = (
            f"Sizes are of whole tensors: this device's part is {list(given.shape)}. {error.hint}"
        )
        return InputMismatch(
            error.message, loc=error.loc, hint=hint, place=error.place, name=error.name
        )

    def _is_cut(self, place: int) -> bool:
        sharding = self._shardings.get(self.fusion.inputs[place])
        return sharding is not None and any(sharding.shards)


def _stretched(part: torch.Tensor, factors: Sequence[int], order: Sequence[int]) -> list[int]:
    """The strides of a whole tensor: a dim steps over the whole extents of those inside it.

    ``order`` are the dims that are not stretched by expand, fastest first. The stride of a part's
    dim of size 1 says nothing; it is taken to lie densely.
    """
    found = [0] * len(factors)
    dense, total = 1, 1
    for dim in order:
        size, stride = part.size(dim), part.stride(dim)
        found[dim] = dense if size == 1 else stride * total
        if stride:
            dense = found[dim] * size * factors[dim]
            total *= factors[dim]
    return found


def _only_mesh(shardings: Shardings) -> DeviceMesh:
    meshes = list(dict.fromkeys(sharding.mesh for _, sharding in shardings))
    if len(meshes) > 1:
        raise InputError(
            f"multidevice: one definition over several meshes: {', '.join(map(str, meshes))}",
            hint="Put all tensors on one mesh, or make a definition for each.",
        )
    return meshes[0]


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
