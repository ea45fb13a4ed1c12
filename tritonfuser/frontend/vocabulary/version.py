"""Our own version."""

from __future__ import annotations

__version__ = "0.1.0"


def version() -> str:
    """The version of tritonfuser."""
    return __version__
