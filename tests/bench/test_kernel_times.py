"""Kernels counted and summed by the profiler."""

from __future__ import annotations

import pytest
import torch

from bench.measure.kernel_times import (
    KernelTimes,
    Ran,
    busy,
    by_turns,
    kernel_times,
    medians,
    single_kernel_times,
)


def test_several_calls():
    assert KernelTimes(2, 1.5).times(3) == KernelTimes(6, 4.5)


def test_time_in_which_kernels_overlap_counts_once():
    assert busy([]) == 0
    assert busy([(5, 6), (0, 2)]) == 3
    assert busy([(0, 4), (1, 2), (3, 5), (5, 6)]) == 6


def test_kernels_belong_to_the_turn_they_ran_in():
    fill, copy = "fill", "Memcpy HtoD (Pinned -> Device)"
    names = [fill, "a", fill, "b", "b", fill, "a", copy, fill, "b"]
    found = [Ran(name, at, at + 0.5) for at, name in enumerate(names)]
    times = by_turns(["one", "other"], reversed(found), {fill}, 2)
    assert times == {"one": KernelTimes(1, 0.5), "other": KernelTimes(1.5, 0.75)}
    with pytest.raises(RuntimeError, match="expected 4 turns in the profiler's records, got 3"):
        by_turns(["one", "other"], found[:-2], {fill}, 2)


def test_each_kernel_has_its_median_and_counts_from_the_end_of_the_one_before():
    turns = [
        [Ran("a", 0, 2), Ran("b", 1, 5)],
        [Ran("a", 10, 14), Ran("b", 13, 15)],
        [Ran("a", 20, 23), Ran("b", 23, 24)],
    ]
    assert medians(turns) == [("a", 3), ("b", 1)]
    with pytest.raises(RuntimeError, match="differ in their number of kernels"):
        medians([turns[0], turns[1][:1]])


@pytest.mark.gpu
def test_times_of_single_kernels_on_the_gpu():
    x = torch.randn(1 << 22, device="cuda")
    small, large = single_kernel_times([lambda: x[: 1 << 12] + 1, lambda: (x + x, x.exp())])
    assert [len(small), len(large)] == [1, 2]
    assert small[0][1] < large[0][1]


@pytest.mark.gpu
def test_counts_kernels_fills_and_copies_on_the_gpu_alone():
    x = torch.randn(1 << 20, device="cuda")
    assert kernel_times(lambda: x + x).count == 1
    found = kernel_times(lambda: (x + x, torch.zeros_like(x), x.clone(), torch.ones(4).cuda()))
    assert found.count == 3
    assert 3e-6 < found.seconds < 1e-3
    assert kernel_times(lambda: x.view(-1)) == KernelTimes(0, 0)
