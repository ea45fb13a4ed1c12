"""Processes that compile candidates: what they answer, and what becomes of one that ends."""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.lowering.kernels import vector_add
from tritonfuser import LoweringError
from tritonfuser.cache import kernels
from tritonfuser.frontend.tune import compile_pool
from tritonfuser.frontend.tune.compile_pool import CompilePool
from tritonfuser.frontend.tune.compiling import Compiler

ALL = (True, True, True)


@pytest.fixture
def pool(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    found = CompilePool()
    yield found
    found.stop()


def _workers(pool):
    server = pool._session._process.pid
    return [int(pid) for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split()]


def _wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_kernels_are_compiled_elsewhere_and_found_on_disk(pool, tmp_path):
    source = vector_add(name="elsewhere")
    here = (*kernels.kernel_key(source), "sm_90", ALL)
    assert pool.shared_bytes(source, "sm_90", ALL) == 0
    assert here not in kernels._COMPILED
    assert list(tmp_path.glob("*/elsewhere.cubin"))


def test_what_does_not_compile_is_a_reason(pool):
    source = vector_add(name="refused")
    wrong = replace(source, text=source.text.replace("tl.load", "tl.lode"))
    with pytest.raises(LoweringError, match="lode"):
        pool.shared_bytes(wrong, "sm_90", ALL)


def test_what_crashes_a_compiler_costs_no_later_kernel(pool):
    pool.start()
    _wait_for(lambda: pool._session.begun)
    first = pool._session
    os.kill(_workers(pool)[0], signal.SIGKILL)
    assert pool.shared_bytes(vector_add(name="after"), "sm_90", ALL) == 0
    assert first.ended and pool._session is not first


def _answer(pool, source):
    try:
        return pool.shared_bytes(source, "sm_90", ALL)
    except LoweringError as error:
        return error.message


def test_what_crashes_a_compiler_costs_no_kernel_beside_it(pool):
    """It is asked for once more with all others, and would end these a second time."""

    def doing(name, line):
        source = vector_add(name=name)
        return replace(source, text=f"{source.text}\nimport multiprocessing, os, time\n{line}\n")

    asked = [doing(f"beside{n}", "time.sleep(0.3)") for n in range(3)]
    asked.insert(1, doing("crashing", "multiprocessing.parent_process() and os._exit(3)"))
    with ThreadPoolExecutor(len(asked)) as threads:
        found = list(threads.map(partial(_answer, pool), asked))
    assert found == [0, "the process that compiles has ended", 0, 0]


def test_processes_that_cannot_be_are_asked_once(pool, monkeypatch):
    monkeypatch.setattr(compile_pool, "_SERVER", "tritonfuser.no_such_server")
    # Threads compile then, also what was asked first.
    assert pool.works
    assert Compiler(None, (), None, pool)._compiled(vector_add(name="here"), "sm_90", ALL) == 0
    assert not pool.works
    assert pool.shared_bytes(vector_add(name="late"), "sm_90", ALL) is None


def test_an_environment_that_changed_is_theirs_too(pool, tmp_path, monkeypatch):
    pool.start()
    first = pool._session
    pool.start()
    assert pool._session is first
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "other"))
    pool.shared_bytes(vector_add(name="moved"), "sm_90", ALL)
    assert list(tmp_path.glob("other/*/moved.cubin"))
    _wait_for(lambda: first.ended)


def test_what_is_late_is_forgotten(pool):
    pool.start()
    asked = pool._session.ask(vector_add(name="late"), "sm_90", ALL)
    pool.forget()
    assert asked.result(timeout=1) == "it is not compiled in time"
    assert pool.shared_bytes(vector_add(name="next"), "sm_90", ALL) == 0


def test_all_processes_end_with_the_pool(pool):
    pool.start()
    _wait_for(lambda: pool._session.begun)
    session, workers = pool._session, _workers(pool)
    assert len(workers) == pool.count
    pool.stop()
    _wait_for(lambda: session._process.poll() is not None)
    _wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))


def _ended(pid):
    """Whether a process has ended; nobody may have asked for its exit code."""
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_no_worker_outlives_the_server(pool):
    """Workers that held the pipe open would have everybody wait for what nobody compiles."""
    pool.start()
    _wait_for(lambda: pool._session.begun)
    first, workers = pool._session, _workers(pool)
    first._process.kill()
    _wait_for(lambda: first.ended and all(map(_ended, workers)))
    assert pool.shared_bytes(vector_add(name="again"), "sm_90", ALL) == 0


def test_modules_are_found_where_this_process_finds_them(pool, tmp_path, monkeypatch):
    """Not in the working directory, and what is no folder is passed over."""
    (tmp_path / "torch.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*filter(None, sys.path), tmp_path])
    assert pool.shared_bytes(vector_add(name="found"), "sm_90", ALL) == 0


def test_a_server_that_is_stopped_while_it_begins_says_nothing(pool, capfd):
    pool.start()
    process = pool._session._process
    pool.stop()
    assert process.wait(60) == 0
    assert not capfd.readouterr().err


def test_ctrl_c_is_not_for_the_server(pool):
    """A terminal sends it to all processes of the group, while they begin too."""
    pool.start()
    assert os.getpgid(pool._session._process.pid) != os.getpgid(0)


def test_what_cannot_be_sent_is_not_sent_again(pool):
    """The thread that reads the answers may see the end of the server later than who asks."""
    pool.start()
    _wait_for(lambda: pool._session.begun)
    session = pool._session

    def refused(job):
        raise BrokenPipeError

    session._pipe.send = refused
    assert pool.shared_bytes(vector_add(name="sent"), "sm_90", ALL) == 0
    session.stop()
