"""Meshes, how tensors are cut over them, and definitions over a mesh of this process alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.multidevice import cases
from tests.multidevice.cases import CASES, X, Y, cut, rand
from tritonfuser import (
    FusionDefinition,
    FusionExecutorCache,
    LRUCache,
    ParallelType,
    execute_with_dtensors,
    multidevice,
)
from tritonfuser.compat import nvfuser_direct

DeviceMesh, Communicator = multidevice.DeviceMesh, multidevice.Communicator

# --- meshes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "devices", [[0, 1, 2], (0, 1, 2), range(3), torch.arange(3), torch.arange(3, dtype=torch.int32)]
)
def test_a_mesh_of_one_dim(devices):
    mesh = DeviceMesh(devices)
    assert mesh.size == 3 == mesh.size() == mesh.size(X)
    assert isinstance(mesh.size, int)
    assert mesh.shape == (3,)
    assert mesh.rank == 1
    assert mesh.device_ids == [0, 1, 2]
    assert torch.equal(mesh.devices, torch.arange(3))
    assert 2 in mesh
    assert 3 not in mesh
    assert mesh == DeviceMesh([0, 1, 2])
    assert mesh != DeviceMesh([0, 2, 1])
    assert mesh != [0, 1, 2]
    assert len({mesh, DeviceMesh([0, 1, 2]), DeviceMesh([[0, 1, 2]])}) == 2
    assert eval(repr(mesh)) == mesh


def test_a_mesh_of_two_dims():
    mesh = DeviceMesh(torch.tensor([[4, 5, 6], [0, 1, 2]]))
    assert mesh.size == 6
    assert (mesh.size(X), mesh.size_of(Y)) == (3, 2)
    assert mesh.shape == (2, 3)
    assert mesh.device_ids == [4, 5, 6, 0, 1, 2]
    assert (mesh.coordinate(1, X), mesh.coordinate(1, Y)) == (1, 1)
    assert mesh.team(1, X) == (0, 1, 2)
    assert mesh.team(1, Y) == (5, 1)
    assert repr(mesh) == "DeviceMesh([[4, 5, 6], [0, 1, 2]])"
    with pytest.raises(RuntimeError, match="has no mesh_z: its dims are mesh_x, mesh_y"):
        mesh.size_of(ParallelType.mesh_z)
    with pytest.raises(RuntimeError, match="has no block_x"):
        mesh.size_of(ParallelType.block_x)


@pytest.mark.parametrize("devices", [[], [0, 0], [-1, 0], torch.zeros(1, 1, 1, 1)])
def test_what_is_no_mesh(devices):
    kinds = (RuntimeError, TypeError)
    with pytest.raises(kinds, match="DeviceMesh"):
        DeviceMesh(devices)


@pytest.mark.parametrize("devices", [[0.5, 1.0], "01", None, [True, False], object()])
def test_what_holds_no_devices(devices):
    with pytest.raises(TypeError, match=r"DeviceMesh\(\): incompatible function arguments"):
        DeviceMesh(devices)


def test_parts_of_a_tensor():
    mesh = DeviceMesh([3, 1])
    whole = torch.arange(12).reshape(2, 6)
    assert torch.equal(mesh.shard_tensor(whole, 1, 3), whole[:, :3])
    assert torch.equal(mesh.shard_tensor(whole, -1, 1), whole[:, 3:])
    assert mesh.shard_tensor(whole, 1, 1).is_contiguous()
    assert torch.equal(DeviceMesh([3, 0]).shard_tensor(whole, 1), whole[:, 3:])
    for given in ((whole, 1, 0), (whole, 1), (whole, 2, 1), (whole[:, :3], 1, 1)):
        with pytest.raises(RuntimeError, match="has no part of 2 for device"):
            mesh.shard_tensor(*given)


def test_this_devices_part_of_a_tensor(monkeypatch):
    monkeypatch.setattr(Communicator, "rank", lambda self: 1)
    whole = torch.arange(24).reshape(4, 6)
    with FusionDefinition() as fd:
        plain = fd.define_tensor([-1, -1])
        t = cut(fd.define_tensor([-1, -1]), DeviceMesh([[0, 1], [2, 3]]), 1, Y)
        t.outer_split(2, 2)
        t.axis(2).parallelize(X)
        fd.add_output(plain)
        assert multidevice.shard_tensor(whole, plain) is whole
        with pytest.raises(RuntimeError, match=r"dim 1 of shape \[4, 6\] is not cut evenly by 4"):
            multidevice.shard_tensor(whole, t)
        part = multidevice.shard_tensor(torch.arange(8).reshape(1, 8), t)
        assert part.tolist() == [[2, 3]]
    with FusionDefinition() as fd:
        t = cut(fd.define_tensor([-1, -1]), DeviceMesh([[2, 3], [0, 1]]), 0)
        fd.add_output(t)
        assert torch.equal(multidevice.shard_tensor(whole, t), whole[2:])
        with pytest.raises(RuntimeError, match="expected a tensor of 2 dims"):
            multidevice.shard_tensor(whole[0], t)
        with pytest.raises(RuntimeError, match=r"dim 0 of shape \[3, 6\] is not cut evenly by 2"):
            multidevice.shard_tensor(whole[:3], t)


def test_one_process_alone(monkeypatch):
    own = Communicator.instance()
    assert own is Communicator.instance()
    assert (own.size(), own.rank(), own.local_size(), own.local_rank()) == (1, 0, 1, 0)
    assert own.is_available()
    own.barrier()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    assert (own.size(), own.rank(), own.local_size(), own.local_rank()) == (4, 3, 4, 3)
    assert not own.is_available()


# --- shardings -----------------------------------------------------------------------------------


def shards_of(spread, shape=(4, 6), mesh=(2,)):
    devices = torch.arange(torch.Size(mesh).numel()).reshape(mesh)
    with FusionDefinition() as fd:
        t = fd.define_tensor(list(shape), contiguity=True)
        t.set_device_mesh(DeviceMesh(devices))
        spread(t)
        ((_, sharding),) = fd.fusion.shardings
        fd.add_output(t)
    return sharding


def put(t, axis, kind=X):
    t.axis(axis).parallelize(kind)


def test_shardings():
    assert shards_of(lambda t: None).shards == ((), ())
    found = shards_of(lambda t: (t.outer_split(1, 2), put(t, 1)))
    assert found.shards == ((), (X,))
    assert found.axis_sharded_on(X) == 1
    assert found.axis_sharded_on(Y) == -1
    assert found.parts(1) == 2
    assert shards_of(lambda t: put(t, 0), shape=(2, 6)).shards == ((X,), ())
    assert shards_of(lambda t: put(t, 0), shape=(-1, 6)).shards == ((X,), ())
    assert shards_of(lambda t: (t.inner_split(0, 2), put(t, 0))).shards == ((X,), ())


def twice(t):
    t.outer_split(0, 2)
    put(t, 0, Y)
    t.outer_split(1, 1)
    t.outer_split(2, 2)
    put(t, 2)


def test_one_dim_along_two_dims_of_a_mesh():
    found = shards_of(twice, mesh=(2, 2))
    assert found.shards == ((Y, X), ())
    assert found.parts(0) == 4


@pytest.mark.parametrize(
    ("spread", "text"),
    [
        (lambda t: (t.outer_split(1, 4), t.outer_split(2, 2), put(t, 2)), "cut evenly by 8"),
        (lambda t: put(t, 0), "has 4 steps, the mesh has 2 devices along mesh_x"),
        (lambda t: (t.outer_split(0, 4), put(t, 0)), "has 4 steps, the mesh has 2 devices"),
        (lambda t: (t.outer_split(0, 2), put(t, 0, Y)), "has no mesh_y"),
        (
            lambda t: (t.outer_split(0, 2), put(t, 0), t.outer_split(2, 2), put(t, 2)),
            "uses a mesh type twice",
        ),
    ],
)
def test_what_is_no_sharding(spread, text):
    with pytest.raises(RuntimeError, match=text) as error:
        shards_of(spread)
    assert f"at {__file__}" in str(error.value)


# --- runs ----------------------------------------------------------------------------------------


def cut_definition(mesh, dim=0, kind="neg"):
    with FusionDefinition() as fd:
        x = cut(fd.define_tensor([-1, -1], contiguity=True), mesh, dim)
        fd.add_output(getattr(fd.ops, kind)(x))
    return fd


FOR_TWO = ("one step a device", "reduce scatter", "inner split")
# The other tables are of programs for as many devices as they say.
FOR_ANY = [
    case
    for case in CASES
    if case.shape == (2,)
    and case.name not in FOR_TWO
    and case.record.__module__ == "tests.multidevice.cases"
]


@pytest.mark.parametrize("case", FOR_ANY, ids=lambda case: case.name)
def test_a_mesh_of_one_device(case):
    case = replace(case, shape=(1,))
    fd = case.definition()
    for _ in range(2):
        outputs = fd.run(case.inputs)
        wanted = case.reference(*case.inputs)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for out, reference, sharding in zip(
            outputs, wanted, fd.fec.get_output_shardings(), strict=True
        ):
            torch.testing.assert_close(
                out, reference.to(out.dtype), rtol=1e-5, atol=1e-5, equal_nan=True
            )
            assert sharding.mesh == case.mesh


def test_a_view_and_an_input_keep_their_memory():
    with FusionDefinition() as fd:
        x = cut(fd.define_tensor([-1, -1], contiguity=True), DeviceMesh([0]), 0)
        fd.add_output(x)
        fd.add_output(fd.ops.permute(x, [1, 0]))
    x = rand(2, 3)
    same, turned = fd.run([x])
    assert same.data_ptr() == x.data_ptr() == turned.data_ptr()
    assert torch.equal(turned, x.t())


def test_inputs_written_crosswise():
    with FusionDefinition() as fd:
        x, y = (cut(fd.define_tensor([-1], contiguity=True), DeviceMesh([0]), 0) for _ in range(2))
        fd.add_output(fd.ops.set(x), y)
        fd.add_output(fd.ops.set(y), x)
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    assert fd.run([a, b]) == []
    assert (a.tolist(), b.tolist()) == ([3.0, 4.0], [1.0, 2.0])


def test_other_devices_are_out_of_reach():
    x = rand(4, 6)
    fd = cut_definition(DeviceMesh([0, 1]), dim=0)
    torch.testing.assert_close(fd.run([x])[0], -x)
    fd = cut_definition(DeviceMesh([0, 1]), dim=0, kind="sum")
    with pytest.raises(RuntimeError, match="other devices of the mesh cannot be reached") as error:
        fd.run([x])
    assert "torchrun" in str(error.value)
    with pytest.raises(RuntimeError, match=r"this process is device 0, the definition is for"):
        cut_definition(DeviceMesh([1, 2])).run([x])


def test_several_meshes():
    with FusionDefinition() as fd:
        x = cut(fd.define_tensor([-1]), DeviceMesh([0]))
        y = fd.ops.neg(x)
        with pytest.raises(RuntimeError, match="one definition over several meshes") as error:
            cut(y, DeviceMesh([1]))
        fd.add_output(y)
    assert f"at {cases.__file__}" in str(error.value)


def test_inputs_that_do_not_fit():
    with FusionDefinition() as fd:
        x = cut(fd.define_tensor([8, -1], contiguity=True), DeviceMesh([0, 1]), 0)
        fd.add_output(fd.ops.neg(x))
    assert fd.run([rand(4, 3)])[0].shape == (4, 3)
    with pytest.raises(RuntimeError, match="to have size 8 in dim 0") as error:
        fd.run([rand(8, 3)])
    assert f"at {__file__}" in str(error.value)
    for wrong in (rand(4), rand(4, 3).double(), 2.0):
        with pytest.raises(RuntimeError, match="Expected input 0"):
            fd.run([wrong])
    with pytest.raises(RuntimeError, match="Expected 1 inputs but got 0"):
        fd.run([])


def test_a_part_keeps_the_promised_layout():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, stride_order=[0, 1])
        fd.add_output(fd.ops.neg(cut(x, DeviceMesh([0, 1]), 1)))
    x = rand(1, 4).t()
    assert torch.equal(fd.run([x])[0], -x)
    with pytest.raises(RuntimeError, match="contiguous") as error:
        fd.run([rand(4, 3)])
    assert "Sizes are of whole tensors: this device's part is [4, 3]." in str(error.value)


def test_the_stride_of_one_row_says_nothing():
    """A row of a wider matrix: torch calls it contiguous whatever its stride along dim 0."""
    with FusionDefinition() as fd:
        x = cut(fd.define_tensor([-1, -1], contiguity=True), DeviceMesh([[0, 1], [2, 3]]), 0, Y)
        x.outer_split(2, 2)
        x.axis(2).parallelize(X)
        fd.add_output(fd.ops.neg(x))
    part = rand(2, 6)[:1, :3]
    assert part.stride() == (6, 1)
    assert torch.equal(fd.run([part])[0], -part)


def test_what_is_not_done_over_a_mesh():
    x, fd = rand(4, 6), cut_definition(DeviceMesh([0, 1]))
    (chosen,) = fd.heuristics([x])
    with pytest.raises(ValueError, match="params and schedules cannot be given"):
        fd.run([x], params=[chosen])
    with pytest.raises(RuntimeError, match="one kernel for a definition over a mesh"):
        cut_definition(DeviceMesh([0, 1])).run_kernel([x])
    with pytest.raises(RuntimeError, match="checking a definition over a mesh is not available"):
        fd.validate([x])


def test_sizes_of_the_pieces_never_get_kernels_of_their_own():
    """Devices would change kernels at different times, and have other bits of what both compute."""
    x, fd = rand(4, 6), cut_definition(DeviceMesh([0, 1]))
    fd.run([x])
    cores = [core for bound in fd.fec.core._programs.all() for core in bound.cores.values()]
    assert cores and all(core._hot is None for core in cores)


def test_looking_at_the_pieces():
    x, fd = rand(4, 6), cut_definition(DeviceMesh([0, 1]))
    assert not FusionExecutorCache(fd.fusion).is_compiled([x])
    with pytest.raises(RuntimeError, match="nothing was executed yet"):
        FusionExecutorCache(fd.fusion).get_output_shardings()
    (segment,) = fd.segments([x]).segments
    assert segment.scheduler == "pointwise"
    fd.run([x])
    assert fd.fec.is_compiled([x])
    assert not fd.fec.is_compiled([rand(2, 6)])
    assert "pointwise" in fd.fec.get_most_recent_scheduled_ir()
    assert [s.shards for s in fd.fec.get_output_shardings()] == [((X,), ())]
    with FusionDefinition() as fd:
        x_ = cut(fd.define_tensor([-1, -1], contiguity=True), DeviceMesh([0, 1]), 1)
        fd.add_output(fd.ops.mul(x_, fd.ops.sum(x_, [1], keepdim=True)))
    assert len(fd.kernels([x])) == len(fd.heuristics([x])) == 2
    assert [report.spill_bytes for report in fd.compile_for("sm_90", [x])] == [0, 0]
    with pytest.raises(RuntimeError, match="run in 2 pieces has no one plan"):
        fd.segments([x])


def test_a_definition_without_a_mesh_is_not_touched():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        x.axis(0).extent()
        fd.add_output(fd.ops.neg(x))
    fd.run([rand(3)])
    assert fd.fusion.shardings == ()
    assert fd.fec.get_output_shardings() == []
    assert not isinstance(fd.fec.core, multidevice.sharded_executor.ShardedExecutor)


def test_shardings_tell_fusions_apart():
    cache = LRUCache(8)
    meshes = (None, DeviceMesh([0]), DeviceMesh([0, 1]), DeviceMesh([0, 1]))
    fds = [cut_definition(mesh) if mesh else negation() for mesh in meshes]
    for fd in fds:
        cache.cache_compile(fd.fusion)
    assert cache.num_fusions() == 3
    assert fds[2].fusion == fds[3].fusion
    assert fds[0].fusion != fds[1].fusion != fds[2].fusion


def negation():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1, -1], contiguity=True)))
    return fd


def test_tensors_that_are_no_dtensors():
    with pytest.raises(TypeError, match=r"execute_with_dtensors\(\): incompatible"):
        execute_with_dtensors(negation(), [rand(2, 3)])
    with pytest.raises(TypeError, match=r"execute_with_dtensors\(\): incompatible"):
        execute_with_dtensors(negation(), [])


def test_nvfusers_names():
    assert nvfuser_direct.multidevice.DeviceMesh is DeviceMesh
    assert nvfuser_direct.multidevice.Communicator is Communicator
    assert nvfuser_direct.multidevice.CommunicatorBackend is nvfuser_direct.CommunicatorBackend
    assert nvfuser_direct.execute_with_dtensors is execute_with_dtensors
