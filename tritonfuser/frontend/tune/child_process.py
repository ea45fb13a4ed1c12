"""This process's end of the one that times: started once, started again after a fault or a hang."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

from torch import multiprocessing as torch_processes

from ... import options
from ...errors import TritonFuserError
from ...heuristics.schedule import Schedule
from .child import serve
from .messages import packed

START_SECONDS = 60.0
"""Most seconds until a new process is ready."""

PATIENCE = 5.0
"""Seconds without a word, after which a candidate hangs."""


class TunerError(TritonFuserError, RuntimeError):
    """The process that times candidates cannot be used."""


class _EndedError(Exception):
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


class ChildProcess:
    """A process that times candidates of one definition at a time: a ``Measurer``.

    Attributes
    ----------
    hooks : dict
        For tests: what to do in the place of a schedule, "abort" or "hang".
    patience : float
        Seconds without a word, after which a candidate counts as hanging.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.hooks: dict[Schedule, str] = {}
        self.patience = patience
        self.starts = 0
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._number = 0
        self._ready = self._opened = False
        self._opening = 0
        self._late = 0.0
        self._about: dict[str, Any] = {}
        self._inputs: Sequence[Any] = ()
        self._reference: Schedule | None = None

    # --- its life --------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process unless it runs; does not wait for it."""
        if self._process is not None and self._process.is_alive():
            return
        self.stop()
        context = torch_processes.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(
            target=serve, args=(other,), daemon=True, name="tritonfuser autotune"
        )
        with _without_main():
            self._process.start()
        other.close()
        self.starts += 1
        self._late = time.monotonic() + START_SECONDS
        self._ready = self._opened = False

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join(5.0)
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None
        self._ready = self._opened = False
        self._opening = 0

    def open(
        self,
        definition: Mapping[str, Any],
        inputs: Sequence[Any],
        device: str,
        reference: Schedule,
    ) -> None:
        """What to time from now on; the process gets it when it is ready.

        Parameters
        ----------
        definition : dict
            As ``fd.to_dict()`` makes it.
        inputs : sequence
            Flat.
        device : str
            Where to run it.
        reference : Schedule
            Outputs are compared with those of this schedule where torch has no reference.
        """
        known = {row.env for row in options.table() if row.codegen}
        environment = {name: os.environ.get(name, "") for name in known}
        self._about = {"definition": definition, "device": device, "environment": environment}
        self._inputs, self._reference = inputs, reference
        self._opened, self._opening = False, 0
        self.start()

    def close(self) -> None:
        """Have the process forget the definition and its inputs."""
        self._inputs, self._about, self._reference = (), {}, None
        if self._opened:
            self._opened = False
            try:
                self._ask({"do": "close"})
            except (_EndedError, TunerError):
                self.stop()

    def is_ready(self, seconds: float) -> bool:
        """Whether it can measure at once; waits for that so long.

        True where it has ended or is late: what asks for something starts it again, or says why.
        """
        if self._opened or self._process is None or not self._process.is_alive():
            return True
        if time.monotonic() > self._late:
            return True
        assert self._pipe is not None
        if not self._ready and self._pipe.poll(seconds):
            self._await_ready()
        if not self._ready:
            return False
        if not self._opening:
            with suppress(_EndedError, RuntimeError):
                self._send_open(share=True)
        return self._pipe.poll(seconds)

    # --- jobs ------------------------------------------------------------------------------

    def measure(self, schedules: Sequence[Schedule], rounds: int) -> list[float | str]:
        """The median seconds of each schedule, timed together, or why there are none."""
        found: list[float | str] = self._each("measure", schedules, rounds=rounds)
        return found

    def judge(self, schedules: Sequence[Schedule]) -> list[str]:
        """What is wrong with the outputs of each; empty where nothing is."""
        assert self._reference is not None
        return self._each("judge", schedules, reference=self._reference.to_dict())

    def _each(self, do: str, schedules: Sequence[Schedule], **more: Any) -> list[Any]:
        """The answer for each schedule. One that ends the process is left out of the next try."""
        found: dict[int, Any] = {}
        left = list(range(len(schedules)))
        while left:
            job = {"do": do, "schedules": [schedules[n].to_dict() for n in left], **more}
            hooks = {str(k): self.hooks.get(schedules[n]) for k, n in enumerate(left)}
            try:
                self._open()
                answers = self._ask({**job, "hooks": hooks})
            except _EndedError as ended:
                self.stop()
                if ended.at >= 0 or len(left) == 1:
                    found[left.pop(max(ended.at, 0))] = ended.why
                    continue
                # All ran once, so what faults now and then is found one by one.
                alone = [self._each(do, [schedules[n]], **more)[0] for n in left]
                found.update(zip(left, alone, strict=True))
                break
            found.update(zip(left, answers, strict=True))
            break
        return [found[n] for n in range(len(schedules))]

    def _open(self) -> None:
        """Have it ready, with the definition and its inputs."""
        if self._opened and self._process is not None and self._process.is_alive():
            return
        try:
            self._opened_with(share=True)
        except (_EndedError, TunerError, RuntimeError):
            # CUDA IPC does not work everywhere: send copies.
            self.stop()
            try:
                self._opened_with(share=False)
            except _EndedError as ended:
                raise TunerError(f"the process that times candidates fails: {ended.why}") from None
        self._opened = True

    def _opened_with(self, share: bool) -> None:
        self.start()
        self._await_ready()
        if not self._opening:
            self._send_open(share)
        self._answer(self._opening, START_SECONDS)

    def _send_open(self, share: bool) -> None:
        parcels = packed(self._inputs, share)
        self._opening = self._send({"do": "open", **self._about}, parcels)

    def _await_ready(self) -> None:
        if not self._ready:
            try:
                self._answer(0, max(self._late - time.monotonic(), 1.0))
            except _EndedError as ended:
                self.stop()
                raise TunerError(
                    f"the process that times candidates does not start: {ended.why}",
                    hint="Its own message is above, on stderr.",
                ) from None
            self._ready = True

    def _ask(self, job: Mapping[str, Any]) -> Any:
        """Send a job, and wait for its answer."""
        # The reference that outputs are judged by may take a while.
        patience = self.patience if job["do"] == "measure" else START_SECONDS
        return self._answer(self._send(job), patience)

    def _send(self, job: Mapping[str, Any], parcels: Sequence[Any] = ()) -> int:
        """Send a job; its number."""
        assert self._pipe is not None
        self._number += 1
        try:
            self._pipe.send(json.dumps({"number": self._number, **job}))
            self._pipe.send(list(parcels))
        except OSError as error:
            raise _EndedError(-1, f"the process that ran it has ended ({error})") from None
        return self._number

    def _answer(self, number: int, patience: float) -> Any:
        """The answer to a job. Answers to jobs that were interrupted are passed over."""
        assert self._pipe is not None
        at, end = -1, time.monotonic() + patience
        while True:
            told: Any = None
            with suppress(EOFError, OSError):
                if not self._pipe.poll(max(end - time.monotonic(), 0.0)):
                    raise _EndedError(at, f"it hangs: no word for {patience:g} s")
                told = json.loads(self._pipe.recv())
            if told is None:
                raise _EndedError(at, f"it ends the process: {self._ending()}")
            if told["number"] != number:
                continue
            if "at" in told:
                at, end = told["at"], time.monotonic() + patience
            elif told.get("fault"):
                raise _EndedError(at, f"it faults: {told['error'].splitlines()[0]}")
            elif "error" in told:
                raise TunerError(f"the process that times candidates fails: {told['error']}")
            else:
                return told.get("found")

    def _ending(self) -> str:
        assert self._process is not None
        self._process.join(1.0)
        code = self._process.exitcode
        return f"exit code {code}" if code is None or code >= 0 else f"signal {-code}"


_shared = ChildProcess()
_in_use = threading.Lock()


@contextmanager
def shared_child() -> Iterator[ChildProcess]:
    """The process of this process, for one definition at a time."""
    with _in_use:
        yield _shared
