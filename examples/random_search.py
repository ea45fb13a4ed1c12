"""Search for a faster schedule at random: ``python examples/random_search.py [SECONDS]``."""

from __future__ import annotations

import random
import sys
import time

import torch

from tritonfuser import BoundPlan, FusionDefinition, LoweringError


def seconds(plan: BoundPlan, inputs: list[torch.Tensor], runs: int = 20) -> float:
    """The least time of a run, with all that the host does."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        out = plan(inputs)
        if out[0].is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def search(fd: FusionDefinition, inputs: list[torch.Tensor], budget_s: float) -> tuple[dict, float]:
    """The fastest schedule that was found, as plain data, and its time over the heuristics'."""
    space, rng = fd.search_space(inputs), random.Random(0)
    first = seconds(fd.plan(inputs), inputs)
    best, least = space.schedule, first
    end = time.perf_counter() + budget_s
    while time.perf_counter() < end:
        schedule = space.draw(rng)
        if not fd.is_legal(schedule, inputs):
            continue
        try:
            took = seconds(fd.plan(inputs, schedule=schedule), inputs)
        except LoweringError:  # more registers or shared memory than there are
            continue
        if took < least:
            best, least = schedule, took
    return best.to_dict(), least / first


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(4096, 2048, device=device) if device == "cuda" else torch.randn(32, 64)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        e = fd.ops.exp(fd.ops.sub(t, fd.ops.max(t, [1], keepdim=True)))
        fd.add_output(fd.ops.div(e, fd.ops.sum(e, [1], keepdim=True)))
    found, ratio = search(fd, [x], float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
    print(f"{ratio:.2f} of the heuristics' time")
    for segment in found["segments"]:
        print(segment["scheduler"], segment["params"])
