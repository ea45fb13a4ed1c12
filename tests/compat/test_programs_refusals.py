"""Dims and numbers that nvFuser refuses when they are recorded: its type of error, its phrase."""

from __future__ import annotations

import math

import pytest
import torch

from tests.compat.programs import noise, ran, record
from tritonfuser.compat.nvfuser_direct import DataType, FusionDefinition

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType

SCAN = "Tried to access out of boundary index"
SQUEEZE = "Squeeze dim is outside of Tensor size!"
TOO_MANY = "The dims to squeeze must be <= the number of dims of the input tensor"

REFUSED = {
    "cumsum above": (lambda ops, t: ops.cumsum(t, 2), SCAN),
    "cumsum below": (lambda ops, t: ops.cumsum(t, -3), SCAN),
    "cumprod above": (lambda ops, t: ops.cumprod(t, 2), SCAN),
    "cummax of no dims": (lambda ops, t: ops.cummax(ops.sum(t, [0, 1]), 0), SCAN),
    "squeeze above": (lambda ops, t: ops.squeeze(t, [2]), SQUEEZE),
    "squeeze below": (lambda ops, t: ops.squeeze(t, [-3]), SQUEEZE),
    "squeeze too many": (lambda ops, t: ops.squeeze(t, [0, 1, 1]), TOO_MANY),
    "squeeze of no dims": (lambda ops, t: ops.squeeze(ops.sum(t, [0, 1]), [0]), TOO_MANY),
    "iota of a float length": (
        lambda ops, t: ops.iota(ops.cast(t.size(0), D.Double)),
        "length must be integer",
    ),
    "iota start": (
        lambda ops, t: ops.iota(3, 1.5, 1),
        "iota: start dtype does not match specified dtype argument",
    ),
    "iota step": (
        lambda ops, t: ops.iota(3, 1.0, 1, D.Float),
        "iota: step dtype does not match specified dtype argument",
    ),
    "iota complex": (
        lambda ops, t: ops.iota(3, 1j, 1, D.Int),
        "iota: start dtype does not match specified dtype argument",
    ),
    "iota infinite": (
        lambda ops, t: ops.iota(3, math.inf, 1.0, D.Float),
        "iota: length, start, step must be finite numbers",
    ),
    "sum above": (lambda ops, t: ops.sum(t, [2]), "sum"),
    "sum twice": (lambda ops, t: ops.sum(t, [0, -2]), "each dim once"),
    "permute short": (lambda ops, t: ops.permute(t, [0]), "permute"),
    "gather above": (lambda ops, t: ops.gather(t, ops.cast(t, D.Int), 2), "gather"),
    "index_select of no dims": (
        lambda ops, t: ops.index_select(ops.sum(t, [0, 1]), ops.cast(t, D.Int), 0),
        "index_select",
    ),
    "topk above": (lambda ops, t: ops.topk(t, 1, 2), "topk"),
    "argsort below": (lambda ops, t: ops.argsort(t, -3), "argsort"),
    "cat above": (lambda ops, t: ops.cat([t, t], 2), "cat"),
    "pad of too many": (lambda ops, t: ops.pad(t, [1] * 6), "pad"),
    "stride_order twice": (lambda ops, t: ops.stride_order(t, [0, 0]), "stride_order"),
    "select above": (lambda ops, t: ops.select(t, 0, 2), "select"),
    "broadcast short": (lambda ops, t: ops.broadcast(t, [True]), "broadcast"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_when_recorded(what):
    call, phrase = REFUSED[what]

    def make(fd: FusionDefinition) -> None:
        t = fd.define_tensor([2, 3])
        try:
            call(fd.ops, t)
        finally:
            refused = what.split()[0]
            assert all(node.op != refused for node in fd.fusion.ir.nodes), "it left a node behind"

    with pytest.raises(RuntimeError) as caught:
        record(make)
    assert not isinstance(caught.value, IndexError)
    assert phrase in str(caught.value) and "test_programs_refusals.py" in str(caught.value)


INDEX = torch.tensor([[1, 0, 2], [0, 2, 1]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_indices_of_a_floating_dtype_are_converted(dtype):
    x, index = noise(2, 3), INDEX.to(dtype)
    assert torch.equal(
        ran(lambda ops, t, i: ops.take_along_axis(t, i, 1), x, index), x.take_along_dim(INDEX, 1)
    )
    assert torch.equal(ran(lambda ops, t, i: ops.gather(t, i, 1), x, index), x.gather(1, INDEX))
    rows = torch.tensor([1.0, 0.0, 1.9], dtype=dtype)
    assert torch.equal(ran(lambda ops, t, i: ops.index_select(t, i, 0), x, rows), x[rows.long()])
    src = noise(2, 3, seed=1)
    assert torch.equal(
        ran(lambda ops, t, i, s: ops.scatter(t, i, s, 1), x, index, src),
        x.scatter(1, INDEX, src),
    )


HEADS = (2, 3, 7, 16)


def attention(*options, named=None):
    """The output of a forward pass with options behind query, key and value."""
    inputs = [noise(*HEADS, seed=place) for place in range(3)]
    return ran(lambda ops, q, k, v: ops.sdpfa_fwd(q, k, v, *options, **(named or {}))[0], *inputs)


def test_attention_as_older_programs_call_it():
    wanted = attention(named={"dropout_p": 0.0, "is_causal": True, "scale": 0.3})
    assert torch.equal(attention(0.0, True, 0.3), wanted)
    assert torch.equal(attention(0.0, True, named={"scale": 0.3}), wanted)
    assert torch.equal(attention(None, None, 0.0, True, 0.3), wanted)
    plain = attention()
    assert torch.equal(attention(0.0), plain) and not torch.equal(plain, wanted)


def test_attention_backward_takes_none_for_its_options():
    q, k, v = (noise(*HEADS, seed=place) for place in range(3))

    def grads(*options):
        def call(ops, q, k, v):
            out, saved, seed, offset = ops.sdpfa_fwd(q, k, v)
            return list(ops.sdpfa_bwd(q, q, k, v, out, saved, *options, seed, offset))

        return ran(call, q, k, v)

    for mine, plain in zip(grads(None, None), grads(0.0, False), strict=True):
        assert torch.equal(mine, plain)


@pytest.mark.parametrize("number", [2.5, 2.0, True, None])
def test_counts_are_integers_whether_constant_or_not(number):
    """A constant of another dtype was cut to an integer; one of a run was refused."""
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1], contiguity=True)
        count = fd.define_scalar(D.Double) if number is None else fd.define_scalar(number)
        with pytest.raises(RuntimeError, match="length must be integer"):
            fd.ops.iota(count)
        with pytest.raises(RuntimeError, match="expected an integer k"):
            fd.ops.topk(t, count, 0)
        fd.add_output(fd.ops.relu(t))
