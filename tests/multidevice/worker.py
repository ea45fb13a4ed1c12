"""One process of a job: ``python -m tests.multidevice.worker RANK DEVICE FOLDER``.

Runs every program of as many devices as there are processes, with two also the checks of this file,
and writes what went wrong in each.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from tests.multidevice.cases import Case, cut, rand
from tests.multidevice.programs import of_size
from tests.multidevice.simulate import part_of
from tritonfuser import FusionDefinition, execute_with_dtensors, multidevice

Communicator, DeviceMesh = multidevice.Communicator, multidevice.DeviceMesh
CHECKS: dict[str, Callable[[str], None]] = {}


def check(function: Callable[[str], None]) -> None:
    """Add a check of this file; it is given the kind of device."""
    CHECKS[function.__name__] = function


def close(out: torch.Tensor, reference: torch.Tensor) -> None:
    limit = 1e-2 if out.dtype is torch.bfloat16 else 1e-5
    wanted = reference.to(out.dtype)
    torch.testing.assert_close(out.cpu(), wanted, rtol=limit, atol=limit, equal_nan=True)


def run_case(case: Case, device: str) -> None:
    """This process's parts in and out, compared with those of the reference; twice."""
    rank = dist.get_rank()
    fd = case.definition()
    shardings = dict(fd.fusion.shardings)
    given = []
    for value, x in zip(fd.fusion.ir.inputs, case.inputs, strict=True):
        if isinstance(x, torch.Tensor):
            own = shardings.get(value)
            x = x if own is None else part_of(x, own.shards, case.mesh, rank)
            x = x.to(device)
        given.append(x)
    double = [x.double() if getattr(x, "is_floating_point", bool)() else x for x in case.inputs]
    wanted = case.reference(*double)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for _ in range(2):
        outputs = fd.run(given)
        if case.shards is not None:
            assert [s.shards for s in fd.fec.get_output_shardings()] == case.shards
        for out, reference, sharding in zip(
            outputs, wanted, fd.fec.get_output_shardings(), strict=True
        ):
            assert out.device.type == device
            close(out, part_of(reference, sharding.shards, case.mesh, rank))


@check
def communicator(device: str) -> None:
    own = Communicator.instance()
    assert (own.size(), own.rank()) == (dist.get_world_size(), dist.get_rank())
    assert own.is_available()
    own.barrier()


@check
def mesh_in_another_order(device: str) -> None:
    """Device 1 has the first part."""
    mesh = DeviceMesh([1, 0])
    with FusionDefinition() as fd:
        x = cut(fd.define_tensor([-1, -1], contiguity=True), mesh, 0)
        out = fd.ops.add(x, x)
        fd.add_output(cut(out, mesh))
    whole = torch.arange(8.0).reshape(4, 2)
    part = mesh.shard_tensor(whole, 0, dist.get_rank())
    assert torch.equal(part, whole[2:] if dist.get_rank() == 0 else whole[:2])
    (out,) = fd.run([part.to(device)])
    assert torch.equal(out.cpu(), whole * 2)


@check
def written_inputs(device: str) -> None:
    """An aliased input gets its part; one that is whole gets the sum of all parts."""
    rank, mesh = dist.get_rank(), DeviceMesh([0, 1])
    with FusionDefinition() as fd:
        x = cut(fd.define_tensor([-1, -1], contiguity=True), mesh, 0)
        total = cut(fd.define_tensor([-1], contiguity=True), mesh)
        fd.add_output(fd.ops.mul(x, 2.0), x)
        new = fd.ops.add(total, fd.ops.sum(x, [0]))
        fd.add_output(new, total)
        fd.add_output(new)
    whole = torch.arange(8.0).reshape(4, 2)
    part = mesh.shard_tensor(whole, 0, rank).clone().to(device)
    sums = torch.ones(2, device=device)
    (out,) = fd.run([part, sums])
    assert out.data_ptr() == sums.data_ptr()
    assert torch.equal(sums.cpu(), whole.sum(0) + 1)
    assert torch.equal(part.cpu(), mesh.shard_tensor(whole * 2, 0, rank))


