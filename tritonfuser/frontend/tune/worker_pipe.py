"""A spawned worker process and the pipe to it: numbered jobs are sent, answers awaited."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess, current_process
from types import ModuleType
from typing import Any

from torch import multiprocessing as torch_processes

from ...errors import TritonFuserError
from .child import serve

START_SECONDS = 60.0
"""Most seconds until a new process is ready."""


class TunerError(TritonFuserError, RuntimeError):
    """The process that times candidates cannot be used."""


class EndedError(Exception):
    """The process ended, or hangs: ``at`` is the candidate, -1 for none, ``why`` a text."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at, self.why = at, why


_starting = threading.Lock()


@contextmanager
def _without_main() -> Iterator[None]:
    """A new process runs the module ``__main__`` of this one again, unless there is none.

    A program without ``if __name__ == "__main__"`` would tune in the child too.
    """
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


class Link:
    """A process that serves, or none.

    Attributes
    ----------
    starts : int
        Processes that were started.
    is_ready : bool
        Whether the process has said that it serves.
    late : float
        When it should have, by ``time.monotonic``.
    """

    def __init__(self) -> None:
        self.starts = 0
        self.is_ready = False
        self.late = 0.0
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._number = 0

    @property
    def is_alive(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.is_alive()

    def start(self) -> None:
        """Start the process unless it runs; does not wait for it.

        Raises
        ------
        TunerError
            This process may not start another one.
        """
        if self.is_alive:
            return
        self.stop()
        if current_process().daemon:
            raise TunerError(
                f"{current_process().name} is a daemonic process, which may not start the one that "
                "times candidates",
                hint="Tune in a process that multiprocessing starts with daemon=False, or before.",
            )
        context = torch_processes.get_context("spawn")
        pipe, other = context.Pipe()
        process = context.Process(
            target=serve, args=(other,), daemon=True, name="tritonfuser autotune"
        )
        with _without_main():
            process.start()
        self._pipe, self._process = pipe, process
        other.close()
        self.starts += 1
        self.late = time.monotonic() + START_SECONDS

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join(5.0)
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None
        self.is_ready = False

    def poll(self, seconds: float) -> bool:
        """Whether there is something to read; waits for that so long."""
        assert self._pipe is not None
        return self._pipe.poll(seconds)

    def await_ready(self) -> None:
        """Wait until it serves.

        Raises
        ------
        TunerError
            It ends before, or does not say so in time.
        """
        if self.is_ready:
            return
        try:
            self.answer(0, max(self.late - time.monotonic(), 1.0))
        except EndedError as ended:
            self.stop()
            raise TunerError(
                f"the process that times candidates does not start: {ended.why}",
                hint="Its own message is above, on stderr.",
            ) from None
        self.is_ready = True

    def send(self, job: Mapping[str, Any], parcels: Sequence[Any] = ()) -> int:
        """Send a job; its number."""
        assert self._pipe is not None
        self._number += 1
        try:
            self._pipe.send(json.dumps({"number": self._number, **job}))
            self._pipe.send(list(parcels))
        except OSError as error:
            raise EndedError(-1, f"the process that ran it has ended ({error})") from None
        return self._number

    def answer(self, number: int, patience: float) -> Any:
        """The answer to a job. Answers to jobs that were interrupted are passed over.

        Raises
        ------
        EndedError
            The process ends, or says nothing for ``patience`` seconds and those it asked for.
        TunerError
            It cannot do the job.
        """
        assert self._pipe is not None
        at, end = -1, time.monotonic() + patience
        while True:
            told = self._receive(at, end, patience)
            if told["number"] != number:
                continue
            if "at" in told:
                at, end = told["at"], time.monotonic() + patience + told["takes"]
            elif told.get("fault"):
                raise EndedError(at, f"it faults: {told['error'].splitlines()[0]}")
            elif "error" in told:
                raise TunerError(f"the process that times candidates fails: {told['error']}")
            else:
                return told.get("found")

    def _receive(self, at: int, end: float, patience: float) -> dict[str, Any]:
        """The next message; ``EndedError`` where none comes until ``end``, or the process ends."""
        assert self._pipe is not None
        try:
            if not self._pipe.poll(max(end - time.monotonic(), 0.0)):
                raise EndedError(at, f"it hangs: no word for {patience:g} s")
            message: dict[str, Any] = json.loads(self._pipe.recv())
        except (EOFError, OSError):
            raise EndedError(at, f"it ends the process: {self._ending()}") from None
        return message

    def _ending(self) -> str:
        assert self._process is not None
        self._process.join(1.0)
        code = self._process.exitcode
        return f"exit code {code}" if code is None or code >= 0 else f"signal {-code}"
