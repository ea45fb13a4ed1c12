"""Two processes that share a definition: over gloo on the CPU, over NCCL on two GPUs."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from tests.multidevice.cases import CASES

ROOT = Path(__file__).parents[2]
NAMES = [case.name for case in CASES if case.shape == (2,)]
CHECKS = [
    "communicator",
    "mesh_in_another_order",
    "written_inputs",
    "dtensors",
    "dtensors_of_one_dim_over_a_grid",
    "uneven_dtensors",
]


def free_port():
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


@functools.cache
def outcomes(device):
    """What went wrong in each process, by case."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.multidevice.worker"]
        launched = {**os.environ, "WORLD_SIZE": "2", "MASTER_PORT": str(free_port())}
        workers = [
            subprocess.Popen(
                [*command, str(rank), device, folder],
                cwd=ROOT,
                env={**launched, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(2)
        ]
        printed = []
        try:
            for worker in workers:
                printed.append(worker.communicate(timeout=240)[0])
        finally:
            for worker in workers:
                worker.kill()
        files = [Path(folder, f"{rank}.json") for rank in range(2)]
        assert all(file.exists() for file in files), "\n".join(printed)
        return [json.loads(file.read_text()) for file in files]


@pytest.mark.parametrize("name", NAMES + CHECKS)
def test_over_gloo(name):
    assert [found[name] for found in outcomes("cpu")] == ["", ""]


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("name", NAMES + CHECKS)
def test_over_nccl(name):
    assert [found[name] for found in outcomes("cuda")] == ["", ""]
