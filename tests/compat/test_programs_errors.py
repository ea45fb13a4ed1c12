"""Refusals in programs written for nvFuser: RuntimeError for values, TypeError for types."""

from __future__ import annotations

import pytest
import torch

from tests.compat.programs import noise, record
from tritonfuser.compat.nvfuser_direct import DataType, FusionDefinition

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType

WRONG_TYPES = {
    "missing": lambda ops, t, s: ops.add(t),
    "nothing": lambda ops, t, s: ops.neg(),
    "too many": lambda ops, t, s: ops.neg(t, t),
    "unknown": lambda ops, t, s: ops.permute(t, [1, 0], stride=1),
    "twice": lambda ops, t, s: ops.permute(t, [1, 0], dims=[1, 0]),
    "a str": lambda ops, t, s: ops.add(t, "1"),
    "None": lambda ops, t, s: ops.add(t, None),
    "a torch tensor": lambda ops, t, s: ops.add(t, torch.ones(2)),
    "the name of a dtype": lambda ops, t, s: ops.cast(t, "float32"),
    "permute dims": lambda ops, t, s: ops.permute(t, [1.0, 0]),
    "permute no dims": lambda ops, t, s: ops.permute(t, None),
    "var_mean dims": lambda ops, t, s: ops.var_mean(t, [0.0]),
    "cumsum dim": lambda ops, t, s: ops.cumsum(t, 1.0),
    "cat dim": lambda ops, t, s: ops.cat([t, t], 0.0),
    "cat no list": lambda ops, t, s: ops.cat(t, 0),
    "cat a number": lambda ops, t, s: ops.cat([t, 1.0], 0),
    "squeeze dims": lambda ops, t, s: ops.squeeze(t, [0.5]),
    "gather dim": lambda ops, t, s: ops.gather(t, t, 0.0),
    "index no tensor": lambda ops, t, s: ops.index_select(t, 1, 0),
    "size dim": lambda ops, t, s: ops.size(t, 0.0),
    "reshape sizes": lambda ops, t, s: ops.reshape(t, [2.0, 3]),
    "reshape a tensor": lambda ops, t, s: ops.reshape(t, [t]),
    "expand sizes": lambda ops, t, s: ops.expand(t, [2.5, 3]),
    "full sizes": lambda ops, t, s: ops.full([2.0], 1.0, D.Float),
    "full no list": lambda ops, t, s: ops.full(2, 1.0, D.Float),
    "pad widths": lambda ops, t, s: ops.pad(t, [1.5, 1]),
    "slice starts": lambda ops, t, s: ops.slice(t, [0.0, 0], [1, 1]),
    "slice no list": lambda ops, t, s: ops.slice(t, 0, 1),
    "broadcast flags": lambda ops, t, s: ops.broadcast(t, [1.5]),
    "iota length": lambda ops, t, s: ops.iota(2.5),
    "uniform dtype by place": lambda ops, t, s: ops.uniform(0.0, 1.0, [2], D.Float),
    "a scalar for a tensor": lambda ops, t, s: ops.sum(s),
    "a number for a tensor": lambda ops, t, s: ops.reshape(1.0, [1]),
    "complex of a number": lambda ops, t, s: ops.complex(t, 1.0),
    "complex of numbers": lambda ops, t, s: ops.complex(0.0, 1.0),
    "complex of a tensor and a scalar": lambda ops, t, s: ops.complex(ops.cast(t, D.Double), s),
    "matmul of a number": lambda ops, t, s: ops.matmul(t, 2.0),
    "rand_like a scalar": lambda ops, t, s: ops.rand_like(s),
}


@pytest.mark.parametrize("what", WRONG_TYPES)
def test_an_argument_of_the_wrong_type(what):
    with pytest.raises(TypeError, match=r"\w+\(\): incompatible function arguments"):
        record(lambda fd: WRONG_TYPES[what](fd.ops, fd.define_tensor([2, 3]), fd.define_scalar()))


