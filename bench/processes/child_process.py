"""Child processes: run one for its output, and kill it with all its descendants."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


class ChildError(Exception):
    """A child process failed or timed out."""


def output_of(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> str:
    """Run a command and return what it printed.

    Raises
    ------
    ChildError
        It failed (the text is the last line of its output), or it was killed after ``seconds``.
    """
    # Files, not pipes: a descendant may keep a pipe open after the child has ended.
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
    """Context of a process that leads its process group; on exit the whole group is killed."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def ending_tidily() -> Iterator[None]:
    """Context in which SIGTERM raises SystemExit, so that child processes are cleaned up."""

    def end(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
