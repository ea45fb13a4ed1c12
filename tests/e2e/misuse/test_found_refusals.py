"""What wrong calls found while recording: each was a bare error, or went through to the run."""

from __future__ import annotations

import math

import pytest
import torch

from tests.e2e.misuse.judging import fault_of
from tests.e2e.misuse.wrong_values import endless
from tritonfuser import DataType, FusionDefinition, TritonFuserError

D = DataType
HUGE = 2**63


def recorded(call):
    """The error of a wrong call on tensors ``t`` [3, 4], ``q`` [2, 3, 7, 16] and ``m`` [32, 64]."""
    with FusionDefinition() as fd:
        t, q, m = (fd.define_tensor(list(s)) for s in ((3, 4), (2, 3, 7, 16), (32, 64)))
        with pytest.raises(TritonFuserError) as caught:
            call(fd, t, q, m)
        assert not fd.fusion.ir.nodes
    return caught.value


TYPES = {
    "add a list in itself": ("add", lambda fd, t, q, m: fd.ops.add(t, endless())),
    "cat a list in itself": ("cat", lambda fd, t, q, m: fd.ops.cat(endless(), 0)),
    "add beyond int64": ("add", lambda fd, t, q, m: fd.ops.add(t, HUGE)),
    "full beyond a double": ("full", lambda fd, t, q, m: fd.ops.full([2], 10**400, D.Float)),
    "uniform beyond a double": ("uniform", lambda fd, t, q, m: fd.ops.uniform(0, 10**400, [2])),
    "iota beyond int64": ("iota", lambda fd, t, q, m: fd.ops.iota(HUGE)),
    "var beyond int64": ("var", lambda fd, t, q, m: fd.ops.var(t, [0], 2**100)),
    "scalar beyond int64": ("define_scalar", lambda fd, t, q, m: fd.define_scalar(HUGE)),
    "scalar below 0": ("define_scalar", lambda fd, t, q, m: fd.define_scalar(-1, dtype=D.UInt64)),
    "scalar of a tensor": (
        "define_scalar",
        lambda fd, t, q, m: fd.define_scalar(torch.ones(2)),
    ),
    "static_sizes": (
        "from_pytorch",
        lambda fd, t, q, m: fd.from_pytorch(torch.ones(2), static_sizes=1.5),
    ),
}
VALUES = {
    "scalar of no Int": ("define_scalar", lambda fd, t, q, m: fd.define_scalar(math.inf, D.Int)),
    "full of 2**80": ("full", lambda fd, t, q, m: fd.ops.full([2**40, 2**40], 1.0, D.Float)),
    "pad to 2**80": ("pad", lambda fd, t, q, m: fd.ops.pad(t, [0, 2**40, 0, 2**40])),
    "dropout of 1.5": ("sdpfa_fwd", lambda fd, t, q, m: fd.ops.sdpfa_fwd(q, q, q, 1.5, True)),
    "bias": ("sdpfa_fwd", lambda fd, t, q, m: fd.ops.sdpfa_fwd(q, q, q, t)),
    "mask": (
        "sdpfa_fwd",
        lambda fd, t, q, m: fd.ops.sdpfa_fwd(q, q, q, None, fd.define_tensor([3], dtype=D.Bool)),
    ),
    "bias of ints": (
        "sdpfa_fwd",
        lambda fd, t, q, m: fd.ops.sdpfa_fwd(q, q, q, fd.define_tensor([7], dtype=D.Int)),
    ),
    "logsumexp": (
        "sdpfa_bwd",
        lambda fd, t, q, m: fd.ops.sdpfa_bwd(q, q, q, q, q, t, 0.0, True, t, t, None),
    ),
    "output": (
        "sdpfa_bwd",
        lambda fd, t, q, m: fd.ops.sdpfa_bwd(
            q, q, q, q, fd.define_tensor([2, 3, 7, 8]), q, 0.0, True, t, t, None
        ),
    ),
    "scale1": ("scaled_mm", lambda fd, t, q, m: fd.ops.scaled_mm(m, square(fd), t, one(fd))),
    "scale of none": (
        "scaled_mm",
        lambda fd, t, q, m: fd.ops.scaled_mm(m, square(fd), fd.define_tensor([0]), one(fd)),
    ),
    "scale of bools": (
        "scaled_mm",
        lambda fd, t, q, m: fd.ops.scaled_mm(
            m, square(fd), fd.define_tensor([], dtype=D.Bool), one(fd)
        ),
    ),
    "bias of a product": (
        "scaled_mm",
        lambda fd, t, q, m: fd.ops.scaled_mm(m, square(fd), one(fd), one(fd), bias=t),
    ),
    "packed result": (
        "scaled_mm",
        lambda fd, t, q, m: fd.ops.scaled_mm(
            m, square(fd), one(fd), one(fd), dtype=D.Float4_e2m1fn
        ),
    ),
    "a row by groups": (
        "grouped_mm",
        lambda fd, t, q, m: fd.ops.grouped_mm(
            fd.define_tensor([4]), t, fd.define_tensor([2], dtype=D.Int32)
        ),
    ),
    "topk of bools": (
        "topk",
        lambda fd, t, q, m: fd.ops.topk(fd.define_tensor([4], dtype=D.Bool), 1),
    ),
    "complex norm": (
        "embedding_fwd",
        lambda fd, t, q, m: fd.ops.embedding_fwd(
            fd.define_tensor([2], dtype=D.Int), t, max_norm=1.0, norm_type=1j
        ),
    ),
    "float padding": (
        "embedding_fwd",
        lambda fd, t, q, m: fd.ops.embedding_fwd(fd.define_tensor([2], dtype=D.Int), t, 0.5),
    ),
    "float4": ("add", lambda fd, t, q, m: fd.ops.add(t, packed(fd))),
    "exp of float4": ("exp", lambda fd, t, q, m: fd.ops.exp(packed(fd))),
    "sum of float4": ("sum", lambda fd, t, q, m: fd.ops.sum(packed(fd), [0])),
    "var of float4": ("var", lambda fd, t, q, m: fd.ops.var(packed(fd), [0])),
    "sum in float4": ("sum", lambda fd, t, q, m: fd.ops.sum(t, [0], dtype=D.Float4_e2m1fn)),
    "cast to float4": ("cast", lambda fd, t, q, m: fd.ops.cast(t, D.Float4_e2m1fn)),
}


