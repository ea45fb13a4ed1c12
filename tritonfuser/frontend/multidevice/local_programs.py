"""This device's program of a definition over a mesh, for each signature of its parts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...cache import executor
from ...cache.calls.diagnosis import InputMismatch, explain_mismatch
from ...cache.calls.gradient_warning import warn_detached
from ...cache.keys.signature import signature
from ...cache.lru import LRU
from ...errors import InputError, SourceLoc
from ...ir import Fusion, Value
from ...lowering.passes.concretize import concretize
from ...lowering.passes.simplify import simplify
from ..record.cuts import span
from ..record.device_mesh import DeviceMesh
from ..record.sharding import Shardings
from .agreement import exchanges_parts, has_open_sizes
from .communicator import Communicator
from .mesh_planner import plan
from .mesh_program import Program, Run
from .placement import Placement


@dataclass
class BoundProgram:
    """A program with what runs its local fusions, and whether devices may disagree on sizes."""

    program: Program
    cores: dict[int, executor.FusionExecutorCache]
    sizes_may_differ: bool


class LocalPrograms:
    """Makes and keeps this device's programs of one definition.

    Parameters
    ----------
    fusion : Fusion
        The definition, of whole tensors.
    shardings : Shardings
        The tensors that were put on a mesh, all on the same one.
    max_programs : int
        How many are kept.

    Raises
    ------
    InputError
        Several meshes.
    """

    def __init__(self, fusion: Fusion, shardings: Shardings, max_programs: int) -> None:
        self.fusion = fusion
        self.mesh = _only_mesh(shardings)
        self._shardings = dict(shardings)
        self._programs: LRU[Hashable, BoundProgram] = LRU(max_programs)

    def get(self, inputs: Sequence[Any], where: torch.device) -> BoundProgram:
        """The program for parts like these, made where there is none.

        Raises
        ------
        InputError
            This process is not in the mesh, or the parts do not fit the definition.
        """
        return self._programs.get_or_make(_key(inputs), lambda: self._make(inputs, where))

    def has(self, inputs: Sequence[Any]) -> bool:
        """Whether there is a program for parts like these."""
        return _key(inputs) in self._programs

    def newest(self) -> BoundProgram | None:
        """The program that was used last."""
        return self._programs.newest()

    def all(self) -> list[BoundProgram]:
        """All programs that are kept."""
        return list(self._programs.values())

    def _make(self, inputs: Sequence[Any], where: torch.device) -> BoundProgram:
        device = self._own_device()
        warn_detached(inputs)
        whole = [self._whole(v, x) for v, x in zip(self.fusion.inputs, inputs, strict=False)]
        error = explain_mismatch(self.fusion, whole, abstract=True)
        if error is not None:
            raise self._in_whole(error, inputs)
        fusion = simplify(concretize(self.fusion, signature(self.fusion, whole, where)))
        pairs = zip(self.fusion.inputs, fusion.inputs, strict=True)
        inputs_at = [self._placed(recorded, value) for recorded, value in pairs]
        outputs = zip(self.fusion.outputs, fusion.outputs, strict=True)
        outputs_at = [self._placed(recorded.value, made.value) for recorded, made in outputs]
        program = plan(fusion, self.mesh, inputs_at, outputs_at, self._inside(fusion), device)
        # Results that several devices compute have the same bits on all of them, at all times.
        cores = {
            number: executor.FusionExecutorCache(step.fusion, hot_sizes=False)
            for number, step in enumerate(program.steps)
            if isinstance(step, Run)
        }
        sizes_may_differ = has_open_sizes(self.fusion) and exchanges_parts(program)
        return BoundProgram(program, cores, sizes_may_differ)

    def _own_device(self) -> int:
        """The number of this process's device.

        Raises
        ------
        InputError
            The device is not in the mesh.
        """
        device = Communicator.instance().rank()
        if device not in self.mesh:
            raise InputError(
                f"multidevice: this process is device {device}, the definition is for {self.mesh}",
                hint="Run a definition on the devices of its mesh alone.",
            )
        return device

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


def _key(inputs: Sequence[Any]) -> Hashable:
    """What of its parts a device's program depends on."""
    own = Communicator.instance().rank()
    return own, tuple(
        (x.shape, x.stride(), x.dtype, x.device) if isinstance(x, torch.Tensor) else x
        for x in inputs
    )


def _only_mesh(shardings: Shardings) -> DeviceMesh:
    meshes = list(dict.fromkeys(sharding.mesh for _, sharding in shardings))
    if len(meshes) > 1:
        raise InputError(
            f"multidevice: one definition over several meshes: {', '.join(map(str, meshes))}",
            hint="Put all tensors on one mesh, or make a definition for each.",
        )
    return meshes[0]
