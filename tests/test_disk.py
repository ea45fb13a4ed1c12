"""Files that are replaced as a whole: at a full disk, a kill, a folder that goes away."""

from __future__ import annotations

import errno
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

from tritonfuser import disk, options

OLD = {"number": 1, "text": "old"}
NEW = {"number": 2, "text": "new" * 100}


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "folder" / "file.json"
    disk.replace_json(found, OLD)
    return found


STEPS = {"open": Path, "fsync": os, "replace": os}


@pytest.mark.parametrize("name", STEPS)
def test_where_a_step_fails_the_old_file_stays_and_no_other(path, name, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(STEPS[name], name, fail)
    with pytest.raises(OSError, match="No space left"):
        disk.replace_json(path, NEW)
    monkeypatch.undo()
    assert json.loads(path.read_text()) == OLD
    assert [*path.parent.iterdir()] == [path]


def test_what_is_no_data_leaves_the_old_file(path):
    with pytest.raises(TypeError):
        disk.replace_json(path, {"number": object()})
    assert json.loads(path.read_text()) == OLD and [*path.parent.iterdir()] == [path]


def test_a_folder_that_is_removed_meanwhile_is_made_again(path, monkeypatch):
    """Once between making it and writing into it, once before the file takes its place."""
    for name in ("open", "replace"):
        module = STEPS[name]
        call, left = getattr(module, name), [path.parent]

        def removing(*given, call=call, left=left, **options):
            if left:
                shutil.rmtree(left.pop())
            return call(*given, **options)

        monkeypatch.setattr(module, name, removing)
        disk.replace_json(path, NEW)
        monkeypatch.undo()
        assert json.loads(path.read_text()) == NEW and not left


def test_what_killed_writers_left_is_removed(path):
    """By the next that writes there; a file that somebody may be writing now is left alone."""
    dead, alive = path.with_name("a.123.new"), path.with_name("b.456.new")
    for left in (dead, alive):
        left.write_text("{")
    long_ago = time.time() - 2 * disk.DEAD_SECONDS
    os.utime(dead, (long_ago, long_ago))
    disk.replace_json(path, NEW)
    assert {*path.parent.iterdir()} == {path, alive}


def test_a_clock_that_went_back(path):
    """Files of the future are no older than those of now."""
    later = time.time() + 1e6
    for file in (path, path.with_name("a.123.new")):
        file.touch()
        os.utime(file, (later, later))
    disk.replace_json(path, NEW)
    assert json.loads(path.read_text()) == NEW
    assert path.with_name("a.123.new").exists()


def test_text_goes_through_what_is_no_file(tmp_path):
    """A pipe or ``/dev/stdout`` is written to, not replaced."""
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    disk.replace_text(tmp_path / "pipe", "all of it")
    assert os.read(reader, 100) == b"all of it"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_stays_one(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    disk.replace_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "new"


def test_text_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    disk.replace_text(tmp_path / "replaced", "")
    modes = {(tmp_path / name).stat().st_mode for name in ("plain", "replaced")}
    assert len(modes) == 1


WRITER = """
import sys
from pathlib import Path
from tritonfuser import disk
print("begun", flush=True)
number = 0
while True:
    number += 1
    disk.replace_json(Path(sys.argv[1]), {"number": number, "list": [number] * 20_000})
"""


@pytest.mark.slow
def test_kills_in_the_middle_of_a_write(path):
    rng = random.Random(0)
    environment = {**os.environ, "PYTHONPATH": str(Path(disk.__file__).parents[1])}
    for _ in range(40):
        command = [sys.executable, "-c", WRITER, str(path)]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.05))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        found = json.loads(path.read_text())
        assert found == OLD or found["list"] == [found["number"]] * 20_000


# --- where the folder is -------------------------------------------------------------------------


@pytest.fixture
def at(monkeypatch):
    def set_to(text):
        monkeypatch.setenv("TRITONFUSER_CACHE_DIR", text)
        options.refresh()
        return disk.cache_folder()

    yield set_to
    monkeypatch.undo()
    options.refresh()


def test_it_stays_where_it_was_when_the_program_goes_elsewhere(at, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = at("caches")
    assert first == tmp_path / "caches"
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert disk.cache_folder() == first


def test_the_home_has_its_short_name(at, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert at("~/caches") == tmp_path / "caches"
