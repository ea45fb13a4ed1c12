"""``nvfuser_direct.benchmark_utils``: timers for pytest-benchmark, in cumulative seconds."""

from __future__ import annotations

from typing import Any

from ...frontend.inspect.timers import HostTimer, KernelTimer


class CuptiTimer(KernelTimer):
    __doc__ = KernelTimer.__doc__


class FusionProfileTimer(HostTimer):
    __doc__ = HostTimer.__doc__

    def set_fd(self, fd: Any) -> None:
        """Accepted: every definition that runs is counted."""
        self.fd = fd


__all__ = ["CuptiTimer", "FusionProfileTimer"]
