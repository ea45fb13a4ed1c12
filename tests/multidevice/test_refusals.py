"""What cannot be spread over a mesh is refused when it is recorded, with op, line and a way out."""

from __future__ import annotations

import re

import pytest
import torch

from tests.multidevice.nvfuser_style import STREAM, X, Y, on, outer, tensor
from tritonfuser import CommunicatorBackend, FusionDefinition, MemoryType, multidevice
from tritonfuser.compat import nvfuser_direct

MESH = multidevice.DeviceMesh(torch.arange(2))
GRID = multidevice.DeviceMesh([[0, 1], [2, 3]])


def twice(fd):
    x = tensor(fd, 4, 4)
    on(MESH, x)
    outer(x, 0)
    outer(x, 2)


def uneven(fd):
    x = tensor(fd, 5, 4)
    on(MESH, x)
    outer(x, 0)


def uneven_blocks(fd):
    x = tensor(fd, 4, 4)
    on(MESH, x)
    x.outer_split(0, 4)
    outer(x, 1)


def other_count(fd):
    x = tensor(fd, 4, 4)
    on(MESH, x)
    x.axis(0).parallelize(X)


def no_such_mesh_dim(fd):
    x = tensor(fd, 4, 4)
    on(MESH, x)
    x.outer_split(0, 2)
    x.axis(0).parallelize(Y)


def other_mesh(fd):
    x, y = tensor(fd, 4, 4), tensor(fd, 4, 4)
    on(MESH, x)
    on(GRID, y)


def merged_on_the_mesh(fd):
    x = tensor(fd, 1, 2, 3)
    on(MESH, x)
    x.merge(1)
    x.axis(1).parallelize(X)


def through_a_merge(fd):
    x = tensor(fd, 3, 5)
    x.merge(0, 1).outer_split(0, 2)


def merge_of_one(fd):
    tensor(fd, 3, 5).merge(1, 1)


def merge_of_parallel(fd):
    x = tensor(fd, 4, 5)
    on(MESH, x)
    outer(x, 0)
    x.merge(0, 1)


def rfactor_of_kept(fd):
    fd.ops.sum(tensor(fd, 4, 4), [0]).rfactor([1])


def rfactor_of_all(fd):
    fd.ops.sum(tensor(fd, 4, 4), [0]).rfactor([0])


def op_of_partial(fd):
    total = fd.ops.sum(tensor(fd, 4, 4), [0])
    total.outer_split(0, 2)
    fd.ops.neg(total.rfactor([1]))


def swizzled_on_the_mesh(fd):
    x = tensor(fd, 4, 4)
    on(MESH, x)
    x.outer_split(0, 2)
    x.swizzle1d(0, X)
    x.axis(0).parallelize(X)


def swizzle_by_streams(fd):
    tensor(fd, 4, 4).swizzle1d(0, STREAM)


def shared_memory(fd):
    tensor(fd, 4, 4).set_memory_type(MemoryType.shared)


@pytest.mark.parametrize(
    ("record", "text", "hint"),
    [
        (twice, "parallelize: .* uses a mesh type twice", "one dim of a tensor"),
        (uneven, "split: .* cut evenly by 2", "Pad the dim"),
        (uneven_blocks, "split: .* cut evenly by 8", "Pad the dim"),
        (other_count, "parallelize: .* has 4 steps, the mesh has 2", "outer_split"),
        (no_such_mesh_dim, "has no mesh_y", ""),
        (other_mesh, "set_device_mesh: one definition over several meshes", "one mesh"),
        (merged_on_the_mesh, "parallelize: .* are merged", "Split the outer one"),
        (through_a_merge, "split: factor 2 cuts through", "before merging"),
        (merge_of_one, "merge: expected two serial dims", "Merge before"),
        (merge_of_parallel, "merge: expected two serial dims", "Merge before"),
        (rfactor_of_kept, "rfactor: expected loops that are reduced", "Split a reduced dim"),
        (rfactor_of_all, "rfactor: nothing is left to reduce", "Split a reduced dim"),
        (op_of_partial, "neg: .* are partial results", "rfactor"),
        (swizzled_on_the_mesh, "parallelize: .* swizzle1d", "ParallelType.stream"),
        (swizzle_by_streams, "swizzle1d: expected", "loop of the streams"),
        (shared_memory, r"set_memory_type\(MemoryType.shared\) is not available", "params"),
    ],
)
def test_refused_when_recorded(record, text, hint):
    def definition():
        with FusionDefinition() as fd:
            x = tensor(fd, 2)
            fd.add_output(fd.ops.neg(x))
            record(fd)

    with pytest.raises(RuntimeError, match=text) as error:
        definition()
    assert hint in str(error.value)
    assert re.search(r"at .*tests.multidevice", str(error.value)), str(error.value)


