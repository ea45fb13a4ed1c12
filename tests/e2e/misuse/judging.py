"""What an error of a wrong call has to be: ours, with the op's name and the user's line."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import Path

from tritonfuser import TritonFuserError

HERE = str(Path(__file__).parent)
"""The user's files: those of this folder."""


def fault_of(error: BaseException, names: Iterable[str]) -> str | None:
    """What is wrong with an error, or None.

    Parameters
    ----------
    names : iterable of str
        One of them has to be in the message: the op, or what was given wrongly.
    """
    if not isinstance(error, TritonFuserError):
        if _is_of_signature(error):
            return None
        return f"a bare {type(error).__name__}: {str(error)[:200]} {_innermost(error)}"
    text = str(error)
    if not any(name in error.message for name in names):
        return f"names none of {sorted(names)}: {error.message}"
    if f"at {HERE}" not in text:
        return f"has no line of the user's: {text}"
    return None


def _is_of_signature(error: BaseException) -> bool:
    """Whether Python itself refused the user's call: a parameter is missing or unknown."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error) is TypeError and frames[-1].filename.startswith(HERE)


def _innermost(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"at {frame.filename}:{frame.lineno} in {frame.name}"
