"""All devices of a mesh in one process, step by step, parts exchanged by hand."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch

from tritonfuser import FusionDefinition
from tritonfuser.frontend.multidevice.communicator import _JOIN, ADDED, Communicator, join
from tritonfuser.frontend.multidevice.exchanges import collectives
from tritonfuser.frontend.multidevice.local_programs import LocalPrograms
from tritonfuser.frontend.multidevice.mesh_program import Exchange, Program
from tritonfuser.frontend.record.cuts import Cut, Shards
from tritonfuser.frontend.record.device_mesh import DeviceMesh


def places(size: int, cut: Cut, mesh: DeviceMesh, device: int) -> list[int] | slice:
    """The indices of a dim that a device has."""
    found = torch.arange(size)
    extents = [f if isinstance(f, int) else mesh.size_of(f) for f in cut]
    rest = size // math.prod(n for n in extents if n > 0)
    shape = [rest if n == -1 else n for n in extents]
    own = found.reshape([*shape, 1 if -1 in extents else rest])
    for place, factor in reversed(list(enumerate(cut))):
        if not isinstance(factor, int):
            own = own.select(place, mesh.coordinate(device, factor))
    return own.flatten().tolist() if cut else slice(None)


def part_of(whole: torch.Tensor, shards: Shards, mesh: DeviceMesh, device: int) -> torch.Tensor:
    """What a device has of a tensor, dense in the same memory order."""
    found = whole
    for dim, cut in enumerate(shards):
        found = found[(slice(None),) * dim + (places(whole.size(dim), cut, mesh, device),)]
    sizes = found.shape
    for dim, step in enumerate(whole.stride()):
        if not step and sizes[dim]:
            found = found.narrow(dim, 0, 1)
    order = sorted(range(whole.dim()), key=lambda d: -whole.stride(d))
    dense = found.permute(order).contiguous()
    return dense.permute([order.index(d) for d in range(whole.dim())]).expand(sizes)


def joined(parts: dict[int, torch.Tensor], shards: Shards, mesh: DeviceMesh) -> torch.Tensor:
    """The whole tensor; devices that have the same part must agree."""
    sizes = [
        size * math.prod(mesh.size_of(f) for f in cut if not isinstance(f, int))
        for size, cut in zip(parts[mesh.device_ids[0]].shape, shards, strict=True)
    ]
    found = parts[mesh.device_ids[0]].new_zeros(sizes)
    seen = torch.zeros(sizes, dtype=torch.bool)
    for device, part in parts.items():
        cuts = zip(sizes, shards, strict=True)
        at = [torch.arange(n)[places(n, cut, mesh, device)] for n, cut in cuts]
        index = torch.meshgrid(*at, indexing="ij") if at else ()
        before = torch.where(seen[index], found[index], part)
        torch.testing.assert_close(before, part, rtol=0, atol=0, equal_nan=True)
        found[index], seen[index] = part, True
    assert seen.all()
    return found


class SimulatedGroup:
    """Stands for the processes of some ranks."""

    def __init__(self, parts: list[torch.Tensor], place: int) -> None:
        self._parts = parts
        self._place = place

    def all_gather(self, own: torch.Tensor, dim: int, blocks: int) -> torch.Tensor:
        return join(self._parts, dim, blocks)

    def all_reduce(self, own: torch.Tensor, how: str) -> torch.Tensor:
        return functools.reduce(_JOIN[how], self._parts)

    def reduce_scatter(self, own: torch.Tensor, dim: int, blocks: int) -> torch.Tensor:
        total, count = self.all_reduce(own, ADDED), len(self._parts)
        rows = total.unflatten(dim, (blocks, count, total.size(dim) // blocks // count))
        return rows.select(dim + 1, self._place).flatten(dim, dim + 1)


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
        programs = LocalPrograms(self.fd.fusion.ir, self.fd.fusion.shardings, max_programs=1)
        return programs.get(self._given(device), torch.device("cpu"))

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
        """One collective at a time, all devices at once, as collectives are."""
        now = {d: own[step.value, step.have] for d, own in have.items()}
        for collective in collectives(step.have, step.want):
            teams = {d: self.mesh.team(d, collective.kind) for d in now}
            groups = {d: SimulatedGroup([now[o] for o in f], f.index(d)) for d, f in teams.items()}
            now = {d: collective(groups[d], x) for d, x in now.items()}
        for device, own in have.items():
            own[step.value, step.want] = now[device]
