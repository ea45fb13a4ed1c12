"""Random points: an op, a dtype, and three sizes of nearly one length and of one alignment."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ..cases import BY_NAME, Case, Size

OPS = (
    "softmax",
    "layernorm",
    "layernorm_bwd",
    "rmsnorm_bwd",
    "sum_inner",
    "sum_outer",
    "bias_gelu",
)
"""The cases of the suite that points are of."""

MATRICES = {"sum_inner": 1, "sum_outer": 1, "layernorm_bwd": 3, "rmsnorm_bwd": 3}
"""Matrices that a case reads and writes, where they are not two."""

LEAST_BYTES, MOST_BYTES = 8 << 20, 1 << 30
SHORTEST, LONGEST = 64, 1 << 18
"""Elements of the reduced dim."""

NEAR = 0.02
"""Most relative difference in length between a point and a partner."""

STEPS = (1, 1, 2, 8, 8, 64, 256)
"""Lengths are multiples of one of these."""

VECTOR = 16
"""Bytes whose multiples rows may begin at: the alignment that partners share."""


@dataclass(frozen=True)
class Point:
    """One point.

    Attributes
    ----------
    op : str
        A case of the suite.
    dtype : str
        ``"bfloat16"`` or ``"float32"``.
    sizes : tuple of Size
        The point itself, then its two partners, a shorter and a longer one.
    """

    op: str
    dtype: str
    sizes: tuple[Size, Size, Size]

    @property
    def case(self) -> Case:
        """The case."""
        return BY_NAME[self.op]

    @property
    def torch_dtype(self) -> torch.dtype:
        found: torch.dtype = getattr(torch, self.dtype)
        return found

    @property
    def name(self) -> str:
        """``softmax 8192x4096 bfloat16``."""
        return f"{self.op} {'x'.join(map(str, self.sizes[0]))} {self.dtype}"


def random_points(count: int, seed: int = 0) -> list[Point]:
    """So many points, the same ones each time; of one seed the first ones of any greater number."""
    drawn = _points(random.Random(seed))
    return [next(drawn) for _ in range(count)]


def _points(rng: random.Random) -> Iterator[Point]:
    while True:
        for op in OPS:
            yield _point(op, rng)


def _point(op: str, rng: random.Random) -> Point:
    dtype = rng.choice(("bfloat16", "bfloat16", "float32"))
    item = 2 if dtype == "bfloat16" else 4
    elements = _between(rng, LEAST_BYTES, MOST_BYTES) / (item * MATRICES.get(op, 2))
    while True:
        step = rng.choice(STEPS)
        length = step * round(_between(rng, SHORTEST, min(LONGEST, elements)) / step)
        shorter, longer = (_partner(rng, length, step, item, sign) for sign in (-1, 1))
        if shorter and longer:
            break
    other = max(1, round(elements / length))
    lengths = (length, shorter, longer)
    # Of a column sum the length is that of the columns.
    first, second, third = ((n, other) if op == "sum_outer" else (other, n) for n in lengths)
    return Point(op, dtype, (first, second, third))


def _between(rng: random.Random, least: float, most: float) -> float:
    """Uniform in the logarithm."""
    return math.exp(rng.uniform(math.log(least), math.log(most)))


def _partner(rng: random.Random, length: int, step: int, item: int, sign: int) -> int:
    """A length near by on one side, of the same alignment; 0 where there is none."""
    room = int(NEAR * length) // step
    found = [length + sign * step * k for k in range(1, room + 1)]
    alike = [n for n in found if alignment(n, item) == alignment(length, item)]
    return rng.choice(alike) if alike else 0


def alignment(length: int, item: int) -> int:
    """Bytes that rows of a length begin at multiples of, 16 at most."""
    return math.gcd(length * item, VECTOR)
