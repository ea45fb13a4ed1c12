"""run_kernel of what ``run`` does in two steps: one kernel, on the facts of a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.lowering.harness import H200, small
from tritonfuser import (
    ExecutionModeError,
    FusionDefinition,
    KernelExecutor,
    ReductionParams,
    SchedulingError,
)
from tritonfuser.cache import dry_run
from tritonfuser.compat import nvfuser_direct


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    """CPU tensors scheduled as for a GPU of two multiprocessors, and interpreted."""
    monkeypatch.setattr(dry_run.devices, "of", lambda device: small(2))


def full_sum(module=None):
    made = FusionDefinition if module is None else module.FusionDefinition
    with made() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.mul(x, x), [0, 1]))
    return fd


@pytest.fixture
def x():
    return torch.randn(256, 256, generator=torch.Generator().manual_seed(0))


def test_run_takes_two_kernels_and_run_kernel_one(x):
    assert len(full_sum().segments([x]).segments) == 2
    fd = full_sum()
    (out,) = fd.run_kernel([x])
    torch.testing.assert_close(out.double(), x.double().square().sum(), rtol=1e-5, atol=0)
    assert isinstance(fd.ke.params, ReductionParams)
    torch.testing.assert_close(fd.run_kernel([2 * x])[0], 4 * out, rtol=1e-5, atol=0)


def test_its_params_can_be_changed_and_given_back(x):
    fd = full_sum()
    (out,) = fd.run_kernel([x])
    changed = replace(fd.ke.params, block_r=512, num_warps=2)
    (again,) = fd.run_kernel([x], changed)
    assert fd.ke.params == changed
    torch.testing.assert_close(again, out, rtol=1e-5, atol=0)


def test_params_exist_once_something_is_compiled(x):
    with pytest.raises(ExecutionModeError, match="before compile"):
        KernelExecutor().params  # noqa: B018


def test_manual_execute_and_manual_validate(x, monkeypatch):
    monkeypatch.setattr(nvfuser_direct.FusionDefinition, "cuda_only", False)
    (out,) = full_sum(nvfuser_direct).manual_execute([x])
    (same,) = full_sum(nvfuser_direct).manual_validate([x])
    assert torch.equal(out, same)
    (two,) = full_sum(nvfuser_direct).validate([x])
    torch.testing.assert_close(out, two, rtol=1e-5, atol=0)


def test_what_takes_two_kernels_is_still_refused_with_the_reasons(x):
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.sum(t, [1]), [0]))
    with pytest.raises(SchedulingError, match="does not support the Fusion provided") as error:
        fd.run_kernel([x])
    assert "It takes 2 kernels:\n  tv2 starts s1; not in s0: it runs over" in str(error.value)


def test_segments_without_a_cut_are_named_by_what_they_do(x):
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.argsort(fd.ops.neg(t), 1))
    with pytest.raises(SchedulingError) as error:
        fd.run_kernel([x])
    assert "\n  s1: torch runs argsort\n" in str(error.value)


def test_a_norm_backward_fits_one_kernel(monkeypatch):
    """Sums along the rows and over them."""
    monkeypatch.setattr(dry_run.devices, "of", lambda device: H200)
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        dy = fd.define_tensor([-1, -1], contiguity=True)
        rows = fd.ops.sum(fd.ops.mul(x, dy), [1])
        rows = fd.ops.broadcast(rows, [False, True])
        fd.add_output(fd.ops.sub(dy, fd.ops.mul(x, rows)))
        fd.add_output(fd.ops.sum(dy, [0]))
    x, dy = torch.randn(2, 128, 64, generator=torch.Generator().manual_seed(0))
    dx, columns = fd.manual_validate([x, dy])
    assert dx.shape == (128, 64)
    assert columns.shape == (64,)
