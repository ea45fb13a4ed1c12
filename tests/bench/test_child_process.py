"""Processes that are run for what they print, and the clock for imports in one of them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from bench.measure.import_clock import ImportClock
from bench.processes.child_process import ChildError, ending_tidily, output_of


def run(text, seconds=60.0, **environment):
    return output_of([sys.executable, "-c", text], {**os.environ, **environment}, seconds)


def gone(number):
    """Whether a process ends within moments; what is dead and not yet buried counts."""
    for _ in range(100):
        try:
            with open(f"/proc/{number}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_what_a_process_prints():
    assert run("import os; print(os.environ['A']); print(2)", A="b") == "b\n2\n"


def test_a_process_that_fails_or_takes_too_long():
    with pytest.raises(ChildError, match=r"^ValueError: no$"):
        run("raise ValueError('no')")
    with pytest.raises(ChildError, match=r"^ended with code 3$"):
        run("import os; os._exit(3)")
    begun = time.time()
    with pytest.raises(ChildError, match=r"^not done in 1 s$"):
        run("import time; time.sleep(60)", 1.0)
    assert time.time() - begun < 30


STARTS_ANOTHER = """
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid, flush=True)
"""


def test_what_a_process_has_started_ends_with_it(tmp_path):
    begun = time.time()
    assert gone(int(run(STARTS_ANOTHER)))
    path = tmp_path / "number"
    with pytest.raises(ChildError, match="not done"):
        run(f"{STARTS_ANOTHER}\nsys.stdout = open({str(path)!r}, 'w')\ntime.sleep(60)", 2.0)
    assert time.time() - begun < 30


def test_sigterm_is_an_exception_for_a_while():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, ending_tidily():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == before


# --- imports -------------------------------------------------------------------------------------


@pytest.fixture
def slow_modules(tmp_path, monkeypatch):
    """``slow_outer``, which imports ``slow_inner``: each takes a tenth of a second."""
    (tmp_path / "slow_inner.py").write_text("import time\ntime.sleep(0.1)\n")
    (tmp_path / "slow_outer.py").write_text("import slow_inner, time\ntime.sleep(0.1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("slow_inner", "slow_outer"):
        sys.modules.pop(name, None)


def test_imports_count_once_and_nothing_else(slow_modules):
    with ImportClock() as clock:
        time.sleep(0.3)
        __import__("slow_outer")
    assert 0.2 <= clock.seconds < 0.3
    before = clock.seconds
    sys.modules.pop("slow_outer")
    __import__("slow_outer")
    assert clock.seconds == before


def test_imports_of_other_threads_do_not_count(slow_modules):
    with ImportClock() as clock:
        thread = threading.Thread(target=__import__, args=("slow_outer",))
        thread.start()
        thread.join()
    assert clock.seconds == 0.0


def test_an_import_that_fails_counts():
    with ImportClock() as clock, pytest.raises(ModuleNotFoundError):
        __import__("no_such_module_anywhere")
    assert clock.seconds > 0
