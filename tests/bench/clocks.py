"""Clocks that run what they time and measure nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.measure.kernel_times import KernelTimes


def counted(runs: Mapping[str, Callable[[], object]]) -> dict[str, KernelTimes]:
    """Run each once; all take the same time."""
    for run in runs.values():
        run()
    return dict.fromkeys(runs, KernelTimes(3, 2e-6))
