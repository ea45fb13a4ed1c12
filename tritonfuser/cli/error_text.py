"""Errors as the command line prints them: one sentence, no traceback."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ..errors import TritonFuserError


def complaint(error: TritonFuserError) -> str:
    """The text of an error of ours; without its line where that is one of the command line's."""
    if f"at {Path(click.__file__).parent}" not in str(error):
        return str(error)
    return f"{error.message}\n  {error.hint}" if error.hint else error.message


@contextmanager
def told() -> Iterator[None]:
    """Have errors of ours, and those of files and streams, told as a sentence.

    Raises
    ------
    click.ClickException
        In the place of either.
    """
    try:
        yield
    except TritonFuserError as error:
        raise click.ClickException(complaint(error)) from error
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader, such as head, has seen enough
            raise
        raise click.ClickException(str(error)) from error
