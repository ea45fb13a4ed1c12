"""What the time of passes is measured on, and how it is counted."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from bench import passes
from bench.measure.stopwatch import STAGES, Stopwatch
from bench.model import SMALL, blocks
from bench.model.sizes import EPS

F32 = torch.float32


def real_inputs(count):
    """As ``blocks.make_inputs``, with numbers in it."""
    generator = torch.Generator().manual_seed(0)
    found = blocks.make_inputs(SMALL, count, F32, "cpu")
    found[0].random_(SMALL.vocabulary, generator=generator)
    for tensor in found[1:]:
        wide = tensor.shape[-1] if tensor.dim() > 1 else 1
        tensor.normal_(generator=generator).div_(math.sqrt(wide))
    return found


def rms_norm(x, weight):
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + EPS) * weight


def rotary(x, cos, sin):
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat([-right, left], -1) * sin


def block(x, p, cos, sin):
    shape = (SMALL.batch, SMALL.tokens, SMALL.heads, SMALL.head)
    q, k, v = (
        t.reshape(shape).transpose(1, 2) for t in (rms_norm(x, p["norm1"]) @ p["qkv"].T).chunk(3, 1)
    )
    q, k = rotary(q, cos, sin), rotary(k, cos, sin)
    found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + found.transpose(1, 2).reshape(x.shape) @ p["proj"].T
    n = rms_norm(x, p["norm2"])
    return x + (F.silu(n @ p["gate"].T) * (n @ p["up"].T)) @ p["down"].T


@pytest.mark.parametrize("count", [1, 2])
def test_blocks_are_what_autograd_makes_of_them(count):
    inputs = real_inputs(count)
    tokens, cos, sin, table, *weights, grad = inputs
    names = list(blocks.weights(SMALL))
    leaves = [w.clone().requires_grad_() for w in weights]
    layers = [
        dict(zip(names, leaves[n : n + len(names)], strict=True))
        for n in range(0, len(leaves), len(names))
    ]
    start = F.embedding(tokens, table).reshape(SMALL.rows, SMALL.width).requires_grad_()
    x = start
    for p in layers:
        x = block(x, p, cos, sin)
    x.backward(grad)
    fd = blocks.record(count, backwards=True, sizes=SMALL, dtype=F32)
    out, *grads, d_start = fd.run(inputs)
    torch.testing.assert_close(out, x.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(d_start, start.grad, rtol=1e-3, atol=1e-3)
    wanted = [p[name].grad for p in reversed(layers) for name in ORDER]
    for found, expected in zip(grads, wanted, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


ORDER = ("down", "up", "gate", "norm2", "proj", "qkv", "norm1")


@pytest.mark.parametrize("family", passes.FAMILIES)
def test_each_family_is_measured(family):
    size = 32 if passes.FAMILIES[family][1][0] >= 500 else 1
    found = passes.measure(family, size)
    assert found.ops >= size and found.kernels >= 1
    spent = [getattr(found, name) for name in ("record", *STAGES)]
    assert min(spent) >= 0 and sum(spent) <= found.total + 1e-6


@pytest.mark.parametrize("family", ["line", "ladder", "fan"])
def test_chains_are_one_kernel(family):
    assert passes.measure(family, 64).kernels == 1


def test_a_stage_inside_another_counts_once():
    watch = Stopwatch(iter([0.0, 1.0, 3.0, 10.0]).__next__)
    with watch.stage("outer"), watch.stage("inner"):
        pass
    assert watch.seconds == {"inner": 2.0, "outer": 8.0}


def test_exponents():
    def took(ops, total):
        return passes.Measured("line", ops, ops, 1, 0, 0, 0, 0, 0, 0, 0, total)

    found = [took(10, 1.0), took(20, 4.0)]
    assert passes.exponent(*found) == 2.0
    assert [row["exponent"] for row in passes.rows_of(found)] == ["", "2.00"]
