"""What the processes of a tuning have in common: that one which times, and those which compile."""

from __future__ import annotations

import os
import signal

IDLE_SECONDS = 120.0
"""Without a job for so long a process ends, and frees what it has."""

_PRINTING = ("TRITONFUSER_DUMP", "TRITONFUSER_LOG", "PYTORCH_NVFUSER_DUMP")
"""Environment variables that would have candidates printed."""


def begin() -> None:
    """Leave Ctrl-C to the process that tunes, and print nothing of candidates."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in _PRINTING:
        os.environ.pop(name, None)
