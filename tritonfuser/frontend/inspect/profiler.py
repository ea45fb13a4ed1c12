"""Profilers: while one is open, every run of every definition is timed, kernel by kernel.

``Profiler`` prints a table of all that ran; ``PythonProfiler`` is nvFuser's face of the same.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tabulate import tabulate

from ...cache.calls import profiling
from ...cache.calls.profiling import Timing
from ...errors import TritonFuserError
from ..vocabulary.units import bytes_text, seconds_text
from .profiles import FusionProfile, profile_of

USER = "user"
"""The scheduler of kernels that were scheduled by hand."""


class ProfilerError(TritonFuserError, RuntimeError):
    """A profile is asked for, and nothing was profiled."""


_last: FusionProfile | None = None


def get_fusion_profile() -> FusionProfile:
    """The profile of the last run under a profiler.

    Raises
    ------
    ProfilerError
        There was none, or ``reset_profiler()`` was called since.
    """
    if _last is None:
        raise ProfilerError(
            "get_fusion_profile: nothing was profiled",
            hint="Run the definition under `with PythonProfiler():`.",
        )
    return _last


def reset_profiler() -> None:
    """Forget the last profile."""
    global _last
    _last = None


class Profiler:
    """Times every run inside the ``with`` block, and prints a table when the block ends.

    On a GPU a kernel's time is that between two CUDA events, and each run waits for its kernels;
    on a CPU it is what the interpreter took, which says nothing of a GPU.

    Parameters
    ----------
    show : bool
        Whether to print the table; ``str(profiler)`` is the same text.

    Attributes
    ----------
    profiles : list of FusionProfile
        One a run, in order.

    Examples
    --------
    >>> with Profiler() as profiler:
    ...     fd.run([x, y])
    >>> profiler.profiles[0].kernel_profiles[0].time_ms
    """

    def __init__(self, *, show: bool = True) -> None:
        self.profiles: list[FusionProfile] = []
        self._show = show

    def __enter__(self) -> Profiler:
        profiling.add_listener(self._heard)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        profiling.remove_listener(self._heard)
        if self._show and kind is None:
            sys.stdout.write(f"{self}\n")

    def _heard(self, timing: Timing) -> None:
        global _last
        _last = self._profile(timing)
        self.profiles.append(_last)

    def _profile(self, timing: Timing) -> FusionProfile:
        return profile_of(timing)

    def __str__(self) -> str:
        if not self.profiles:
            return "nothing was run"
        rows = [row for runs in _alike(self.profiles) for row in _rows(runs)]
        return str(tabulate(rows, headers="keys", disable_numparse=True))


class PythonProfiler(Profiler):
    """nvFuser's profiler: ``profile`` is the last run of the ``with`` block.

    Parameters
    ----------
    auto_scheduled : bool
        False names the scheduler of every kernel ``"user"``, as nvFuser does for kernels scheduled
        by hand. ``execute`` and ``manual_execute`` are both profiled either way.

    Examples
    --------
    >>> with PythonProfiler() as prof:
    ...     fd.execute(inputs)
    >>> prof.profile.kernel_time_ms
    """

    def __init__(self, auto_scheduled: bool = True) -> None:
        super().__init__(show=False)
        self.auto_scheduled = auto_scheduled

    def _profile(self, timing: Timing) -> FusionProfile:
        found = super()._profile(timing)
        if self.auto_scheduled:
            return found
        kernels = tuple(replace(kernel, scheduler=USER) for kernel in found.kernel_profiles)
        return replace(found, kernel_profiles=kernels)

    @property
    def profile(self) -> FusionProfile:
        """The profile of the last run.

        Raises
        ------
        ProfilerError
            Nothing ran in the block.
        """
        if not self.profiles:
            raise ProfilerError(
                "PythonProfiler.profile: nothing was run under this profiler",
                hint="Run the definition inside the `with` block.",
            )
        return self.profiles[-1]


# --- the table -----------------------------------------------------------------------------------

_Key = tuple[Any, ...]


def _alike(profiles: Iterable[FusionProfile]) -> list[list[FusionProfile]]:
    """Runs of the same kernels together, in the order they first ran."""
    found: dict[_Key, list[FusionProfile]] = {}
    for profile in profiles:
        kernels = tuple((k.name, k.grid_str, k.device) for k in profile.kernel_profiles)
        key = (profile.fusion_id, profile.input_bytes, profile.output_bytes, kernels)
        found.setdefault(key, []).append(profile)
    return list(found.values())


def _rows(runs: list[FusionProfile]) -> list[dict[str, str]]:
    """A line for each kernel of like runs: medians over them."""
    rows: list[dict[str, str]] = []
    for place, kernel in enumerate(runs[0].kernel_profiles):
        times = [run.kernel_profiles[place].time_ms for run in runs]
        seconds = statistics.median(times) * 1e-3
        moved = kernel.input_bytes + kernel.output_bytes
        shares = [run.kernel_profiles[place].percentage_peak_bandwidth for run in runs]
        rows.append(
            {
                "kernel": kernel.name,
                "scheduler": kernel.scheduler,
                "runs": str(len(runs)),
                "time": seconds_text(seconds),
                "moved": bytes_text(moved),
                "GB/s": f"{moved / seconds * 1e-9:.3g}" if seconds else "",
                "of peak": f"{statistics.median(shares):.0f}%",
                "grid": kernel.grid_str,
                "block": kernel.block_str,
                "shared": kernel.shared_mem_str,
                "registers": str(kernel.registers),
                "compiled in": seconds_text(kernel.compile_time_ms * 1e-3),
            }
        )
    return rows
