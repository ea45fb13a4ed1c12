"""Kernels counted and summed by the profiler."""

from __future__ import annotations

import pytest
import torch

from bench.measure.kernel_times import KernelTimes, busy, kernel_times


def test_several_calls():
    assert KernelTimes(2, 1.5).times(3) == KernelTimes(6, 4.5)


def test_time_in_which_kernels_overlap_counts_once():
    assert busy([]) == 0
    assert busy([(5, 6), (0, 2)]) == 3
    assert busy([(0, 4), (1, 2), (3, 5), (5, 6)]) == 6


@pytest.mark.gpu
def test_counts_kernels_fills_and_copies_on_the_gpu_alone():
    x = torch.randn(1 << 20, device="cuda")
    assert kernel_times(lambda: x + x).count == 1
    found = kernel_times(lambda: (x + x, torch.zeros_like(x), x.clone(), torch.ones(4).cuda()))
    assert found.count == 3
    assert 3e-6 < found.seconds < 1e-3
    assert kernel_times(lambda: x.view(-1)) == KernelTimes(0, 0)
