"""schedule, fd.sched, idm: what schedulers are asked; launch params as plain data."""

from __future__ import annotations

import copy
import re
from dataclasses import replace

import pytest
import torch

from tritonfuser import (
    CompileParams,
    DataType,
    FusionDefinition,
    LaunchParams,
    PointwiseParams,
    ReductionParams,
    SchedulerType,
    TransposeParams,
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
        assert schedule.can_schedule(fd.fusion, other, [X]) == (other is kind)
        assert fd.sched.can_schedule(other) == (other is kind)
        assert bool(fd.sched.can_schedule(other).reason) == (other is not kind)
    (segment,) = fd.segments([X]).segments
    assert segment.scheduler == name


REASONS = {
    "none": "it stands for no scheduler",
    "no_op": "there are elements to compute",
    "pointwise": "the kernel has reductions",
    "matmul": "the kernel has no matrix product",
    "reduction": "a reduction's result is used along the reduced axis",
    "inner_outer_persistent": "the kernel does not reduce over its rows",
    "outer_persistent": "rows lie along memory",
    "transpose": "the kernel has reductions",
    "expr_eval": "torch does not run what is in the kernel",
    "resize": "slices, pads and concatenations are index maps here, in kernels of any scheduler",
    "scan": "the kernel has no scan",
}


@pytest.mark.parametrize("name", REASONS)
def test_a_refusal_has_its_reason(name):
    fd = defined(softmax)
    answer = fd.sched.can_schedule(SchedulerType[name], [X])
    assert not answer and answer == False  # noqa: E712 - as a program may ask
    assert answer.reason == REASONS[name]
    assert repr(answer) == f"False: {REASONS[name]}"
    assert copy.copy(answer).reason == REASONS[name]
    with pytest.raises(RuntimeError, match=re.escape(f"by {name}: {REASONS[name]}")):
        fd.sched.compute_heuristics(SchedulerType[name], [X])
    assert repr(fd.sched.can_schedule(SchedulerType.inner_persistent, [X])) == "True"


def test_what_torch_runs():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.argsort(matrix(fd), 1))
    assert fd.sched.find_compatible_schedulers([X]) == [SchedulerType.expr_eval]
    assert fd.sched.can_schedule(SchedulerType.reduction, [X]).reason == (
        "its scheduler is expr_eval"
    )


def test_another_scheduler_than_the_first():
    """What a scheduler refuses because another is faster, its kernels can do all the same."""
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.ops.permute(matrix(fd), [1, 0])))
    assert fd.sched.find_compatible_schedulers([X]) == [SchedulerType.pointwise]
    answer = fd.sched.can_schedule(SchedulerType.transpose, [X])
    assert answer.reason == "no tile of two sides is faster"
    for params in (PointwiseParams(block_x=64), TransposeParams(block_x=16, block_y=8)):
        fd.sched.schedule(SchedulerType(params.scheduler), params)
        (out,) = fd.run_kernel([X])
        assert torch.equal(out, -X.T)
        left_out = {"axes": (), "across": (), "first": ""}  # what the rules say
        known = {field: value for field, value in left_out.items() if hasattr(params, field)}
        assert replace(fd.ke.params, **known) == params
    wrong = ReductionParams(block_x=1, block_r=64, persistent=True)
    with pytest.raises(ValueError, match="the kernel has no reduction"):
        fd.run_kernel([X], wrong)


def test_two_schedulers_take_what_is_empty():
    fd, empty = defined(gelu), X[:0]
    kinds = fd.sched.find_compatible_schedulers([empty])
    assert kinds == [SchedulerType.no_op, SchedulerType.pointwise]
    params = fd.sched.compute_heuristics(SchedulerType.pointwise, [empty])
    (out,) = fd.run_kernel([empty], params)
    assert out.shape == (0, 32)


def test_a_schedule_is_that_of_the_next_kernel():
    fd = defined(gelu)
    params = fd.sched.compute_heuristics(SchedulerType.pointwise, [X])
    params.block_x = 2 * params.block_x
    assert fd.sched.schedule(SchedulerType.pointwise, params) is params
    (out,) = fd.run_kernel([X])
    assert fd.ke.params == params
    first = fd.ke.params
    params.block_x = 64
    fd.run_kernel([X])
    assert fd.ke.params == first != params, "a change after schedule() is none of its own"
    fd.sched.schedule(SchedulerType.pointwise, params)
    (out,) = fd.run_kernel([X])
    assert fd.ke.params == params
    torch.testing.assert_close(out, X * torch.erf(X))
    with pytest.raises(ValueError, match="expected the params of reduction, got Pointwise"):
        fd.sched.schedule(SchedulerType.reduction, params)


def test_several_kernels_have_no_scheduler():
    fd = defined(two_kernels)
    assert len(fd.segments([X]).segments) > 1
    assert schedule.find_compatible_schedulers(fd.fusion, [X]) == []
    assert "it is 2 segments" in schedule.can_schedule(fd.fusion, SchedulerType.scan, [X]).reason
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
