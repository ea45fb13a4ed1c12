"""Measured facts of GPUs: written, read where an option asks, refused where they cannot be."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace

import pytest
import torch

from tests.test_device import reported
from tritonfuser import calibration, devices, options
from tritonfuser.calibration import Calibration, load, path_of, save
from tritonfuser.device import DeviceProperties
from tritonfuser.errors import OptionError
from tritonfuser.heuristics.cost.constants import H200_CONSTANTS, constants_of

H200 = devices.known("sm_90")
FOUND = Calibration(
    bandwidth_bytes_per_s=2e12,
    clock_hz=1.5e9,
    launch_s=4e-6,
    memory_latency_s=1.4e-6,
    product_flops_per_s=1e14,
)


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """The facts of a GPU that torch reports, with the option or without, in a folder of its own."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: reported())

    def facts(calibrated: bool):
        monkeypatch.setenv("TRITONFUSER_CACHE_DIR", os.fspath(tmp_path))
        monkeypatch.setenv("TRITONFUSER_CALIBRATED", str(int(calibrated)))
        options.refresh()
        forget()
        return devices.of(torch.device("cuda", 0))

    yield facts
    monkeypatch.undo()
    options.refresh()
    forget()


def forget():
    devices.built_in.cache_clear()
    devices._calibrated.cache_clear()


def test_measured_facts_are_used_where_an_option_asks(gpu):
    assert gpu(False) == H200
    path = save(H200.name, H200.arch, FOUND)
    assert gpu(False) == H200, "they are opt-in"
    assert gpu(True) == replace(H200, **asdict(FOUND))
    assert load(H200.name, H200.arch) == FOUND
    assert [*path.parent.iterdir()] == [path], "nothing is left of writing"


def test_a_gpu_that_was_not_calibrated_is_named(gpu):
    with pytest.raises(OptionError, match="NVIDIA H200 has not been calibrated") as error:
        gpu(True)
    assert "Run python -m tritonfuser calibrate, or unset TRITONFUSER_CALIBRATED" in str(
        error.value
    )


def changed(**given):
    data = {"version": 1, "name": H200.name, "arch": H200.arch, "facts": asdict(FOUND)}
    return json.dumps({**data, **given})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        "{}",
        changed(version=2),
        changed(name="NVIDIA A100"),
        changed(facts={}),
        changed(facts={**asdict(FOUND), "clock_hz": "1"}),
        changed(facts={**asdict(FOUND), "clock_hz": True}),
        changed(facts={**asdict(FOUND), "clock_hz": -1.0}),
        changed(facts={**asdict(FOUND), "clock_hz": float("nan")}),
        changed(facts={**asdict(FOUND), "clock_hz": float("inf")}),
        changed(facts={**asdict(FOUND), "sm_count": 1.0}),
    ],
)
def test_what_cannot_be_read_is_refused(gpu, text):
    gpu(False)
    path = path_of(H200.name, H200.arch)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(OptionError, match=r"\.json cannot be read: \w+") as error:
        gpu(True)
    assert str(path) in str(error.value)
    save(H200.name, H200.arch, FOUND)
    assert gpu(True).clock_hz == 1.5e9, "a new one replaces it"


def test_a_name_is_no_path(gpu):
    gpu(False)
    odd = path_of("../../x", "sm_90")
    assert odd.parent == path_of("y", "sm_90").parent and odd.stem.isalnum()
    assert path_of("y", "sm_80") != path_of("y", "sm_90")


def test_the_model_takes_longer_launches_and_latencies():
    assert constants_of(H200) == H200_CONSTANTS, "built-in facts are those that it is fitted with"
    assert all(
        constants_of(devices.known(arch)) == H200_CONSTANTS for arch in devices.ARCHITECTURES
    )
    found = constants_of(replace(H200, **asdict(FOUND)))
    assert found.launch_s == 2 * H200_CONSTANTS.launch_s
    assert found.kernel_s == 2 * H200_CONSTANTS.kernel_s
    assert found.latency_s == 2 * H200_CONSTANTS.latency_s
    scaled = ("launch_s", "kernel_s", "latency_s")
    same = replace(found, **{name: getattr(H200_CONSTANTS, name) for name in scaled})
    assert same == H200_CONSTANTS


def test_kernels_of_another_calibration_have_other_keys(gpu):
    gpu(False)
    before = options.codegen_options()
    save(H200.name, H200.arch, FOUND)
    gpu(True)
    assert options.codegen_options() != before


def test_every_measured_fact_is_one_of_a_device():
    assert set(asdict(FOUND)) < set(DeviceProperties.__slots__)
    assert calibration.OPTION in {row.env for row in options.table()}
