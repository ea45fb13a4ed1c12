"""Forked children, which have none of the threads that held something in their parent."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from tests.interrupting import interrupted
from tests.lowering.graphs import noise
from tritonfuser import FusionDefinition
from tritonfuser.cache import executor
from tritonfuser.cache.lru import LRU
from tritonfuser.forks import Lock
from tritonfuser.lowering.backend.triton_lock import SharedLock

SECONDS = 60
"""A child that takes longer hangs."""


def status_in_a_child(work):
    """How a forked child ends that does ``work``: 0 where it comes to the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads beside a fork
        pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


class Elsewhere:
    """A context that another thread is in, until it is left."""

    def __init__(self, context):
        self.inside, self.done = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.stay, args=(context,))

    def stay(self, context):
        with context:
            self.inside.set()
            self.done.wait()

    def __enter__(self):
        self.thread.start()
        self.inside.wait()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def entered(context):
    with context:
        pass


def test_a_lock_of_another_thread_is_free():
    lock = Lock()
    with Elsewhere(lock):
        assert status_in_a_child(lambda: entered(lock)) == 0


def test_an_interrupted_thread_leaves_its_lock():
    """Wherever in entering or leaving it the thread is interrupted."""
    lock = Lock()
    for number in itertools.count():
        if not interrupted(lambda: entered(lock), "tritonfuser/forks.py", number):
            break
        assert lock.try_acquire(), number
        lock.release()
    assert number > 1


@pytest.mark.parametrize("held", ["shared", "exclusive"])
def test_an_interrupted_thread_leaves_its_share(held):
    """Wherever in entering or leaving a lock, that others share, the thread is interrupted."""
    lock, pool = SharedLock(), ThreadPoolExecutor(1)
    with Elsewhere(lock.shared()) if held == "shared" else nullcontext():
        for number in itertools.count():
            if not interrupted(lambda: entered(getattr(lock, held)()), "triton_lock.py", number):
                break
            pool.submit(entered, lock.shared()).result(timeout=10)
    pool.submit(entered, lock.exclusive()).result(timeout=10)
    assert number > 5


@pytest.mark.parametrize("held, wanted", [("shared", "exclusive"), ("exclusive", "shared")])
def test_a_lock_that_is_shared(held, wanted):
    lock = SharedLock()
    with Elsewhere(getattr(lock, held)()):
        assert status_in_a_child(lambda: entered(getattr(lock, wanted)())) == 0


def test_what_another_thread_makes_is_made():
    cache = LRU(4)
    begun, done = threading.Event(), threading.Event()

    def slow():
        begun.set()
        done.wait()
        return 1

    thread = threading.Thread(target=cache.get_or_make, args=("a", slow))
    thread.start()
    begun.wait()

    def work():
        assert cache.get_or_make("a", lambda: 2) == 2

    try:
        assert status_in_a_child(work) == 0
    finally:
        done.set()
        thread.join()
    assert cache.get("a") == 1


def test_a_run_beside_a_compilation(monkeypatch):
    begun, done = threading.Event(), threading.Event()
    parent, lower = os.getpid(), executor.lower

    def slow(*args):
        begun.set()
        if os.getpid() == parent:
            done.wait()
        return lower(*args)

    monkeypatch.setattr(executor, "lower", slow)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.exp(fd.define_tensor([-1, -1])))
    x = noise(4, 3)
    thread = threading.Thread(target=fd.run, args=([x],))
    thread.start()
    begun.wait()
    try:
        assert status_in_a_child(lambda: fd.run([x])) == 0
    finally:
        done.set()
        thread.join()
