"""Timing as the tuner does it, and the bandwidth of a copy."""

from __future__ import annotations

from functools import partial

import torch

from tritonfuser.frontend.tune.timing import (
    FLUSH_BYTES,
    Run,
    Times,
    collected,
    free,
    host_seconds,
    interleaved,
    quartiles,
    synchronize,
)

__all__ = [
    "FLUSH_BYTES",
    "Run",
    "Times",
    "collected",
    "copy_bandwidth",
    "free",
    "host_seconds",
    "interleaved",
    "quartiles",
    "synchronize",
]

COPY_BYTES = 1 << 31
"""Size of the bandwidth copy; its launch overhead is negligible."""


def copy_bandwidth() -> float:
    """Bandwidth of a large device-to-device copy, in bytes per second read and written."""
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda").random_()
    copy = partial(torch.empty_like(source).copy_, source)
    # Twice, since the clocks of an idle GPU take a while to rise.
    seconds = min(interleaved({"copy": copy}, "cuda")["copy"].median for _ in "12")
    del source, copy
    torch.cuda.empty_cache()
    return 2 * COPY_BYTES / seconds
