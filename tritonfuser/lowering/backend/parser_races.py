"""What parses the text of a kernel, called again where threads make Python's parser fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from triton.compiler.errors import CompilationError

_PARSES = 5
"""Attempts to compile a kernel while Python's parser fails."""


def retry_parser_races(build: Callable[[], Any]) -> Any:
    """Call what parses a kernel's text: again where Python's parser fails for another thread.

    It counts its depth for all threads together (python/cpython#106905), so that of several that
    parse at once one is told of a ``recursion depth mismatch``. Of a function that a kernel calls
    Triton tells as a ``CompilationError`` of the kernel.
    """
    for _ in range(_PARSES - 1):
        try:
            return build()
        except (SystemError, CompilationError) as error:
            if not any(map(_is_of_parser, causes(error))):
                raise
    return build()


def _is_of_parser(error: BaseException) -> bool:
    return isinstance(error, SystemError) and "recursion depth mismatch" in str(error)


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it was raised for, the last one last."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
