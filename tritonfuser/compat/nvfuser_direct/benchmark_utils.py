"""``nvfuser_direct.benchmark_utils``: names of timers, which say what to use."""

from __future__ import annotations

from ...frontend.unavailable import Unavailable

_INSTEAD = "Time with triton.testing.do_bench(lambda: fd.execute(inputs)), or torch.profiler."

CuptiTimer = Unavailable("CuptiTimer", _INSTEAD)
FusionProfileTimer = Unavailable("FusionProfileTimer", _INSTEAD)
