"""``python -m tritonfuser calibrate``: measures, shows, stores."""

from __future__ import annotations

import contextlib
import os
from importlib import import_module

import pytest
import torch
from click.testing import CliRunner

from tritonfuser import calibration, devices, options
from tritonfuser.cli.main import main
from tritonfuser.frontend.calibrate.probes import PROBES, Fact

command = import_module("tritonfuser.cli.calibrate")
H200 = devices.known("sm_90")


def run(*words):
    return CliRunner().invoke(main, ["calibrate", *words])


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A GPU whose facts are twice those of an H200; the argument says how much one varied."""
    monkeypatch.setenv("TRITONFUSER_CACHE_DIR", os.fspath(tmp_path))
    options.refresh()
    varied = [0.02]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    monkeypatch.setattr(command, "built_in", lambda index: H200)
    monkeypatch.setattr(
        command,
        "measured",
        lambda facts: [Fact(name, 2 * getattr(facts, name), varied[0]) for name in PROBES],
    )
    yield varied
    monkeypatch.undo()
    options.refresh()


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = run()
    assert result.exit_code == 1
    assert "calibrate times GPUs: 0 are here, asked for is 0" in result.output


def test_a_gpu_that_is_not_there(gpu):
    for number in ("1", "-1"):
        assert f"1 are here, asked for is {number}" in run("--device", number).output


def test_what_is_measured_is_shown_and_stored(gpu):
    result = run()
    assert result.exit_code == 0, result.output
    assert result.output.startswith("NVIDIA H200, sm_90\n")
    for name in PROBES:
        assert any(
            line.split()[0] == name and line.split()[3] == "2.000"
            for line in result.output.splitlines()
            if line
        )
    assert "runs with TRITONFUSER_CALIBRATED=1 use it" in result.output
    found = calibration.load(H200.name, H200.arch)
    assert found.bandwidth_bytes_per_s == 2 * H200.bandwidth_bytes_per_s


def test_nothing_is_stored(gpu, tmp_path):
    assert run("--no-store").exit_code == 0
    gpu[0] = 0.3
    result = run()
    assert result.exit_code == 1 and "nothing is stored" in result.output
    assert "run it again while nothing else uses the GPU" in result.output
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_cannot_be_written_to(gpu, tmp_path):
    (tmp_path / "devices").write_text("a file")
    result = run()
    assert result.exit_code == 1
    assert "set TRITONFUSER_CACHE_DIR to a directory that can be written to" in result.output
