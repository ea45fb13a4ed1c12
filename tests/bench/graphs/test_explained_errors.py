"""Errors that rounding explains are not doubtful; others are."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
import torch

from bench.processes.jobs import JobContext
from bench.random_graphs.report import is_doubtful
from bench.recorded.definition_job import DefinitionJob
from bench.recorded.definitions import RecordedDefinition, TensorInput

NEAR_A_BOUND = """def nvfuser_fusion(fd : FusionDefinition) -> None :
    tv0 = fd.define_tensor(shape=[64], contiguity=[True], dtype=DataType.Float, is_cpu=False)
    tv1 = fd.ops.mul(tv0, 0.00000)
    tv2 = fd.ops.add(tv1, 0.700000)
    tv3 = fd.ops.add(tv2, 0.100000)
    tv4 = fd.ops.lt(tv3, 0.800000)
    tv5 = fd.ops.where(tv4, tv0, 0.00000)
    fd.add_output(tv5)
"""
"""0.7 + 0.1 is less than 0.8 in float64 alone."""


@pytest.fixture
def found():
    inputs = (TensorInput((64,), (1,), torch.float32),)
    entry = RecordedDefinition("near", 0, NEAR_A_BOUND, inputs, 1)
    job = DefinitionJob(entry, 1e12, device="cpu", clock=lambda runs: {}, peers=())
    job.prepare(JobContext(contextlib.nullcontext()))
    return job.measure()


def test_the_other_side_of_a_comparison_is_explained(found):
    assert found.error > 0.5
    assert found.explained
    assert not is_doubtful(found)


def test_what_rounding_does_not_explain_is_doubtful(found):
    assert is_doubtful(replace(found, explained=False))
    assert is_doubtful(replace(found, explained=None))
    assert not is_doubtful(replace(found, explained=None, compiled_error=found.error))
    assert not is_doubtful(replace(found, explained=None, error=1e-3))
