"""The exceptions that users see: what went wrong, on which line of theirs, and what to do.

Each class also derives from the builtin type that nvFuser programs catch, so ``except
RuntimeError`` keeps working.
"""

from __future__ import annotations

import contextlib
import dataclasses
import linecache
import sys
import threading
from concurrent.futures import thread
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

PLAN_FILE = "<tritonfuser plan>"
"""The file that the code of a plan is of: the function of a run, which a call goes through."""

# Frames of the others lie between ours: where a `with` block of ours is left, where params are
# replaced, in threads of ours. Functions made from text, by us or by dataclasses, have no file.
_OURS = (
    str(Path(__file__).parent) + "/",
    dataclasses.__file__,
    contextlib.__file__,
    threading.__file__,
    thread.__file__,
    PLAN_FILE,
)


@dataclass(frozen=True, slots=True)
class SourceLoc:
    """A line of the user's program: where an op was recorded.

    Attributes
    ----------
    file, line : str, int
        The place.
    here : bool
        Whether the file may be read; not that of a definition that came from elsewhere.
    called : str
        The method that the line calls, which records other ops where it is made of them.
    """

    file: str
    line: int
    here: bool = field(default=True, compare=False)
    called: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def text(self) -> str:
        """The stripped source line, or an empty string where it cannot be read."""
        return linecache.getline(self.file, self.line).strip() if self.here else ""


def calling_line() -> SourceLoc | None:
    """The line of the user's program that called: the first frame outside this package.

    None in a thread that the user did not start.
    """
    frame = sys._getframe(1)
    while _is_ours(frame):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return SourceLoc(frame.f_code.co_filename, frame.f_lineno)


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    if file.startswith(_OURS):
        return True
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return file == "<string>" and package == __name__.partition(".")[0]


class TritonFuserError(Exception):
    """Base of all errors of this package.

    The message ends with a line of the user's program: that of the op the error belongs to, or of
    the call that raised it.

    Parameters
    ----------
    message : str
        What is wrong: the op, what was expected, what came.
    loc : SourceLoc, optional
        The user's line the error belongs to.
    hint : str, optional
        What to do about it.
    """

    def __init__(self, message: str, *, loc: SourceLoc | None = None, hint: str = "") -> None:
        self.message = message
        self.loc = loc
        self.hint = hint
        super().__init__(self._render())

    def _render(self) -> str:
        lines = [self.message]
        place = self.loc or calling_line()
        if place is not None:
            lines.append(f"  at {place}")
            text = place.text()
            if text:
                lines.append(f"    {text}")
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        # Not by the message: that would be rendered again, with the line that loads the pickle.
        return restored_error, (type(self), self.args), vars(self)

    def located(self, loc: SourceLoc | None) -> TritonFuserError:
        """This error with the line ``loc``; itself where it has a line: the innermost one wins.

        The message names what the line calls, also where an op that this records refused.
        """
        if self.loc is not None or loc is None:
            return self
        named = loc.called in self.message
        message = self.message if named else f"{loc.called}: {self.message}"
        return type(self)(message, loc=loc, hint=self.hint)


def restored_error(cls: type[TritonFuserError], args: tuple[Any, ...]) -> TritonFuserError:
    """An error with its text as it was: what pickles of one are made by."""
    error = cls.__new__(cls)
    error.args = args
    return error


class DefinitionError(TritonFuserError, RuntimeError):
    """An op or a definition that has no meaning: wrong rank, shape, dtype, or attribute."""


class ArgumentError(TritonFuserError, TypeError):
    """An argument of the wrong Python type."""


class InputError(TritonFuserError, RuntimeError):
    """Inputs of a run that do not fit the definition."""


class InputShapeError(InputError, DefinitionError):
    """Inputs of a run whose sizes an op does not take, such as sizes that do not broadcast."""


class IndexRangeError(TritonFuserError, IndexError):
    """An index tensor of a run names an element that its dim does not have."""


class UnsupportedDeviceError(TritonFuserError, ValueError):
    """A tensor on a device that this definition cannot take."""


class UndefinedFusionError(TritonFuserError, NotImplementedError):
    """Running a definition that was never entered, or that is empty."""


class ExecutionModeError(TritonFuserError, AssertionError):
    """``run`` and ``run_kernel`` mixed on one definition."""


class CaptureError(TritonFuserError, RuntimeError):
    """What cannot be part of a CUDA graph: a first run, a copy from or to the CPU."""


class ParamsError(TritonFuserError, ValueError):
    """Heuristic params that are malformed or that a scheduler refuses."""


class OptionError(TritonFuserError, ValueError):
    """An environment variable or an option with a value that is not understood."""


class SchedulingError(TritonFuserError, RuntimeError):
    """No scheduler takes a segment; the message lists each scheduler's reason."""


class LoweringError(TritonFuserError, RuntimeError):
    """Generated code that Triton refused, with the user's op it came from."""


class CacheDirectoryError(TritonFuserError, OSError):
    """The directory for compiled kernels cannot be written to."""
