"""A process that is run for what it prints, and ended with everything that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


class ChildError(Exception):
    """A process failed, or took too long."""


def output_of(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> str:
    """What a process prints.

    Raises
    ------
    ChildError
        It failed, with the last line that it wrote; or it was ended after ``seconds``.
    """
    # Files, not pipes: whoever it has started may hold a pipe open when it is done.
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, env=environment, stdout=out, stderr=errors, start_new_session=True
        )
        with ending(process):
            code = _waited(process, seconds)
        out.seek(0)
        errors.seek(0)
        if code:
            raise ChildError((errors.read().strip() or f"ended with code {code}").splitlines()[-1])
        return out.read()


def _waited(process: subprocess.Popen[bytes], seconds: float) -> int:
    try:
        return process.wait(None if seconds == float("inf") else seconds)
    except subprocess.TimeoutExpired:
        raise ChildError(f"not done in {seconds:.0f} s") from None


@contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """While a process leads its group; behind it there is none of that group."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def ending_tidily() -> Iterator[None]:
    """While SIGTERM ends this process as an exception does, so that no child is left behind."""

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