@check
def dtensors(device: str) -> None:
    """Placements of inputs are taken over, those of outputs come back."""
    mesh = init_device_mesh(device, (2,))
    whole = [rand(4, 6).to(device), rand(6).to(device)]
    for x in whole:
        dist.broadcast(x, 0)
    given = [
        distribute_tensor(x, mesh, p)
        for x, p in zip(whole, ([Shard(0)], [Replicate()]), strict=True)
    ]
    with FusionDefinition() as fd:
        x, b = (fd.define_tensor([-1] * x.dim(), contiguity=True) for x in whole)
        y = fd.ops.mul(x, fd.ops.broadcast(b, [True, False]))
        fd.add_output(y)
        fd.add_output(fd.ops.sum(y, [0]))
    for _ in range(2):
        y, total = execute_with_dtensors(fd, given)
        assert isinstance(y, DTensor)
        assert y.device_mesh == mesh
        assert (y.placements, total.placements) == ((Shard(0),), (Replicate(),))
        close(y.full_tensor(), (whole[0] * whole[1]).cpu())
        close(total.to_local(), (whole[0] * whole[1]).sum(0).cpu())


@check
def dtensors_of_one_dim_over_a_grid(device: str) -> None:
    mesh = init_device_mesh(device, (2, 1))
    whole = torch.arange(24.0, device=device).reshape(4, 6)
    given = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([4, 6], contiguity=True)))
    (out,) = execute_with_dtensors(fd, [given])
    assert out.placements == (Shard(0), Shard(1))
    close(out.full_tensor(), -whole.cpu())


@check
def uneven_dtensors(device: str) -> None:
    mesh = init_device_mesh(device, (2,))
    given = distribute_tensor(torch.ones(3, 2, device=device), mesh, [Shard(0)])
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1, -1])))
    try:
        execute_with_dtensors(fd, [given])
    except RuntimeError as error:
        assert "is not cut evenly over 2 devices" in str(error)
    else:
        raise AssertionError("accepted")


@check
def parts_of_several_sizes(device: str) -> None:
    """Parts whose sizes no device can tell alone: all devices raise, and work on."""
    rank, mesh = dist.get_rank(), DeviceMesh([0, 1])
    with FusionDefinition() as fd:
        x = cut(fd.define_tensor([-1, -1], contiguity=True), mesh, 0)
        b = fd.define_tensor([-1], contiguity=True)
        fd.add_output(cut(fd.ops.add(x, fd.ops.broadcast(b, [True, False])), mesh))
        fd.add_output(cut(fd.ops.sum(x, [0]), mesh))
    runs = [((3, 2), (4, 4)), ((2, 2), (4, 4))]
    # On a GPU a device that has run a size before does not ask the others again.
    runs += [((2, 2), (4, 5)), ((2, 3), (4, 4))] if device == "cpu" else []
    for rows, columns in runs:
        own, other = ([rows[r], columns[r]] for r in (rank, 1 - rank))
        given = [torch.ones(own, device=device), torch.ones(own[1], device=device)]
        text = (
            "Expected input 0, tv0, to be of one shape on all devices of the mesh, but got "
            f"{own} here and {other} on device {1 - rank}"
        )
        try:
            whole, total = fd.run(given)
        except RuntimeError as error:
            assert own != other and text in str(error) and "worker.py" in str(error), error
        else:
            assert own == other, "accepted"
            close(whole, torch.full((4, 4), 2.0))
            close(total, torch.full((4,), 4.0))


def main(rank: int, device: str, folder: Path) -> None:
    own, count = Communicator.instance(), int(os.environ["WORLD_SIZE"])
    assert (own.rank(), own.size(), own.local_rank()) == (rank, count, rank)
    if device == "cuda":
        torch.cuda.set_device(own.local_rank())
    torch.set_num_threads(1)
    # What the launcher says is enough to meet: nothing else initialises torch.distributed.
    assert not own.is_available()
    own.barrier()
    jobs = {c.name: lambda device, c=c: run_case(c, device) for c in of_size(count)}
    found: dict[str, str] = {}
    for name, job in {**jobs, **(CHECKS if count == 2 else {})}.items():
        # Where a process ends in the middle, its log says in which program.
        sys.stderr.write(f"{name}\n")
        try:
            job(device)
            found[name] = ""
        except Exception:
            found[name] = traceback.format_exc()
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
