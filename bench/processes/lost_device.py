"""A fault of a kernel, such as an illegal address, ends its process's use of the device."""

from __future__ import annotations

import sys

LOST_DEVICE = 3
"""Exit code of a worker that has lost its device."""


def is_device_lost() -> bool:
    """Wait for the kernels of this process; whether no further one can run."""
    torch = sys.modules.get("torch")  # a job without it has no kernels
    if torch is None or not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False
