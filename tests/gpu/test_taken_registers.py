"""Params that a first run chooses again, by the registers that its kernels take."""

from __future__ import annotations

import pytest
import torch

from bench.random_graphs.__main__ import named
from bench.recorded.definitions import make_inputs, record
from tritonfuser.cache.executor import FusionExecutorCache

pytestmark = pytest.mark.gpu


def test_a_run_has_them_and_the_numbers_stay() -> None:
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("chosen for sm_90")
    entry = named("graph-77-110")
    fd = record(entry)
    inputs = list(make_inputs(entry, fd.fusion.ir, "cuda"))
    plan = FusionExecutorCache(fd.fusion.ir).plan(inputs)
    # Compiled ahead of the plan, and told with it.
    assert all(step.compile_seconds > 0 for step in plan.steps if step.source)
    first = fd.schedule(inputs)
    expected = fd.run(inputs, schedule=first)
    found = fd.run(inputs)
    second = fd.schedule(inputs)
    assert [one.computes for one in first.segments] == [one.computes for one in second.segments]
    pairs = zip(first.segments, second.segments, strict=True)
    changed = [(one.params, other.params) for one, other in pairs if one.params != other.params]
    assert len(changed) == 1, changed
    assert "registers a thread" in str(fd.explain(inputs, measure=False))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)
