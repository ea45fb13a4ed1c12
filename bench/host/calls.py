"""The calls that ``bench.host`` times: one kernel and four kernels, and their peers in torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from tritonfuser import FusionDefinition

EAGER, COMPILED = "eager a + b", "torch.compile of a + b"
RUN, PLAN, INTO = "fd.run([a, b])", "plan([a, b])", "plan([a, b], out=[c])"
THERE = "fd.run([a, b], device=a.device)"
MANY_RUN, MANY_PLAN = "fd.run, 10 inputs, 4 kernels", "plan, 10 inputs, 4 kernels"
GRAPH = "plan.graph([a, b])()"
ELEMENTS = 1024
SIDE = 64
"""Elements per tensor, and side of a matrix: kernels finish before the next launch."""


@dataclass(frozen=True)
class Call:
    """A row of the table: a call, and how many tritonfuser kernels it launches."""

    name: str
    run: Callable[[], Any]
    kernels: int = 0


@dataclass(frozen=True)
class Bar:
    """A target: ``call`` takes at most ``most`` times as long as ``against``."""

    call: str
    against: str
    most: float

    @property
    def text(self) -> str:
        return f"{self.call} <= {self.most}x {self.against}"


BARS = (
    Bar(RUN, EAGER, 1.7),
    Bar(RUN, COMPILED, 0.4),
    Bar(THERE, RUN, 1.3),
    Bar(PLAN, EAGER, 1.2),
    Bar(INTO, EAGER, 1.2),
    Bar(MANY_RUN, EAGER, 5.0),
)


def all_calls(device: str) -> list[Call]:
    """All calls, bound to their inputs."""
    return [*_one_kernel(device), *_four_kernels(device)]


# --- one kernel ----------------------------------------------------------------------------------


def _one_kernel(device: str) -> list[Call]:
    a, b = torch.randn(2, ELEMENTS, device=device)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.add(fd.from_pytorch(a), fd.from_pytorch(b)))
    plan = fd.plan([a, b])
    out = plan.allocate()
    into = torch.empty_like(a)
    kernels = len(plan.kernels)
    calls = [
        Call(EAGER, lambda: a + b),
        Call("eager torch.add(a, b, out=c)", partial(torch.add, a, b, out=into)),
        Call(RUN, lambda: fd.run([a, b]), kernels),
        Call(THERE, lambda: fd.run([a, b], device=a.device), kernels),
        Call(PLAN, lambda: plan([a, b]), kernels),
        Call(INTO, lambda: plan([a, b], out=out), kernels),
    ]
    if device != "cuda":
        return calls
    return [
        *calls,
        Call(GRAPH, plan.graph([a, b], plan.allocate()), kernels),
        Call(COMPILED, partial(torch.compile(_add, dynamic=False), a, b)),
    ]


def _add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b


# --- four kernels --------------------------------------------------------------------------------


def _four_kernels(device: str) -> list[Call]:
    inputs = list(torch.randn(10, SIDE, SIDE, device=device))
    with FusionDefinition() as fd:
        given = [fd.from_pytorch(x) for x in inputs]
        ops = fd.ops
        fd.add_output(_chain(given, ops.mul, ops.add, ops.cumsum))
    plan = fd.plan(inputs)
    out = plan.allocate()
    kernels = len(plan.kernels)
    calls = [
        Call(MANY_RUN, lambda: fd.run(inputs), kernels),
        Call(MANY_PLAN, lambda: plan(inputs), kernels),
        Call(f"{MANY_PLAN}, out=", lambda: plan(inputs, out=out), kernels),
        Call("eager, 10 inputs", partial(_chained, *inputs)),
    ]
    if device != "cuda":
        return calls
    compiled = torch.compile(_chained, dynamic=False)
    return [*calls, Call("torch.compile, 10 inputs", partial(compiled, *inputs))]


def _chained(*inputs: torch.Tensor) -> Any:
    return _chain(inputs, torch.mul, torch.add, torch.cumsum)


def _chain(
    inputs: Any, mul: Callable[..., Any], add: Callable[..., Any], cumsum: Callable[..., Any]
) -> Any:
    """Alternating cumulative sums over columns and rows, which cannot fuse with one another."""
    first, *others = inputs
    total = first
    for place in range(4):
        x, y = others[2 * place : 2 * place + 2]
        total = cumsum(add(mul(total, x), y), place % 2)
    return add(total, others[-1])
