"""Who has the GPU to itself: one process at a time, again for its holder, no dead one."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from bench.processes.gpu_lock import Turn

HOLDS = """
import sys, time
from bench.processes.gpu_lock import Turn
with Turn(sys.argv[1]):
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
        turn = Turn(path)
        with turn:
            pass
    assert 0.3 < turn.waited < 5
    assert turn.held < 0.3


def test_the_holder_enters_again(tmp_path):
    turn = Turn(str(tmp_path / "lock"))
    with turn, turn:
        time.sleep(0.05)
    assert 0.05 <= turn.held < 1
    with Turn(str(tmp_path / "lock")):
        pass


def test_one_thread_at_a_time(tmp_path):
    turn = Turn(str(tmp_path / "lock"))
    inside = []

    def enter():
        with turn:
            inside.append(1)
            assert len(inside) == 1
            time.sleep(0.02)
            inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert turn.held >= 0.08


def test_an_error_lets_go(tmp_path):
    path = str(tmp_path / "lock")
    with pytest.raises(ValueError, match="boom"), Turn(path):
        raise ValueError("boom")
    with Turn(path) as turn:
        assert turn.waited < 1
