"""Processes that compile candidates: no crash of a compiler is one of the process that tunes.

They do not wait for Python's lock either, which a thread that compiles holds for half of the time.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from multiprocessing.connection import Connection
from multiprocessing.spawn import get_executable
from typing import Any

from ...cache.kernels import usable_threads
from ...errors import LoweringError
from ...forks import Lock, reset_in_forked_children
from ...lowering.kernel_source import KernelSource
from .compile_server import BEGUN, Found

MOST_PROCESSES = 12
"""Processes that compile, at most."""

LEFT = 2
"""Cores that are left to the process that tunes and to the one that times, where there are more."""

_SERVER = "tritonfuser.frontend.tune.compile_server"


def _command(*given: int) -> list[str]:
    """What starts a server: it finds modules where this process does, and nowhere else.

    ``-m`` would look in the working directory first, where a user's file may have the name of one.
    What is no text in ``sys.path`` Python passes over too.
    """
    start = (
        f"import sys; sys.path[:] = sys.argv[{1 + len(given)}:]; import {_SERVER} as s; s.main()"
    )
    folders = [entry for entry in sys.path if isinstance(entry, str)]
    return [get_executable(), "-c", start, *map(str, given), *folders]


class _Session:
    """One server, and the jobs that it has."""

    def __init__(self, environment: dict[str, str], count: int) -> None:
        ours, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                _command(other.fileno(), count),
                env=environment,
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                # Ctrl-C is for the process that tunes, also while this one begins.
                start_new_session=True,
            )
        self.environment = environment
        self.begun = False
        self.ended = False
        self._pipe = Connection(ours.detach())
        self._lock = threading.Lock()
        self._jobs: dict[int, Future[Found]] = {}
        self._number = 0
        threading.Thread(target=self._read, name="tritonfuser compiled", daemon=True).start()

    def ask(self, *job: Any) -> Future[Found]:
        """The answer to a job."""
        future: Future[Found] = Future()
        with self._lock:
            self._number += 1
            if not self.ended:
                self._jobs[self._number] = future
                try:
                    self._pipe.send((self._number, job))
                    return future
                except OSError:  # the thread that reads may not have noticed
                    self.ended = True
                    del self._jobs[self._number]
        future.set_result(_ENDED)
        return future

    def _read(self) -> None:
        try:
            while True:
                number, found = self._pipe.recv()
                if number == BEGUN:
                    self.begun = True
                    continue
                future = self._jobs.pop(number, None)
                if future is not None:
                    future.set_result(found)
        except (EOFError, OSError):
            with self._lock:
                self.ended = True
            self.forget(_ENDED)
            self._process.wait()

    def forget(self, why: str) -> None:
        """Answer all jobs with a reason, whatever becomes of them."""
        with self._lock:
            left, self._jobs = self._jobs, {}
        for future in left.values():
            future.set_result(why)

    def stop(self) -> None:
        """End the server: it ends where its pipe does."""
        with self._lock:
            self.ended = True
        # Closing alone would leave a thread that reads waiting.
        with socket.socket(fileno=os.dup(self._pipe.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)


_ENDED = "the process that compiles has ended"
_LATE = "it is not compiled in time"


class CompilePool:
    """Processes that compile, of one process that tunes; threads may share it.

    Attributes
    ----------
    count : int
        Processes.
    """

    def __init__(self) -> None:
        usable = usable_threads()
        self.count = min(max(usable - LEFT, LEFT), MOST_PROCESSES)
        self._session: _Session | None = None
        self._lock, self._suspects = Lock(), Lock()
        self._works = hasattr(os, "fork") and bool(get_executable())
        reset_in_forked_children(self)

    def reset_after_fork(self) -> None:
        """Leave the server to the process that forked."""
        self._session = None

    @property
    def works(self) -> bool:
        """Whether there can be such processes: if the last ones never began, there are no more."""
        session = self._session
        if session is not None and session.ended and not session.begun:
            self._works = False
        return self._works

    def start(self) -> None:
        """Start them, unless they run in the environment that this process has now."""
        environment = dict(os.environ)
        with self._lock:
            session = self._session
            if not self.works or (
                session is not None and not session.ended and session.environment == environment
            ):
                return
            if session is not None and not session.ended:
                session.stop()
            try:
                self._session = _Session(environment, self.count)
            except OSError:
                self._works = False

    def shared_bytes(
        self, source: KernelSource, arch: str, aligned: tuple[bool, ...]
    ) -> int | None:
        """Have a kernel compiled; the bytes of shared memory of a program.

        None where there can be no such processes.

        Raises
        ------
        LoweringError
            It does not compile.
        """
        found = self._asked(source, arch, aligned)
        if found == _ENDED and self.works:
            # Of the kernels that it had one may have done that: they are asked for one by one.
            with self._suspects:
                found = self._asked(source, arch, aligned)
        if found == _ENDED and not self.works:
            return None
        if isinstance(found, str):
            raise LoweringError(found)
        return found

    def _asked(self, source: KernelSource, arch: str, aligned: tuple[bool, ...]) -> Found:
        self.start()
        session = self._session
        return _ENDED if session is None else session.ask(source, arch, aligned).result()

    def forget(self) -> None:
        """Wait no more for what is being compiled."""
        session = self._session
        if session is not None:
            session.forget(_LATE)

    def stop(self) -> None:
        """End them."""
        with self._lock:
            session, self._session = self._session, None
            if session is not None and not session.ended:
                session.stop()


_shared = CompilePool()
atexit.register(_shared.stop)


def shared_pool() -> CompilePool:
    """The processes of this process."""
    return _shared
