"""Processes that use one folder of schedules at once, are killed, and lose it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tritonfuser

WORKER = """
import json, os, random, sys, traceback
from pathlib import Path
import click, torch
from click.testing import CliRunner
from tests.frontend.tune.fakes import softmax
from tritonfuser.cache.tuned import store
from tritonfuser.cache.tuned.store import Stored
from tritonfuser.cli import params
from tritonfuser.cli.main import main
from tritonfuser.devices import CPU
from tritonfuser.frontend.serialization.signatures import signature_data

params._devices = lambda: [CPU]
given = random.Random(int(sys.argv[1]))
private = Path(sys.argv[2])
print("begun", flush=True)


def problem():
    fd, _ = softmax()
    return fd, [torch.randn(given.choice((2, 3, 4)), 300)]


def tune():
    fd, inputs = problem()
    core, schedule = fd._core(), fd.schedule(inputs)
    key = core.store_key(inputs)
    if given.random() < 0.2:
        store.remove(key)
        return
    data = {"definition": fd.to_dict(), "inputs": signature_data(core.signature(inputs))}
    store.save(key, Stored(schedule, 1e-5, 2e-5, "cpu", data))


def run():
    fd, inputs = problem()
    (out,) = fd.run(inputs)
    torch.testing.assert_close(out, torch.softmax(inputs[0], 1))


def command(*words):
    result = CliRunner().invoke(main, [*map(str, words)])
    fault = result.exception
    if fault is not None and not isinstance(fault, SystemExit):
        raise fault
    return result


def export():
    if command("params", "export", "-o", private).exit_code == 0:
        json.loads(private.read_text())


def bring():
    if private.exists():
        assert "stored, " in command("params", "import", private).output


work = [tune, tune, run, export, bring]
work += [lambda: command("params", "list"), lambda: command("params", "clear", "--yes")]
while True:
    try:
        given.choice(work)()
    except BaseException:
        traceback.print_exc()
        os._exit(3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_they_go_on(tmp_path, seed):
    """For ten seconds; after that whoever is left has seen no error."""
    rng, folder = random.Random(seed), tmp_path / "cache"
    root = Path(tritonfuser.__file__).parents[1]
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "TRITONFUSER_CACHE_DIR": str(folder),
        "TRITONFUSER_TUNED": "1",
        "OMP_NUM_THREADS": "1",
    }

    def begin(number):
        command = [sys.executable, "-c", WORKER, str(number)]
        command.append(str(tmp_path / f"{number}.json"))
        child = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert child.stdout.readline() == "begun\n", child.stderr.read()
        return child

    children, count = [begin(number) for number in range(3)], 3
    until = time.monotonic() + 10
    try:
        while time.monotonic() < until:
            time.sleep(rng.uniform(0.0, 0.3))
            for child in children:
                assert child.poll() is None, child.stderr.read()
            if rng.random() < 0.1:
                shutil.rmtree(folder, ignore_errors=True)
            if rng.random() < 0.2:
                children.pop(rng.randrange(3)).send_signal(signal.SIGKILL)
                children.append(begin(count := count + 1))
    finally:
        for child in children:
            child.kill()
            child.communicate()
    for path in folder.glob("schedules/*.json"):
        assert json.loads(path.read_text())["version"]
