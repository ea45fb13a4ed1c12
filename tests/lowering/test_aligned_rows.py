"""Rows that begin inside of vectors, in tiles that begin at vectors: numbers, texts, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.cases import BY_NAME
from bench.select import size_of
from tests.lowering.graphs import noise
from tests.lowering.harness import H200, lowered, record
from tritonfuser.errors import ParamsError


def layer_norm(fd, x, w, b):
    dtype = x.dtype()
    x, w, b = (
        (fd.ops.cast(item, DataType.Float) for item in (x, w, b))
        if dtype != DataType.Double
        else (x, w, b)
    )
    var, mean = fd.ops.var_mean(x, [-1], correction=0, keepdim=True)
    scale = fd.ops.rsqrt(fd.ops.add(var, 1e-5))
    hat = fd.ops.mul(fd.ops.sub(x, mean), scale)
    return fd.ops.add(fd.ops.mul(hat, w), b), mean


def softmax(fd, x, w, b):
    top = fd.ops.max(x, [-1], keepdim=True)
    power = fd.ops.exp(fd.ops.sub(x, top))
    return fd.ops.mul(power, fd.ops.reciprocal(fd.ops.sum(power, [-1], keepdim=True)))


def dropout(fd, x, w, b):
    seed, offset = fd.define_scalar(3), fd.define_scalar(8)
    low, high = fd.define_scalar(0.0), fd.define_scalar(1.0)
    sizes = list(x.shape) if isinstance(x.shape, tuple) else x.shape()
    kept = fd.ops.lt(fd.ops.uniform(low, high, sizes, rng_seed=seed, rng_offset=offset), 0.75)
    scaled = fd.ops.mul(x, fd.ops.cast(kept, x.dtype))
    return fd.ops.sub(scaled, fd.ops.mean(scaled, [-1], keepdim=True))


BODIES = {"layer_norm": layer_norm, "softmax": softmax}
ROWS = [
    # columns, vector, block, tails, rows of a program
    (67, 4, 64, (16,), 1),
    (67, 4, 64, (8,), 4),
    (69, 8, 64, (16,), 2),
    (66, 8, 64, (32,), 1),
    (103, 8, 64, (32, 16), 2),
    (95, 8, 64, (32, 16), 1),
    (128, 8, 128, (16,), 1),
    (33, 16, 32, (32,), 4),
]


def aligned(fd, inputs, **changes):
    """What comes out where the first kernel's tiles begin at vectors."""
    first, *rest = fd.heuristics(inputs)
    return fd.run(inputs, params=[replace(first, **changes), *rest])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("columns", "vector", "block", "tails", "rows"), ROWS)
@pytest.mark.parametrize("kind", BODIES)
def test_the_same_numbers(kind, columns, vector, block, tails, rows, dtype):
    inputs = [
        noise(11, columns).to(dtype),
        noise(columns).to(dtype),
        noise(columns, seed=4).to(dtype),
    ]
    fd = record(BODIES[kind], inputs)
    changes = {"block_x": rows, "block_r": block, "tails": tails, "align": vector}
    found = aligned(fd, inputs, **changes, persistent=True)
    doubled = [x.double() for x in inputs]
    exact = record(BODIES[kind], doubled).run(doubled)
    for one, same, true in zip(found, fd.run(inputs), exact, strict=True):
        torch.testing.assert_close(one, same)
        torch.testing.assert_close(one.double(), true, rtol=2e-2, atol=2e-2)
