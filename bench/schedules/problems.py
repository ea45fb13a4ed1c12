"""Random problems: definitions of a few ops over tensors of random sizes, dtypes and layouts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition

BYTES = (1 << 18, 1 << 29)
"""Least and most bytes of the largest tensor of a problem."""

DTYPES = {"bfloat16": DataType.BFloat16, "float32": DataType.Float}

_UNARY = ("exp", "tanh", "relu", "sigmoid", "silu", "sqrt", "neg", "abs", "log1p", "erf")
_BINARY = ("add", "mul", "sub", "maximum")


@dataclass(frozen=True)
class Problem:
    """A definition and the shapes to run it at.

    Attributes
    ----------
    name : str
        Its family and number: the same name is the same problem.
    dtype : str
        Dtype of its tensors.
    rows, columns : int
        Of the tensors of two dims.
    """

    name: str
    dtype: str
    rows: int
    columns: int

    @property
    def family(self) -> str:
        return self.name.split("/")[0]

    def definition(
        self, *, open_sizes: bool = False
    ) -> tuple[FusionDefinition, list[tuple[tuple[int, ...], torch.dtype]]]:
        """The definition, and shape and dtype of each input.

        With ``open_sizes`` it declares tensors of any size. It is one definition for all rows and
        columns, but for constants that are sizes, and for the family "dropout".
        """
        rng = random.Random(self.name)
        with FusionDefinition() as fd:
            body = _Body(fd, rng, self, open_sizes)
            FAMILIES[self.family](body)
        return fd, body.inputs

    def recorded(self) -> FusionDefinition:
        """The definition."""
        return self.definition()[0]

    @property
    def is_random(self) -> bool:
        """Whether results differ from call to call."""
        return self.family == "dropout"

    def tensors(self, device: str) -> list[torch.Tensor]:
        """Random inputs."""
        torch.manual_seed(0)
        return [
            torch.randn(shape, device=device).to(dtype) for shape, dtype in self.definition()[1]
        ]


def random_problems(count: int, seed: int = 0) -> list[Problem]:
    """As many problems of each family as of the others."""
    names = list(FAMILIES)
    return [_random_problem(names[n % len(names)], n // len(names), seed) for n in range(count)]


def _random_problem(family: str, number: int, seed: int) -> Problem:
    name = f"{family}/{seed}.{number}"
    rng = random.Random(f"sizes of {name}")
    dtype = rng.choice(list(DTYPES))
    item = 2 if dtype == "bfloat16" else 4
    elements = _log_uniform(rng, *BYTES) / item
    longest = min(elements / 4, 1 << 18)
    columns = _log_uniform(rng, 16, max(longest, 17))
    columns = _aligned(rng, columns)
    rows = max(1, int(elements / columns))
    return Problem(name, dtype, _aligned(rng, rows) if rows > 8 else rows, columns)


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _aligned(rng: random.Random, size: float) -> int:
    """A size, often a multiple of a power of two, sometimes odd."""
    multiple = rng.choice((1, 8, 16, 64, 128, 256))
    return max(1, int(size) // multiple * multiple or int(size))


class _Body:
    """Records the ops of a problem."""

    def __init__(
        self, fd: FusionDefinition, rng: random.Random, problem: Problem, open_sizes: bool
    ) -> None:
        self.fd, self.rng, self.problem, self.open_sizes = fd, rng, problem, open_sizes
        self.ops: Any = fd.ops
        self.inputs: list[tuple[tuple[int, ...], torch.dtype]] = []

    def tensor(self, *shape: int) -> Any:
        """A new input, as Float."""
        self.inputs.append((shape, getattr(torch, self.problem.dtype)))
        dtype = DTYPES[self.problem.dtype]
        sizes = [-1 if self.open_sizes else size for size in shape]
        made = self.fd.define_tensor(sizes, contiguity=[True] * len(shape), dtype=dtype)
        return self.ops.cast(made, DataType.Float)

    def matrix(self) -> Any:
        return self.tensor(self.problem.rows, self.problem.columns)

    def weight(self) -> Any:
        """A row for all rows."""
        return self.spread(self.tensor(self.problem.columns), True)

    def spread(self, value: Any, over_rows: bool) -> Any:
        return self.ops.broadcast(value, [over_rows, not over_rows])

    def some_ops(self, value: Any, most: int = 6) -> Any:
        """A random chain of elementwise ops."""
        for _ in range(self.rng.randrange(most + 1)):
            name = self.rng.choice(_UNARY)
            source = self.ops.abs(value) if name in ("sqrt", "log1p") else value
            value = getattr(self.ops, name)(source)
        return value

    def mixed(self, values: Sequence[Any]) -> Any:
        """All values, combined elementwise."""
        found = values[0]
        for value in values[1:]:
            found = getattr(self.ops, self.rng.choice(_BINARY))(found, value)
        return found

    def result(self, value: Any) -> None:
        self.fd.add_output(self.ops.cast(value, DTYPES[self.problem.dtype]))


def _pointwise(b: _Body) -> None:
    values = [b.matrix() for _ in range(b.rng.randrange(1, 5))]
    values += [b.weight() for _ in range(b.rng.randrange(3))]
    value = b.some_ops(b.mixed(values), 10)
    for _ in range(b.rng.randrange(1, 3)):
        b.result(value)
        value = b.some_ops(value, 3)


def _transposed(b: _Body) -> None:
    other = b.ops.permute(b.tensor(b.problem.columns, b.problem.rows), [1, 0])
    b.result(b.some_ops(b.mixed([b.matrix(), other])))


def _reduced(b: _Body, dim: int) -> None:
    values = [b.matrix() for _ in range(b.rng.randrange(1, 4))]
    value = b.some_ops(b.mixed(values), 4)
    name = b.rng.choice(("sum", "sum", "max", "var"))
    found = b.ops.var(value, [dim]) if name == "var" else getattr(b.ops, name)(value, [dim])
    b.result(found)
    if b.rng.random() < 0.3:
        b.result(value)


def _softmax(b: _Body, dim: int) -> None:
    value = b.some_ops(b.mixed([b.matrix() for _ in range(b.rng.randrange(1, 3))]), 2)
    spread = [dim == 0, dim == 1]
    top = b.ops.broadcast(b.ops.max(value, [dim]), spread)
    powers = b.ops.exp(b.ops.sub(value, top))
    total = b.ops.broadcast(b.ops.sum(powers, [dim]), spread)
    b.result(b.ops.div(powers, total))


def _norm(b: _Body, dim: int) -> None:
    value = b.mixed([b.matrix() for _ in range(b.rng.randrange(1, 3))])
    spread = [dim == 0, dim == 1]
    if b.rng.random() < 0.5:
        var, mean = b.ops.var_mean(value, [dim], 0)
        value = b.ops.sub(value, b.ops.broadcast(mean, spread))
    else:
        var = b.ops.sum(b.ops.mul(value, value), [dim])
    scale = b.ops.rsqrt(b.ops.add(b.ops.broadcast(var, spread), 1e-5))
    value = b.ops.mul(value, scale)
    if dim == 1 and b.rng.random() < 0.7:
        value = b.ops.add(b.ops.mul(value, b.weight()), b.weight())
    b.result(b.some_ops(value, 2))


def _norm_backward(b: _Body) -> None:
    grad, value, weight = b.matrix(), b.matrix(), b.weight()
    scale = b.spread(b.tensor(b.problem.rows), False)
    normal = b.ops.mul(value, scale)
    wide = b.ops.mul(grad, weight)
    mean = b.ops.sum(b.ops.mul(wide, normal), [1])
    mean = b.spread(b.ops.div(mean, float(b.problem.columns)), False)
    b.result(b.ops.mul(b.ops.sub(wide, b.ops.mul(normal, mean)), scale))
    b.result(b.ops.sum(b.ops.mul(grad, normal), [0]))
    if b.rng.random() < 0.5:
        b.result(b.ops.sum(grad, [0]))


def _dropout(b: _Body) -> None:
    value = b.mixed([b.matrix() for _ in range(b.rng.randrange(1, 3))])
    draws = b.ops.uniform(0.0, 1.0, [b.problem.rows, b.problem.columns], dtype=DataType.Float)
    kept = b.ops.cast(b.ops.lt(draws, 0.9), DataType.Float)
    b.result(b.ops.mul(b.ops.mul(value, kept), 1.0 / 0.9))


FAMILIES: dict[str, Callable[[_Body], None]] = {
    "pointwise": _pointwise,
    "transposed": _transposed,
    "row reduction": lambda b: _reduced(b, 1),
    "column reduction": lambda b: _reduced(b, 0),
    "softmax": lambda b: _softmax(b, 1),
    "column softmax": lambda b: _softmax(b, 0),
    "norm": lambda b: _norm(b, 1),
    "column norm": lambda b: _norm(b, 0),
    "norm backward": _norm_backward,
    "dropout": _dropout,
}
"""Family -> what records a problem of it."""
