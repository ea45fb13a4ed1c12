"""A thread interrupted at a chosen place of its Python code, as by a signal that arrives there."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def interrupted(work: Callable[[], Any], file: str, number: int) -> bool:
    """Do ``work``, interrupted in a file where it enters the line ``number`` of those it runs.

    Functions that begin count as lines. No signal arrives where a try statement begins, nor between
    the end of the body of a with statement and the call of ``__exit__``: their lines are left out.

    Returns
    -------
    bool
        Whether it ran that many.
    """
    left = number

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(file):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event in ("call", "line") and not line.startswith(("with ", "try:")):
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
