"""Processes that share definitions: over gloo on the CPU, over NCCL on GPUs."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


@functools.cache
def outcomes(device: str, count: int = 2) -> list[dict[str, str]]:
    """What went wrong in each process, by program; empty where nothing did."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.multidevice.worker"]
        launched = {**os.environ, "WORLD_SIZE": f"{count}", "MASTER_PORT": str(free_port())}
        logs = [Path(folder, f"{rank}.log") for rank in range(count)]
        workers = []
        for rank, log in enumerate(logs):
            with log.open("w") as stream:
                worker = subprocess.Popen(
                    [*command, str(rank), device, folder],
                    cwd=ROOT,
                    env={**launched, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdout=stream,
                    stderr=subprocess.STDOUT,
                )
            workers.append(worker)
        try:
            for worker in workers:
                worker.wait(timeout=420)
        finally:
            for worker in workers:
                worker.kill()
        files = [Path(folder, f"{rank}.json") for rank in range(count)]
        printed = "\n".join(log.read_text() for log in logs)
        assert all(file.exists() for file in files), printed
        return [json.loads(file.read_text()) for file in files]