WRONG_VALUES = {
    "permute out of range": lambda ops, t, i: ops.permute(t, [0, 2]),
    "permute twice": lambda ops, t, i: ops.permute(t, [0, 0]),
    "permute too few": lambda ops, t, i: ops.permute(t, [0]),
    "sum out of range": lambda ops, t, i: ops.sum(t, [2]),
    "sum below": lambda ops, t, i: ops.sum(t, [-3]),
    "var_mean out of range": lambda ops, t, i: ops.var_mean(t, [2]),
    "cumsum out of range": lambda ops, t, i: ops.cumsum(t, 2),
    "squeeze out of range": lambda ops, t, i: ops.squeeze(t, [7]),
    "cat out of range": lambda ops, t, i: ops.cat([t, t], 2),
    "gather out of range": lambda ops, t, i: ops.gather(t, i, 2),
    "take out of range": lambda ops, t, i: ops.take_along_axis(t, i, -3),
    "index_select out of range": lambda ops, t, i: ops.index_select(t, ops.sum(i), 2),
    "argsort out of range": lambda ops, t, i: ops.argsort(t, 2),
    "topk out of range": lambda ops, t, i: ops.topk(t, 1, 2),
    "size out of range": lambda ops, t, i: ops.size(t, 2),
    "stride_order out of range": lambda ops, t, i: ops.stride_order(t, [0, 2]),
    "floats as indices": lambda ops, t, i: ops.index_select(t, t, 0),
    "broadcast": lambda ops, t, i: ops.broadcast(t, [True]),
    "shapes": lambda ops, t, i: ops.add(t, ops.full([4, 3], 1.0, D.Float)),
    "matmul": lambda ops, t, i: ops.matmul(t, t),
    "matmul dtypes": lambda ops, t, i: ops.matmul(t, ops.cast(ops.permute(t, [1, 0]), D.Half)),
    "imag of a real": lambda ops, t, i: ops.imag(t),
    "complex of two dtypes": lambda ops, t, i: ops.complex(t, ops.cast(t, D.Double)),
    "not of a float": lambda ops, t, i: ops.bitwise_not(t),
    "and of floats": lambda ops, t, i: ops.bitwise_and(t, t),
    "shift of floats": lambda ops, t, i: ops.bitwise_left_shift(t, t),
    "gcd of floats": lambda ops, t, i: ops.gcd(t, t),
    "gcd of bools": lambda ops, t, i: ops.gcd(ops.gt(t, 0.0), True),
    "nextafter of halves": lambda ops, t, i: ops.nextafter(ops.cast(t, D.Half), 1.0),
    "nextafter of ints": lambda ops, t, i: ops.nextafter(i, i),
    "where of floats": lambda ops, t, i: ops.where(t, t, t),
    "triu of a row": lambda ops, t, i: ops.triu(ops.sum(t, [0])),
    "full below 0": lambda ops, t, i: ops.full([-3], 1.0, D.Float),
    "full of Null": lambda ops, t, i: ops.full([3], 1.0, D.Null),
    "iota below 0": lambda ops, t, i: ops.iota(-1),
    "cast to Null": lambda ops, t, i: ops.cast(t, D.Null),
    "uniform of ints": lambda ops, t, i: ops.uniform(0.0, 1.0, [2], dtype=D.Int),
    "a seed alone": lambda ops, t, i: ops.uniform(0.0, 1.0, [2], rng_seed=1),
    "an offset alone": lambda ops, t, i: ops.normal(0.0, 1.0, [2], rng_offset=1),
    "rand_like of ints": lambda ops, t, i: ops.rand_like(i),
}


@pytest.mark.parametrize("what", WRONG_VALUES)
def test_a_value_that_does_not_fit(what):
    """Always a RuntimeError, never an IndexError, and on the line that wrote it."""
    with pytest.raises(RuntimeError) as error:
        record(
            lambda fd: WRONG_VALUES[what](
                fd.ops, fd.define_tensor([2, 3]), fd.define_tensor([2, 3], dtype=D.Int)
            )
        )
    assert f"at {__file__}:" in str(error.value)


def test_an_op_out_of_reach():
    with FusionDefinition() as fd:
        t = fd.define_tensor([2])
        fd.add_output(t)
        with pytest.raises(AttributeError, match="no op 'ad'; did you mean"):
            fd.ops.ad(t, t)
    for use in (
        lambda: fd.ops.neg(t),
        lambda: fd.define_tensor([2]),
        lambda: fd.define_scalar(1.0),
        lambda: fd.add_output(t),
    ):
        with pytest.raises(RuntimeError):
            use()
    with FusionDefinition() as other, pytest.raises(RuntimeError, match="another definition"):
        other.ops.neg(t)


def test_an_exception_in_the_block_shows_what_was_recorded():
    with pytest.raises(KeyError) as error, FusionDefinition() as fd:
        t = fd.define_tensor([2, -1])
        for _ in range(9):
            t = fd.ops.exp(t)
        raise KeyError("boo")
    (note,) = getattr(error.value, "__notes__", [None])
    if hasattr(error.value, "add_note"):
        assert note.splitlines() == [
            "Recorded so far:",
            "  inputs(tv0: Float[2, i0])",
            "  ...",
            *(f"  tv{n + 1}: Float[2, i0] = exp(tv{n})" for n in range(3, 9)),
        ]
    assert repr(fd) == "<FusionDefinition: nothing recorded>"


def test_sizes_that_do_not_fit_are_found_when_it_runs():
    def make(fd):
        t, u = fd.define_tensor([-1, -1]), fd.define_tensor([-1, -1])
        fd.add_output(fd.ops.add(t, u))
        fd.add_output(fd.ops.reshape(t, [3, -1]))

    fd = record(make)
    fd.execute([noise(3, 4), noise(3, 4)])
    for sizes, other in (((3, 4), (3, 5)), ((4, 4), (4, 4))):
        with pytest.raises(RuntimeError) as error:
            fd.execute([noise(*sizes), noise(*other)])
        assert f"at {__file__}:" in str(error.value)