def square(fd):
    return fd.define_tensor([64, 48])


def one(fd):
    return fd.define_tensor([])


def packed(fd):
    return fd.define_tensor([3, 4], dtype=D.Float4_e2m1fn_x2)


@pytest.mark.parametrize("what", TYPES)
def test_a_wrong_type_is_refused_when_recorded(what):
    op, call = TYPES[what]
    error = recorded(call)
    assert isinstance(error, TypeError)
    assert fault_of(error, [op]) is None


@pytest.mark.parametrize("what", VALUES)
def test_a_wrong_value_is_refused_when_recorded(what):
    op, call = VALUES[what]
    error = recorded(call)
    assert isinstance(error, RuntimeError)
    assert fault_of(error, [op]) is None


def test_views_and_copies_of_packed_types_are_taken():
    with FusionDefinition() as fd:
        x = packed(fd)
        fd.add_output(fd.ops.set(fd.ops.permute(fd.ops.reshape(x, [4, 3]), [1, 0])))
    assert [node.op for node in fd.fusion.ir.nodes] == ["reshape", "permute", "set"]


@pytest.mark.parametrize("high", [math.nan, math.inf, -math.inf])
def test_numbers_up_to_what_is_no_number(high):
    """The bound was written into the kernel as ``nan``, a name that is none."""
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.uniform(1.0, high, [64], rng_seed=1, rng_offset=0))
    (found,) = fd.run([])
    assert found.shape == (64,) and not bool((found < 1.0).any() and high > 1.0)
    assert bool(found.isnan().all()) is math.isnan(high)


@pytest.mark.parametrize("low", [-2, -1])
def test_constants_below_0_beside_uint64(low):
    """They wrap, as a cast of theirs does."""
    x = torch.tensor([1, 2**63 + 5, 2**64 - 1], dtype=torch.uint64)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.threshold(fd.from_pytorch(x), 2, low))
    (found,) = fd.run([x])
    assert found.tolist() == [2**64 + low, 2**63 + 5, 2**64 - 1]


def test_torchs_errors_have_the_op_and_its_line():
    q = torch.ones(1, 1, 4, 8)
    with FusionDefinition() as fd:
        t, p = fd.from_pytorch(q), fd.define_scalar(D.Double)
        fd.add_output(fd.ops.sdpfa_fwd(t, t, t, p, True, None)[0])
    with pytest.raises(RuntimeError, match=r"sdpfa_fwd: .*dropout probability") as caught:
        fd.run([q, 2.5])
    assert fault_of(caught.value, ["sdpfa_fwd"]) is None
