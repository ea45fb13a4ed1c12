"""schedule, fd.sched, idm: what schedulers are asked; launch params as plain data."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import (
    CompileParams,
    DataType,
    FusionDefinition,
    LaunchParams,
    PointwiseParams,
    SchedulerType,
    idm,
    schedule,
)
from tritonfuser.frontend.run.scheduler_queries import BY_HAND

X = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))


def matrix(fd):
    return fd.define_tensor([-1, -1], contiguity=True)


def gelu(fd):
    x = matrix(fd)
    return fd.ops.mul(x, fd.ops.erf(x))


def softmax(fd):
    exps = fd.ops.exp(matrix(fd))
    return fd.ops.div(exps, fd.ops.sum(exps, [1], keepdim=True))


def total(fd):
    return fd.ops.sum(matrix(fd), [1])


def two_kernels(fd):
    first = fd.ops.sum(matrix(fd), [0])
    return fd.ops.cumsum(fd.ops.cumsum(first, 0), 0)


def defined(result):
    with FusionDefinition() as fd:
        fd.add_output(result(fd))
    return fd


@pytest.mark.parametrize(
    ("result", "name"),
    [(gelu, "pointwise"), (total, "reduction"), (softmax, "inner_persistent")],
)
def test_one_scheduler_takes_a_kernel(result, name):
    fd, kind = defined(result), SchedulerType[name]
    for found in (
        schedule.find_compatible_schedulers(fd.fusion, [X]),
        schedule.find_compatible_schedulers(fd.fusion),
        fd.sched.find_compatible_schedulers(),
        fd.sched.find_compatible_schedulers([X]),
    ):
        assert found == [kind]
    for other in SchedulerType:
        assert schedule.can_schedule(fd.fusion, other, [X]) is (other is kind)
        assert fd.sched.can_schedule(other) is (other is kind)
    (segment,) = fd.segments([X]).segments
    assert segment.scheduler == name


def test_several_kernels_have_no_scheduler():
    fd = defined(two_kernels)
    assert len(fd.segments([X]).segments) > 1
    assert schedule.find_compatible_schedulers(fd.fusion, [X]) == []
    with pytest.raises(RuntimeError, match="Can not schedule the fusion by scan: it is") as error:
        schedule.compute_heuristics(fd.fusion, SchedulerType.scan, [X])
    assert f"at {__file__}" in str(error.value)


def test_params_are_computed_changed_and_used():
    fd = defined(gelu)
    params = schedule.compute_heuristics(fd.fusion, SchedulerType.pointwise, [X])
    assert isinstance(params, PointwiseParams)
    assert params == fd.sched.compute_heuristics(SchedulerType.pointwise, [X])
    assert [params] == fd.heuristics([X])
    assert schedule.schedule(fd.fusion, SchedulerType.pointwise, [X]) == params
    other = PointwiseParams(block_x=64)
    assert schedule.schedule(fd.fusion, SchedulerType.pointwise, other) is other
    (out,) = fd.run_kernel([X], other)
    torch.testing.assert_close(out, X * torch.erf(X))


def test_a_definition_is_asked_while_it_is_recorded():
    with FusionDefinition() as fd:
        fd.add_output(gelu(fd))
        assert fd.sched.can_schedule(SchedulerType.pointwise)


def test_arguments_that_are_none():
    with pytest.raises(TypeError, match="expected a Fusion first"):
        schedule.can_schedule(SchedulerType.pointwise)
    with pytest.raises(TypeError, match="expected a SchedulerType"):
        schedule.can_schedule(defined(gelu).fusion, "pointwise")
    with pytest.raises(AttributeError, match="did you mean split"):
        schedule.splitt  # noqa: B018


@pytest.mark.parametrize("name", BY_HAND)
def test_loops_are_not_scheduled_by_hand(name):
    for where in (schedule, FusionDefinition().sched):
        with pytest.raises(RuntimeError, match=f"schedule\\.{name}\\(\\) is not avail") as error:
            getattr(where, name)(None, 0, 4)
        assert f"at {__file__}" in str(error.value)
        assert "fd.heuristics(inputs)" in str(error.value)


def test_there_are_no_loop_graphs():
    with pytest.raises(RuntimeError, match=r"idm\.IdModel\(\) is not available") as error:
        idm.IdModel(defined(gelu).fusion)
    assert "fd.segments(inputs)" in str(error.value)


def test_launch_params_are_plain_data():
    params = LaunchParams(bdimx=128)
    params.gdimx = 4
    assert params == LaunchParams(4, -1, -1, 128)
    compiled = CompileParams(index_type=DataType.Int32, maxrregcount=128)
    assert compiled.enable_magic_zero
    assert compiled != CompileParams()
