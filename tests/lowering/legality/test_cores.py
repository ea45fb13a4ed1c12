"""Kernels that are built around an op have the scheduler that the op's facts name, and its rows."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.harness import H200, lowered
from tritonfuser.heuristics import schedulers
from tritonfuser.heuristics.params import PARAMS
from tritonfuser.heuristics.problem import Core, ElementWork
from tritonfuser.lowering.access.node_kinds import is_core
from tritonfuser.lowering.groups.cores import core_row
from tritonfuser.lowering.legality.scheduler import why_not_scheduler
from tritonfuser.lowering.product_policy import ProductPolicy


def fused(fd, a, b):
    return fd.ops.relu(fd.ops.matmul(a, b))


@pytest.fixture(scope="module")
def segment():
    """The segment of a product with an epilogue."""
    inputs = [torch.empty(256, 256, dtype=torch.bfloat16, device="meta") for _ in range(2)]
    (found,) = lowered(fused, inputs, H200, products=ProductPolicy.KERNELS).segmented.segments
    return found


@pytest.mark.parametrize("name", sorted({*PARAMS} - {"matmul", "expr_eval"}))
def test_no_other_scheduler_can_be_given(name, segment):
    assert why_not_scheduler(name, segment.problem) == "the kernel has a matrix product"


def test_the_op_names_its_scheduler(segment):
    assert segment.scheduler == segment.problem.core.scheduler == "matmul"
    assert why_not_scheduler("matmul", segment.problem) is None
    assert schedulers.refusals(segment.problem) == []


@pytest.mark.parametrize("core", Core.__subclasses__())
def test_every_op_has_its_scheduler(core):
    assert core.scheduler in {row.name for row in schedulers.OF_CORES} and core.words


def test_a_kernel_is_built_around_its_first_member(segment):
    first, *others = segment.members
    assert is_core(first.node) and not any(is_core(member.node) for member in others)
    assert core_row(first.node).description(first.node) == "a matrix product of 256 x 256 x 256"


def test_the_time_is_that_of_the_scheduler_s_row(segment):
    found = schedulers.kernel_seconds(segment.problem, segment.params, ElementWork())
    assert found is not None and "tensor cores" in found.resources
