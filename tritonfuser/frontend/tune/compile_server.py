"""The process that compiles candidates for a tuner, with workers.

Its workers are forked from one process that has imported torch and Triton, and has no threads yet.
Triton keeps what they compile on disk, where the process that times candidates finds it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Union

from ...cache.kernels import compiled, launcher_built
from ...errors import TritonFuserError
from ...lowering.build import hash_triton
from ...lowering.kernel_source import KernelSource
from .worker import IDLE_SECONDS, begin

BEGUN = 0
"""The number of the first answer, which is to no job."""

Found = Union[int, str]
"""The bytes of shared memory of a program, or why the kernel does not compile."""


def shared_bytes(source: KernelSource, arch: str, aligned: tuple[bool, ...]) -> Found:
    """Compile a kernel, and build its launcher."""
    try:
        found = compiled(source, arch, aligned).shared_bytes
    except TritonFuserError as error:
        return error.message
    except Exception as error:  # of Triton; what cannot be compiled is not tried
        return f"{type(error).__name__}: {error}"
    launcher_built(source)
    return found


def serve(pipe: Connection, count: int) -> None:
    """Do jobs, numbered, on so many processes until the other end is closed, or idles."""
    begin()
    hash_triton()
    pool = ProcessPoolExecutor(
        count, multiprocessing.get_context("fork"), _begin_worker, initargs=(pipe,)
    )
    sending = threading.Lock()

    def answer(number: int, future: Future[Found]) -> None:
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            end()  # whoever asked sees that, and starts another server
        found = future.result() if error is None else f"{type(error).__name__}: {error}"
        with sending, suppress(OSError):  # nobody may be there to read it
            pipe.send((number, found))

    with suppress(EOFError, OSError, BrokenProcessPool):
        pool.submit(os.getpid).result()  # forks them all
        pipe.send((BEGUN, 0))
        while pipe.poll(IDLE_SECONDS):
            number, job = pipe.recv()
            pool.submit(shared_bytes, *job).add_done_callback(partial(answer, number))


def _begin_worker(pipe: Connection) -> None:
    """Leave the pipe to the server, whose end closes it, and end with the server."""
    pipe.close()
    threading.Thread(target=_end_with_server, daemon=True).start()


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(0)  # whatever it compiles


def end() -> None:
    """End this process and all workers."""
    for worker in multiprocessing.active_children():
        worker.kill()
    os._exit(0)  # no thread of the pool is waited for


def main() -> None:
    """Serve the pipe whose descriptor is the first argument, by as many workers as the second."""
    descriptor, count = (int(given) for given in sys.argv[1:3])
    serve(Connection(descriptor), count)
    end()
