"""The line of the user's program that called: the first frame outside this package."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from ...errors import SourceLoc

# contextlib's frames lie between ours where one of our `with` blocks is left.
_OURS = (str(Path(__file__).parents[2]) + "/", contextlib.__file__)


def user_line() -> SourceLoc:
    """File and line of the innermost caller that is not part of tritonfuser."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return SourceLoc(frame.f_code.co_filename, frame.f_lineno)
