"""Dims as nvFuser shows them: domains, axes, splits; expressions by class."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import (
    BroadcastOp,
    DataType,
    Expr,
    FusionDefinition,
    IterDomain,
    Merge,
    ParallelType,
    ReshapeOp,
    Split,
    SqueezeOp,
    Statement,
    TensorDomain,
    multidevice,
)
from tritonfuser.frontend.record.refused_methods import LOOP_METHODS

X = ParallelType.mesh_x


@pytest.fixture
def fd():
    with FusionDefinition() as fd:
        yield fd
        fd.add_output(fd.ops.neg(fd.define_tensor([2])))


def number(val):
    assert not val.is_symbolic()
    return val.value.value


# --- axes ----------------------------------------------------------------------------------------


def test_the_dims_of_an_input(fd):
    t = fd.define_tensor([-1, 4, 1, 3], contiguity=[True, True, None, None])
    domain = t.domain()
    assert isinstance(domain, TensorDomain)
    assert isinstance(domain, Statement)
    assert domain.ndim == 4
    dynamic, static, one, stretched = domain.logical()
    assert all(isinstance(axis, IterDomain) for axis in domain.logical())
    assert str(domain) == "[ iS0{i0}, iS1{4}, bS2{1}, bS3{1 ex 3} ]"
    assert [axis.is_symbolic() for axis in domain.logical()] == [True, False, False, False]
    assert [axis.is_broadcast() for axis in domain.logical()] == [False, False, True, True]
    assert [axis.is_iteration() for axis in domain.logical()] == [True, True, False, False]
    assert [axis.has_expanded_extent() for axis in domain.logical()] == [False, False, False, True]
    assert [number(axis.extent()) for axis in (static, one, stretched)] == [4, 1, 1]
    assert number(stretched.expanded_extent()) == 3
    assert number(static.expanded_extent()) == 4
    assert dynamic.extent().dtype() is DataType.Int
    assert not any(axis.is_reduction() or axis.is_parallelized() for axis in domain.logical())
    assert t.axis(0) is dynamic
    assert t.axis(-1) is stretched
    assert t.get_logical_domain() == t.get_loop_domain() == t.get_root_domain()
    assert not t.has_root()
    assert dynamic.definition() is None
    assert dynamic.str() == "iS0{i0}"


def test_an_extent_is_a_size_like_any_other():
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.full([t.axis(0).extent()], 2.0, DataType.Float))
    assert torch.equal(fd.run([torch.ones(3)])[0], torch.full((3,), 2.0))


@pytest.mark.parametrize(
    ("reduce", "text"),
    [
        (lambda ops, t: ops.sum(t, [1]), "[ iS0{i0}, rS1{4} ]"),
        (lambda ops, t: ops.max(t), "[ rS0{i0}, rS1{4} ]"),
        (lambda ops, t: ops.welford(t, [0])[2], "[ rS0{i0}, iS1{4} ]"),
        (lambda ops, t: ops.sum(t, [1], keepdim=True), "[ iS0{i0}, bS1{1} ]"),
        (lambda ops, t: ops.cumsum(t, 1), "[ iS0{i0}, iS1{4} ]"),
    ],
)
def test_reduced_dims_stay_in_the_domain(fd, reduce, text):
    out = reduce(fd.ops, fd.define_tensor([-1, 4]))
    assert str(out.domain()) == text


def test_dims_that_are_not_there(fd):
    t = fd.define_tensor([-1, 4])
    for dim in (2, -3):
        with pytest.raises(RuntimeError, match=f"dim {dim} of a tensor with 2 dims"):
            t.axis(dim)
    for dim in (1.0, True, None):
        with pytest.raises(TypeError, match=r"axis\(\): incompatible function arguments"):
            t.axis(dim)


# --- splits --------------------------------------------------------------------------------------


def test_a_split_takes_the_place_of_a_dim(fd):
    t = fd.define_tensor([-1, 10])
    old = t.axis(1)
    assert t.outer_split(1, 4) is t
    assert str(t.domain()) == "[ iS0{i0}, iS1{4}, iS1{3} ]"
    made = t.axis(1).definition()
    assert isinstance(made, Split)
    assert isinstance(made, Expr)
    assert not isinstance(made, Merge)
    assert made.op == "Split"
    assert made.in_() is old
    assert made.inputs() == [old]
    assert made.outputs() == [made.outer(), made.inner()] == [t.axis(1), t.axis(2)]
    assert made.output(0) is made.outer()
    assert made.factor == 4
    assert not made.inner_split()
    assert str(made) == "iS1{10} -> outer split by factor 4 -> [iS1{4}, iS1{3}]"
    t.split(-1, 2)
    assert str(t.domain()) == "[ iS0{i0}, iS1{4}, iS1{2}, iS1{2} ]"
    assert t.axis(3).definition().inner_split()
    t.inner_split(0, 8)
    assert str(t.axis(0)) == "iS0{( ceilDiv(i0, 8) )}"
    assert t.axis(0).is_symbolic()
    assert t.get_logical_domain()[1] is old
    assert old.leaves() == t.get_loop_domain()[2:]


def test_the_extent_of_a_part_is_computed():
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1], contiguity=True)
        t.inner_split(0, fd.define_scalar(4))
        assert number(t.axis(1).extent()) == 4
        fd.add_output(fd.ops.full([t.axis(0).extent()], 1.0, DataType.Float))
    assert fd.run([torch.ones(9)])[0].shape == (3,)
    assert fd.run([torch.ones(8)])[0].shape == (2,)


def test_what_cannot_be_split(fd):
    t = fd.define_tensor([-1, 4])
    s = fd.define_scalar()
    for factor in (0, -1, 1.5, s):
        with pytest.raises(RuntimeError, match="split: expected a constant factor") as error:
            t.split(0, factor)
        assert f"at {__file__}" in str(error.value)
    t.axis(0).parallelize(X)
    with pytest.raises(RuntimeError, match="a serial dim"):
        t.split(0, 2)


def test_loops_in_another_order(fd):
    t = fd.define_tensor([2, 3, 4])
    assert t.reorder({0: -1}) is t
    assert str(t.domain()) == "[ iS1{3}, iS2{4}, iS0{2} ]"
    t.reorder([2, 0, 1])
    assert str(t.domain()) == "[ iS0{2}, iS1{3}, iS2{4} ]"
    t.reorder({0: 1, 1: 0})
    assert str(t.domain()) == "[ iS1{3}, iS0{2}, iS2{4} ]"
    for moves in ({0: 1, 1: 1}, [0, 1], [0, 0, 1]):
        with pytest.raises(RuntimeError, match="is no reordering of 3 dims"):
            t.reorder(moves)


def test_what_loops_run_over(fd):
    t = fd.define_tensor([2, 3])
    axis = t.axis(0)
    axis.parallelize(X)
    assert axis.is_device_dim()
    assert axis.is_parallelized()
    assert axis.parallel_type is X
    assert str(axis) == "ideviceIdx.x0{2}"
    axis.parallelize(ParallelType.serial)
    assert not axis.is_parallelized()
    axis.parallelize(ParallelType.stream)
    assert not axis.is_device_dim()
    assert str(axis) == "iStream0{2}"
    for kind in (ParallelType.block_x, ParallelType.grid_y, ParallelType.vectorize):
        with pytest.raises(RuntimeError, match=f"{kind.name}\\) is not available") as error:
            axis.parallelize(kind)
        assert "fd.heuristics(inputs)" in str(error.value)
    with pytest.raises(TypeError, match=r"parallelize\(\): incompatible function arguments"):
        axis.parallelize("mesh_x")


def test_the_memory_of_a_part_is_row_major(fd):
    t = fd.define_tensor([4, 6])
    t.outer_split(1, 2)
    t.axis(1).parallelize(X)
    t.set_allocation_domain(t.get_loop_domain(), True)
    one, kept, other = t.get_loop_domain()
    t.set_allocation_domain([kept, one, other], new_contiguity=True)
    for domain in ([other, kept, one], [one, kept], [one, one, kept], t.get_logical_domain()):
        with pytest.raises(RuntimeError, match=r"stride_order"):
            t.set_allocation_domain(domain)


@pytest.mark.parametrize("name", LOOP_METHODS)
def test_methods_on_loops_say_what_to_do(fd, name):
    t = fd.define_tensor([4])
    with pytest.raises(RuntimeError, match=f"{name}\\(\\) is not available") as error:
        getattr(t, name)(0, 1)
    assert f"at {__file__}" in str(error.value)
    assert "fd.run(inputs, params=[...])" in str(error.value)


def test_the_mesh_of_a_tensor(fd):
    t = fd.define_tensor([4])
    mesh = multidevice.DeviceMesh([0, 1])
    assert not t.has_device_mesh()
    assert t.get_device_mesh() is None
    t.set_device_mesh(mesh)
    assert t.get_device_mesh() is mesh
    with pytest.raises(TypeError, match="expected a DeviceMesh"):
        t.set_device_mesh([0, 1])


# --- expressions ---------------------------------------------------------------------------------


def test_expressions_have_nvfusers_classes(fd):
    t = fd.define_tensor([-1, 1])
    wide = fd.ops.broadcast(t, [False, True, False])
    flat = fd.ops.squeeze(t, [1])
    shaped = fd.ops.reshape(flat, [2, -1])
    total = fd.ops.sum(t, [0], keepdim=True)
    kinds = {wide: BroadcastOp, flat: SqueezeOp, shaped: ReshapeOp, total: BroadcastOp}
    for out, kind in kinds.items():
        made = out.definition()
        assert isinstance(made, kind)
        assert isinstance(made, Expr)
        assert not isinstance(made, Split | Merge)
        assert sum(isinstance(made, other) for other in {*kinds.values()}) == 1
        assert made.output(0) is out
    added = fd.ops.add(t, t).definition()
    assert not isinstance(added, BroadcastOp | SqueezeOp | ReshapeOp)
    assert added.input(1) is t
    assert {type(use) for use in t.uses()} >= {BroadcastOp, SqueezeOp}