def test_what_is_refused_leaves_no_definition():
    fd = FusionDefinition()
    with pytest.raises(RuntimeError, match="cut evenly"), fd:
        uneven(fd)
    with pytest.raises(NotImplementedError, match="Fusion does not exist"):
        fd.run([])


def test_open_dims_are_refused_at_their_sizes():
    with FusionDefinition() as fd:
        x = tensor(fd, -1, -1)
        on(MESH, x)
        x.inner_split(0, 4)
        outer(x, 1)
        out = fd.ops.sum(x, [0])
        fd.add_output(out)
        on(MESH, out)
        outer(out, -1)
    with pytest.raises(RuntimeError, match="dim 0 of tv0 has 10 elements") as error:
        fd.run([torch.ones(5, 4)])
    assert "Pad the dim" in str(error.value)
    with pytest.raises(RuntimeError, match="dim 0 of tv1 has 3 elements"):
        fd.run([torch.ones(4, 3)])


def test_params_of_the_executor():
    params = nvfuser_direct.multidevice.MultiDeviceExecutorParams()
    assert params.backend_type is CommunicatorBackend.nccl
    params.backend_type = CommunicatorBackend.cuda
    params.use_allocation_cache = True
    params.offset_stream_indexing_by_rank = False
    assert "use_allocation_cache=True" in repr(params)
    with pytest.raises(TypeError, match=r"backend_type: .* expected a CommunicatorBackend"):
        params.backend_type = "nccl"
    with pytest.raises(TypeError, match="expected a bool"):
        params.use_allocation_cache = 1
    with pytest.raises(AttributeError):
        params.number_of_streams = 3


def test_the_executor():
    mesh = multidevice.DeviceMesh([0])
    with FusionDefinition() as fd:
        x, w = tensor(fd, 1, 4, 8), tensor(fd, 6, 8)
        out = fd.ops.linear(x, w)
        fd.add_output(out)
        on(mesh, x, w, out)
        x.axis(0).parallelize(X)
        out.axis(0).parallelize(STREAM)
    params = multidevice.MultiDeviceExecutorParams()
    executor = multidevice.MultiDeviceExecutor(fd.fusion, params)
    assert "linear" in str(executor)
    given = [torch.randn(1, 4, 8), torch.randn(6, 8)]
    (found,) = executor.run(given)
    torch.testing.assert_close(found, torch.nn.functional.linear(*given))
    assert "linear" in str(executor)
    with pytest.raises(RuntimeError, match="Expected input 1") as error:
        executor.run([given[0], 2.0])
    assert "nvfuser_style.py" in str(error.value)
    with pytest.raises(TypeError, match="expected a Fusion"):
        multidevice.MultiDeviceExecutor(fd)
    with pytest.raises(TypeError, match="expected MultiDeviceExecutorParams"):
        multidevice.MultiDeviceExecutor(fd.fusion, {})


def test_the_executor_without_a_mesh():
    with FusionDefinition() as fd:
        x = tensor(fd, -1, -1)
        out = fd.ops.neg(x)
        fd.add_output(out)
        out.outer_split(0, 2)
        out.axis(0).parallelize(STREAM)
    x = torch.ones(4, 2)
    for found in (multidevice.MultiDeviceExecutor(fd.fusion).run([x]), fd.run([x])):
        assert torch.equal(found[0], -x)
