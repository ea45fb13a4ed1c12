"""All devices of a mesh in one process, step by step, parts exchanged by hand."""

from __future__ import annotations

import functools
from typing import Any

import torch

from tritonfuser import FusionDefinition, ParallelType
from tritonfuser.frontend.multidevice import sharded_executor as sharded
from tritonfuser.frontend.multidevice.communicator import _JOIN, Communicator
from tritonfuser.frontend.multidevice.mesh_program import Exchange, Program
from tritonfuser.frontend.record.device_mesh import DeviceMesh
from tritonfuser.frontend.record.sharding import Shards


def part_of(whole: torch.Tensor, shards: Shards, mesh: DeviceMesh, device: int) -> torch.Tensor:
    """What a device has of a tensor, dense in the same memory order."""
    for dim, kinds in enumerate(shards):
        for kind in kinds:
            whole = whole.chunk(mesh.size_of(kind), dim)[mesh.coordinate(device, kind)]
    sizes, stretched = whole.shape, [step == 0 for step in whole.stride()]
    for dim in (d for d, is_so in enumerate(stretched) if is_so and sizes[d]):
        whole = whole.narrow(dim, 0, 1)
    order = sorted(range(whole.dim()), key=lambda d: -whole.stride(d))
    dense = whole.permute(order).contiguous()
    return dense.permute([order.index(d) for d in range(whole.dim())]).expand(sizes)


def joined(parts: dict[int, torch.Tensor], shards: Shards, mesh: DeviceMesh) -> torch.Tensor:
    """The whole tensor; devices that have the same part must agree."""
    found = dict(parts)
    for kind in (ParallelType.mesh_x, ParallelType.mesh_y, ParallelType.mesh_z)[: mesh.rank]:
        found = {d: _line(found, mesh, d, kind, shards) for d in found}
    return found[mesh.device_ids[0]]


def _line(
    parts: dict[int, torch.Tensor],
    mesh: DeviceMesh,
    device: int,
    kind: ParallelType,
    shards: Shards,
) -> torch.Tensor:
    own = [parts[d] for d in mesh.fiber(device, kind)]
    dims = [dim for dim, kinds in enumerate(shards) if kind in kinds]
    if dims:
        return torch.cat(own, dims[0])
    for other in own:
        torch.testing.assert_close(other, own[0], rtol=0, atol=0, equal_nan=True)
    return own[0]


class Line:
    """Stands for the processes of some ranks."""

    def __init__(self, parts: list[torch.Tensor]) -> None:
        self._parts = parts

    def joined(self, own: torch.Tensor, dim: int) -> torch.Tensor:
        return torch.cat(self._parts, dim)

    def combined(self, own: torch.Tensor, how: str) -> torch.Tensor:
        return functools.reduce(_JOIN[how], self._parts)


class Simulation:
    """A definition run for every device of its mesh, on parts of whole inputs."""

    def __init__(self, fd: FusionDefinition, inputs: list[Any], monkeypatch: Any) -> None:
        self.fd = fd
        self.inputs = inputs
        self.mesh = fd.fusion.shardings[0][1].mesh
        self._patch = monkeypatch
        self.programs = {d: self._program(d) for d in self.mesh.device_ids}

    @property
    def first(self) -> Program:
        return self.programs[self.mesh.device_ids[0]].program

    def _be(self, device: int) -> None:
        self._patch.setattr(Communicator, "rank", lambda self: device)

    def _given(self, device: int) -> list[Any]:
        shardings = dict(self.fd.fusion.shardings)
        values = self.fd.fusion.ir.inputs
        return [
            part_of(x, shardings[v].shards, self.mesh, device) if v in shardings else x
            for v, x in zip(values, self.inputs, strict=True)
        ]

    def _program(self, device: int) -> Any:
        self._be(device)
        core = sharded.ShardedExecutor(self.fd.fusion.ir, self.fd.fusion.shardings)
        return core._bound(self._given(device), torch.device("cpu"))

    def run(self) -> list[torch.Tensor]:
        """The whole outputs."""
        have = {
            d: dict(zip(bound.program.inputs, self._given(d), strict=True))
            for d, bound in self.programs.items()
        }
        for number, step in enumerate(self.first.steps):
            if isinstance(step, Exchange):
                self._exchange(have, step)
                continue
            for device, bound in self.programs.items():
                own = have[device]
                run = bound.program.steps[number]
                made = bound.cores[number].execute([own[key] for key in run.inputs])
                own.update(zip(run.outputs, made, strict=True))
        return [
            joined({d: have[d][key] for d in have}, key[1].shards, self.mesh)
            for key in self.first.outputs
        ]

    def _exchange(self, have: dict[int, Any], step: Exchange) -> None:
        """One hop at a time, all devices at once, as collectives are."""
        now = {d: own[step.value, step.have] for d, own in have.items()}
        hops = [("combined", kind, how) for kind, how in step.have.partial]
        for dim, (had, want) in enumerate(zip(step.have.shards, step.want.shards, strict=True)):
            hops += [("joined", kind, dim) for kind in reversed(had[len(want) :])]
        for name, kind, how in hops:
            lines = {d: Line([now[o] for o in self.mesh.fiber(d, kind)]) for d in now}
            now = {d: getattr(lines[d], name)(x, how) for d, x in now.items()}
        for device, own in have.items():
            own[step.value, step.want] = now[device]
