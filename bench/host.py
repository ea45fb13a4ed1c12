"""``python -m bench.host``: what a call costs on the host, for one pointwise kernel."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tritonfuser import FusionDefinition

from .report import host_seconds, table

CALLS = 500
"""Calls between two waits for the device: few enough that its queue never fills."""
ROUNDS = 21


def _add_definition(a: torch.Tensor, b: torch.Tensor) -> FusionDefinition:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.add(fd.from_pytorch(a), fd.from_pytorch(b)))
    return fd


def host_time(run: Callable[[], Any], device: str, calls: int = CALLS) -> float:
    """Median seconds a call, without waiting for its result."""
    rounds: list[float] = []
    for _ in range(ROUNDS + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        rounds.append(host_seconds(run, calls))
    return statistics.median(rounds[1:])


def main() -> None:
    """Print the table: ours, eager, torch.compile."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a, b = torch.randn(2, 1024, device=device)
    fd = _add_definition(a, b)
    runs: dict[str, Callable[[], Any]] = {
        "fd.run([a, b])": partial(fd.run, [a, b]),
        "eager a + b": lambda: a + b,
    }
    if device == "cuda":
        runs["torch.compile of a + b"] = partial(torch.compile(torch.add), a, b)
    # In the interpreter a call computes, so far fewer of them do.
    calls = CALLS if device == "cuda" else 5
    rows = [
        {"call": name, "us": f"{host_time(run, device, calls) * 1e6:.1f}"}
        for name, run in runs.items()
    ]
    print(f"host time of a call, {device}")
    print(table(rows))


if __name__ == "__main__":
    main()
