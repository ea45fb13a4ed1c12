"""Processes that share a definition: over gloo on the CPU, over NCCL on GPUs."""

from __future__ import annotations

import pytest
import torch

from tests.multidevice.launch import outcomes
from tests.multidevice.programs import of_size

CHECKS = [
    "communicator",
    "mesh_in_another_order",
    "written_inputs",
    "dtensors",
    "dtensors_of_one_dim_over_a_grid",
    "uneven_dtensors",
    "parts_of_several_sizes",
]
OF_TWO = [case.name for case in of_size(2)] + CHECKS
OF_FOUR = [case.name for case in of_size(4)]


@pytest.mark.parametrize("name", OF_TWO)
def test_over_gloo(name):
    assert [found[name] for found in outcomes("cpu")] == ["", ""]


@pytest.mark.parametrize("name", OF_FOUR)
def test_four_over_gloo(name):
    assert [found[name] for found in outcomes("cpu", 4)] == [""] * 4


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("name", OF_TWO)
def test_over_nccl(name):
    assert [found[name] for found in outcomes("cuda")] == ["", ""]


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 4, reason="needs four GPUs")
@pytest.mark.parametrize("name", OF_FOUR)
def test_four_over_nccl(name):
    assert [found[name] for found in outcomes("cuda", 4)] == [""] * 4
