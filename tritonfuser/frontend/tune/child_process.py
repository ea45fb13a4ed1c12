"""The measurer: times candidates in a worker process, and restarts it after a fault."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ... import options
from ...heuristics.schedule import Schedule
from .messages import packed
from .worker_pipe import START_SECONDS, EndedError, Link, TunerError

PATIENCE = 5.0
"""Seconds without a word, after which a candidate hangs."""


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
        self.link = Link()
        self._opened = False
        self._opening = 0
        self._about: dict[str, Any] = {}
        self._inputs: Sequence[Any] = ()
        self._reference: Schedule | None = None

    def stop(self) -> None:
        """End the process."""
        self.link.stop()
        self._opened, self._opening = False, 0

    # --- what it times ---------------------------------------------------------------------

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
        self.link.start()
        self.link.late = time.monotonic() + START_SECONDS

    def close(self) -> None:
        """Have the process forget the definition and its inputs."""
        self._inputs, self._about, self._reference = (), {}, None
        if self._opened:
            self._opened = False
            try:
                self._ask({"do": "close"})
            except (EndedError, TunerError):
                self.stop()

    def is_ready(self, seconds: float) -> bool:
        """Whether it can measure at once; waits for that so long.

        True where it has ended or is late: what asks for something starts it again, or says why.
        """
        if self._opened or not self.link.is_alive or time.monotonic() > self.link.late:
            return True
        if not self.link.is_ready and self.link.poll(seconds):
            self.link.await_ready()
        if not self.link.is_ready:
            return False
        if not self._opening:
            with suppress(EndedError, RuntimeError):
                self._send_open(share=True)
        return self.link.poll(seconds)

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
            except EndedError as ended:
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
        if self._opened and self.link.is_alive:
            return
        if not self.link.is_alive:
            self.stop()  # what was sent to it was sent in vain
        try:
            self._opened_with(share=True)
        except (EndedError, TunerError, RuntimeError):
            # CUDA IPC does not work everywhere: send copies.
            self.stop()
            try:
                self._opened_with(share=False)
            except EndedError as ended:
                raise TunerError(f"the process that times candidates fails: {ended.why}") from None
        self._opened = True

    def _opened_with(self, share: bool) -> None:
        self.link.start()
        self.link.await_ready()
        if not self._opening:
            self._send_open(share)
        self.link.answer(self._opening, START_SECONDS)

    def _send_open(self, share: bool) -> None:
        parcels = packed(self._inputs, share)
        self._opening = self.link.send({"do": "open", **self._about}, parcels)

    def _ask(self, job: Mapping[str, Any]) -> Any:
        """Send a job, and wait for its answer."""
        # The reference that outputs are judged by may take a while.
        patience = self.patience if job["do"] == "measure" else START_SECONDS
        return self.link.answer(self.link.send(job), patience)


_shared = ChildProcess()
_in_use = threading.Lock()


@contextmanager
def shared_child() -> Iterator[ChildProcess]:
    """The process of this process, for one definition at a time."""
    with _in_use:
        yield _shared
