"""Definitions whose outputs replace inputs, and what a run of them has to leave there."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tests.e2e.checking import copied
from tritonfuser import DataType, FusionDefinition

Define = Callable[[FusionDefinition, list[Any]], list[tuple[Any, int]]]
"""Records ops on inputs; returns results, each with the place of the input that it replaces."""


def recorded(define: Define, inputs: Sequence[torch.Tensor], replaces: bool) -> FusionDefinition:
    """The definition; its results replace inputs, or are returned beside them."""
    with FusionDefinition() as fd:
        given = [fd.from_pytorch(tensor) for tensor in inputs]
        for made, place in define(fd, given):
            fd.add_output(made, given[place] if replaces else None)
    return fd


def assert_replaces(define: Define, inputs: Sequence[torch.Tensor]) -> FusionDefinition:
    """Inputs are left as results of the same ops say that are returned; twice in a row."""
    fd = recorded(define, inputs, replaces=True)
    plain = recorded(define, inputs, replaces=False)
    with FusionDefinition() as probe:
        places = [p for _, p in define(probe, [probe.from_pytorch(x) for x in inputs])]
    mine, others = copied(inputs), copied(inputs)
    for _ in range(2):
        made = plain.run(others)
        for place, result in zip(places, made, strict=True):
            others[place] = torch.empty_like(others[place]).copy_(result)
        fd.run(mine)
        torch.testing.assert_close(mine, others, equal_nan=True)
    return fd


def adam(fd: FusionDefinition, given: list[Any]) -> list[tuple[Any, int]]:
    """A step of Adam without bias corrections: weight, gradient, both moments."""
    weight, gradient, mean, square = given
    ops = fd.ops
    gradient = ops.cast(gradient, DataType.Float)
    mean = ops.add(ops.mul(mean, 0.9), ops.mul(gradient, 0.1))
    square = ops.add(ops.mul(square, 0.99), ops.mul(ops.mul(gradient, gradient), 0.01))
    step = ops.div(mean, ops.add(ops.sqrt(square), 1e-6))
    weight = ops.cast(ops.sub(ops.cast(weight, DataType.Float), step), DataType.BFloat16)
    return [(weight, 0), (mean, 2), (square, 3)]


def adam_inputs(*sizes: int, device: str = "cpu") -> list[torch.Tensor]:
    torch.manual_seed(7)
    narrow = [torch.randn(sizes, device=device).bfloat16() for _ in range(2)]
    return [*narrow, torch.randn(sizes, device=device), torch.rand(sizes, device=device)]


def running_statistics(fd: FusionDefinition, given: list[Any]) -> list[tuple[Any, int]]:
    """Columns normalised over the rows, with running means and variances: batch norm."""
    x, means, variances, _ = given
    ops = fd.ops
    var, mean = ops.var_mean(x, [0], 0)
    centered = ops.sub(x, ops.broadcast(mean, [True, False]))
    rstd = ops.broadcast(ops.rsqrt(ops.add(var, 1e-5)), [True, False])
    return [
        (ops.add(ops.mul(means, 0.9), ops.mul(mean, 0.1)), 1),
        (ops.add(ops.mul(variances, 0.9), ops.mul(var, 0.1)), 2),
        (ops.mul(centered, rstd), 3),
    ]


def statistics_inputs(rows: int, columns: int, device: str = "cpu") -> list[torch.Tensor]:
    torch.manual_seed(5)
    draw = [torch.randn(rows, columns, device=device) for _ in range(2)]
    return [draw[0], *(torch.rand(columns, device=device) for _ in range(2)), draw[1]]


def drawn(seed: int, count: int = 3, size: int = 24) -> Define:
    """Random ops on square inputs: elementwise, along rows and columns, moved, turned around."""

    def define(fd: FusionDefinition, given: list[Any]) -> list[tuple[Any, int]]:
        pick = random.Random(seed)
        pool = list(given)
        for _ in range(pick.randint(1, 7)):
            x, y = pick.choice(pool), pick.choice(pool)
            move = pick.choice(_MOVES)
            pool.append(move(fd, x, y, size))
        made = pick.sample(pool[count:], min(pick.randint(1, count), len(pool) - count))
        return list(zip(made, pick.sample(range(count), len(made)), strict=True))

    return define


def _bent(fd: FusionDefinition, x: Any, y: Any, size: int) -> Any:
    return fd.ops.sub(fd.ops.tanh(x), y)


def _summed(fd: FusionDefinition, x: Any, y: Any, size: int) -> Any:
    return fd.ops.add(fd.ops.mul(x, fd.ops.sum(y, [1], keepdim=True)), y)


def _summed_down(fd: FusionDefinition, x: Any, y: Any, size: int) -> Any:
    return fd.ops.add(x, fd.ops.mul(fd.ops.sum(y, [0], keepdim=True), 0.1))


def _turned(fd: FusionDefinition, x: Any, y: Any, size: int) -> Any:
    return fd.ops.add(fd.ops.permute(x, [1, 0]), y)


def _moved(fd: FusionDefinition, x: Any, y: Any, size: int) -> Any:
    rest = fd.ops.slice(x, [1, 0], [size, size])
    return fd.ops.add(fd.ops.pad(rest, [0, 0, 0, 1]), y)


def _swapped(fd: FusionDefinition, x: Any, y: Any, size: int) -> Any:
    left = fd.ops.slice(x, [0, 0], [size, size // 2])
    right = fd.ops.slice(x, [0, size // 2], [size, size])
    return fd.ops.mul(fd.ops.cat([fd.ops.neg(right), left], 1), 0.5)


_MOVES = (_bent, _bent, _bent, _summed, _summed_down, _turned, _moved, _swapped)
