"""The GPU lock: one process at a time, reentrant, released when its holder dies."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from bench.processes.gpu_lock import GpuLock

HOLDS = """
import sys, time
from bench.processes.gpu_lock import GpuLock
with GpuLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
    if sys.argv[3] == "die":
        import os
        os._exit(1)
"""


@pytest.mark.parametrize("how", ["leave", "die"])
def test_another_process_waits_until_it_is_let_go(tmp_path, how):
    path = str(tmp_path / "lock")
    command = [sys.executable, "-c", HOLDS, path, "0.5", how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        lock = GpuLock(path)
        with lock:
            pass
    assert 0.3 < lock.waited < 5
    assert lock.held < 0.3


def test_the_holder_enters_again(tmp_path):
    lock = GpuLock(str(tmp_path / "lock"))
    with lock, lock:
        time.sleep(0.05)
    assert 0.05 <= lock.held < 1
    with GpuLock(str(tmp_path / "lock")):
        pass


def let_others_run_at_release(monkeypatch, lock):
    """Another thread has the lock, and runs, before the one that let it go does."""
    release = lock._lock.release

    def slowly():
        release()
        time.sleep(0.04)

    monkeypatch.setattr(lock._lock, "release", slowly)


def test_one_thread_at_a_time(tmp_path, monkeypatch):
    lock = GpuLock(str(tmp_path / "lock"))
    inside = []

    def enter():
        with lock:
            inside.append(1)
            assert len(inside) == 1
            time.sleep(0.1)
            inside.pop()

    let_others_run_at_release(monkeypatch, lock)
    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.4 <= lock.held < 0.6


def test_an_error_lets_go(tmp_path):
    path = str(tmp_path / "lock")
    with pytest.raises(ValueError, match="boom"), GpuLock(path):
        raise ValueError("boom")
    with GpuLock(path) as lock:
        assert lock.waited < 1
