"""Who computes the matrix products of a definition."""

from __future__ import annotations

from enum import Enum


class ProductPolicy(Enum):
    """Who computes matrix products."""

    AUTO = "auto"
    """A generated kernel where that is expected to be faster, else torch."""
    KERNELS = "kernels"
    """A generated kernel wherever there can be one."""
    NO_TORCH = "no torch"
    """A generated kernel, or an error."""
