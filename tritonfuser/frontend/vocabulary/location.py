"""The line of the user's program that called: where an op is recorded."""

from __future__ import annotations

from ...errors import SourceLoc, calling_line


def user_line() -> SourceLoc:
    """File and line of the innermost caller that is not part of tritonfuser."""
    return calling_line() or SourceLoc("<unknown>", 0)
