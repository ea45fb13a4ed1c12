"""Bytes and seconds as people read them."""

from __future__ import annotations


def bytes_text(count: float) -> str:
    """``12.3 MB``."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def seconds_text(seconds: float) -> str:
    """``12.3 us``."""
    if seconds == 0 or seconds >= 1:
        return f"{seconds:.3g} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} us"
