"""Schedules changed by chance run right, or are refused by the path of a field."""

from __future__ import annotations

import random
import re

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

from tests.schedules.mutations import mutated
from tritonfuser import DataType, FusionDefinition, ParamsError

PATH = re.compile(
    r"(segments|splits|tile_splits|products|pieces|materialized|recomputed|invariants)"
    r"(\[\d+\](\.\w+(\[\d+\])?)?)?: "
)


def x_of(fd, rank=2, dtype=DataType.Float):
    return fd.define_tensor([-1] * rank, contiguity=True, dtype=dtype)


def softmax_and_columns(fd):
    x = x_of(fd)
    e = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
    fd.add_output(fd.ops.div(e, fd.ops.sum(e, [1], keepdim=True)))
    fd.add_output(fd.ops.sum(x, [0]))
    return [noise(6, 20)]


def norm_backward(fd):
    x, g = x_of(fd), x_of(fd)
    var, mean = fd.ops.var_mean(x, [1], correction=0, keepdim=True)
    scaled = fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-3)))
    fd.add_output(fd.ops.sub(g, fd.ops.mul(scaled, fd.ops.sum(fd.ops.mul(g, scaled), [1], True))))
    fd.add_output(fd.ops.sum(fd.ops.mul(g, scaled), [0]))
    fd.add_output(fd.ops.sum(g, [0]))
    return [noise(12, 24), noise(12, 24)]


def whole_sum(fd):
    x = x_of(fd)
    fd.add_output(fd.ops.sum(x, [0, 1]))
    fd.add_output(fd.ops.var(x, [0]))
    fd.add_output(fd.ops.max(x, [1]))
    return [noise(8, 12)]


def views(fd):
    x, y = x_of(fd), x_of(fd)
    turned = fd.ops.permute(x, [1, 0])
    fd.add_output(fd.ops.add(turned, y))
    fd.add_output(fd.ops.cat([fd.ops.relu(x), fd.ops.neg(fd.ops.permute(y, [1, 0]))], 0))
    fd.add_output(fd.ops.slice(x, [1, 0], [3, 4]))
    return [noise(16, 10), noise(10, 16)]


def scans(fd):
    x = x_of(fd)
    fd.add_output(fd.ops.cumsum(x, 1))
    fd.add_output(fd.ops.add(fd.ops.cumsum(fd.ops.exp(x), 0), x))
    fd.add_output(fd.ops.sum(x, [1]))
    return [noise(8, 12)]


def product(fd):
    a, b = x_of(fd, dtype=DataType.Half), x_of(fd, dtype=DataType.Half)
    out = fd.ops.relu(fd.ops.matmul(a, b))
    fd.add_output(out)
    fd.add_output(fd.ops.sum(out, [1]))
    return [noise(16, 32).half(), noise(32, 16).half()]


def library(fd):
    x = x_of(fd)
    values, _ = fd.ops.topk(fd.ops.mul(x, 2.0), 8, 1)
    y = fd.ops.add(fd.ops.exp(x), values)
    again, _ = fd.ops.topk(y, 6, 0)
    fd.add_output(fd.ops.add(again, fd.ops.exp(fd.ops.sum(y, [1], keepdim=True))))
    return [noise(6, 8)]


def group_norm(fd):
    x = x_of(fd, 3)
    var, mean = fd.ops.var_mean(x, [1, 2], correction=0, keepdim=True)
    fd.add_output(fd.ops.div(fd.ops.sub(x, mean), fd.ops.sqrt(fd.ops.add(var, 1.0))))
    fd.add_output(fd.ops.sum(x, [2]))
    return [noise(3, 4, 10)]


def scattered(fd):
    x, index, source = x_of(fd), x_of(fd, 1, DataType.Int), x_of(fd)
    rows = fd.ops.broadcast_in_dim(index, [2, 5], [0])
    put = fd.ops.scatter(fd.ops.neg(x), rows, source, 0)
    fd.add_output(put)
    fd.add_output(fd.ops.sum(fd.ops.exp(put), [1]))
    return [noise(6, 5), torch.tensor([3, 1]), noise(2, 5)]


def noise(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


BODIES = (
    softmax_and_columns,
    norm_backward,
    whole_sum,
    views,
    scans,
    product,
    library,
    group_norm,
    scattered,
)
DEFINITIONS = {}


def defined(body):
    """The definition, its inputs, what comes out, and its own schedules: recorded once."""
    if body not in DEFINITIONS:
        with FusionDefinition() as fd:
            inputs = body(fd)
        own = [fd.schedule(inputs), fd.schedule(inputs, _enable_options=["fuse_matmul"])]
        meta = [torch.empty_like(x, device="meta") for x in inputs]
        if body is not library:
            own.append(fd.schedule(meta, arch="sm_90"))
        DEFINITIONS[body] = fd, inputs, fd.run(inputs), [one.to_dict() for one in own]
    return DEFINITIONS[body]


def check(body, rng):
    """Whether a changed schedule ran."""
    fd, inputs, wanted, own = defined(body)
    data = mutated(rng.choice(own), rng)
    legal = fd.is_legal(data, inputs)
    try:
        found = fd.run([x.clone() for x in inputs], schedule=data)
    except ParamsError as error:
        assert PATH.match(error.message), error.message
        assert legal.reason == error.message
        return False
    assert legal
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-3)
        assert one.stride() == other.stride()
    return True


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_few_changed_schedules(body):
    """Always the same few. Some of them run."""
    ran = [check(body, random.Random(f"{body.__name__} {n}")) for n in range(25)]
    assert any(ran)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_those_that_are_legal_on_a_gpu_compile(body):
    fd, inputs, _, own = defined(body)
    meta = [torch.empty_like(x, device="meta") for x in inputs]
    compiled = 0
    for n in range(20):
        rng = random.Random(f"compiled {body.__name__} {n}")
        data = mutated(rng.choice(own), rng)
        legal = fd.is_legal(data, meta, arch="sm_90")
        assert legal or PATH.match(legal.reason), legal.reason
        if legal:
            fd.compile_for("sm_90", meta, schedule=data)
            compiled += 1
    assert compiled


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 600, 60))
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_many_changed_schedules(body, start):
    for n in range(start, start + 60):
        check(body, random.Random(f"{body.__name__} {n}"))


@hypothesis.settings(max_examples=40, derandomize=True, database=None, deadline=None)
@hypothesis.given(body=st.sampled_from(BODIES), rng=st.randoms(use_true_random=False))
def test_changes_that_shrink(body, rng):
    """Choices are hypothesis's: what fails is made small."""
    check(body, rng)
