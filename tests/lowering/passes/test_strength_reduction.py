"""Cheaper ops in the place of dear ones: where they are written, where not, and that they agree."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.lowering.graphs import gelu, noise
from tests.lowering.harness import record
from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.ir_graph import check
from tritonfuser.lowering.passes.arithmetic.random_masks import (
    first_word_of_one,
    unit_float,
    words_below,
)
from tritonfuser.lowering.passes.arithmetic.reduced_precision import reduce_precision
from tritonfuser.lowering.passes.arithmetic.strength_reduction import reduce_strength
from tritonfuser.lowering.passes.concretize import concretize
from tritonfuser.lowering.passes.simplify import simplify
from tritonfuser.ops.creation import philox

D = DataType


def ops(body, *inputs):
    """The ops that are left of a definition."""
    ir = record(body, inputs).fusion.ir
    concrete = concretize(ir, signature(ir, inputs, torch.device("cpu")))
    return [node.op for node in check(reduce_precision(reduce_strength(simplify(concrete)))).nodes]


# --- 1 + tanh(x) ---------------------------------------------------------------------------------


def gelu_backward(fd, x):
    tanh = fd.ops.tanh(x)
    steep = fd.ops.sub(1.0, fd.ops.mul(tanh, tanh))
    return fd.ops.add(fd.ops.add(tanh, 1.0), fd.ops.mul(x, steep))


def test_one_plus_tanh_is_one_function() -> None:
    for body in (gelu, gelu_backward):
        found = ops(body, noise(4, 5))
        assert found.count("one_plus_tanh") == 1 and "tanh" not in found


@pytest.mark.parametrize(
    "body",
    [
        lambda fd, x: fd.ops.tanh(x),
        lambda fd, x: fd.ops.mul(fd.ops.tanh(x), fd.ops.add(fd.ops.tanh(x), 1.0)),
        lambda fd, x: (fd.ops.tanh(x), fd.ops.add(fd.ops.tanh(x), 1.0)),
        lambda fd, x: fd.ops.add(fd.ops.tanh(x), 0.25),
        lambda fd, x: fd.ops.add(fd.ops.tanh(fd.ops.cast(x, D.Double)), 1.0),
    ],
)
def test_tanh_near_0_stays_exact(body) -> None:
    assert "tanh" in ops(body, noise(4, 5))


# --- 1 / (1 + exp(-x)) ---------------------------------------------------------------------------


def power(fd, x):
    return fd.ops.add(1.0, fd.ops.exp(fd.ops.neg(x)))


SIGMOIDS = [
    lambda fd, x: fd.ops.reciprocal(power(fd, x)),
    lambda fd, x: fd.ops.div(1.0, power(fd, x)),
    lambda fd, x: fd.ops.mul(x, fd.ops.reciprocal(fd.ops.add(fd.ops.exp(fd.ops.neg(x)), 1.0))),
    lambda fd, x: fd.ops.reciprocal(fd.ops.add(1.0, fd.ops.exp(x))),
]


@pytest.mark.parametrize("body", SIGMOIDS)
def test_a_sigmoid_written_out_is_one_function(body) -> None:
    found = ops(body, noise(4, 5))
    assert found.count("sigmoid") == 1 and not {"exp", "reciprocal", "div"} & set(found)
    narrow = ops(lambda fd, x: halved(fd, fd.ops.mul(body(fd, x), 3.0)), noise(4, 5))
    assert "coarse_sigmoid" in narrow
    ends = torch.tensor(
        [0.0, -0.0, math.inf, -math.inf, math.nan, 88.0, -88.0, -100.0, 104.0, 1e-30]
    )
    for x in (torch.linspace(-90, 90, 4001), ends):
        with FusionDefinition() as fd:
            fd.add_output(body(fd, fd.from_pytorch(x)))
        (out,) = fd.run([x])
        exact = expected_sigmoid(body, x)
        torch.testing.assert_close(out.double(), exact, rtol=1e-6, atol=1e-36, equal_nan=True)


def expected_sigmoid(body, x):
    """In float64, by torch."""
    below = torch.sigmoid(-x.double() if body is SIGMOIDS[3] else x.double())
    return x.double() * below if body is SIGMOIDS[2] else below


@pytest.mark.parametrize(
    "body",
    [
        lambda fd, x: (power(fd, x), fd.ops.reciprocal(power(fd, x))),
        lambda fd, x: fd.ops.mul(power(fd, x), fd.ops.reciprocal(power(fd, x))),
        lambda fd, x: fd.ops.reciprocal(fd.ops.add(2.0, fd.ops.exp(x))),
        lambda fd, x: fd.ops.div(2.0, power(fd, x)),
        lambda fd, x: fd.ops.div(power(fd, x), 1.0),
        lambda fd, x: fd.ops.reciprocal(power(fd, fd.ops.cast(x, D.Double))),
    ],
)
def test_what_is_no_sigmoid_or_needs_its_parts_stays(body) -> None:
    assert "sigmoid" not in ops(body, noise(4, 5))


# --- x / 8 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "made"), [(8.0, "mul"), (-0.5, "mul"), (3.0, "div")])
def test_division_by_a_power_of_two(number: float, made: str) -> None:
    assert ops(lambda fd, x: fd.ops.div(x, number), noise(4)) == [made]
    assert ops(lambda fd, x: fd.ops.div(number, x), noise(4)) == ["div"]


def test_division_of_integers_stays() -> None:
    assert ops(lambda fd, x: fd.ops.div(x, 8), noise(4).int()) == ["div"]


# --- exp and sigmoid, rounded to 16 bits ---------------------------------------------------------


def halved(fd, value):
    return fd.ops.cast(value, D.BFloat16)


FUNCTIONS = ["exp", "sigmoid", "sqrt", "reciprocal"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_coarse_where_no_more_than_16_bits_come_out(name: str) -> None:
    def function(fd, x):
        return getattr(fd.ops, name)(x)

    narrow = [
        lambda fd, x: halved(fd, function(fd, fd.ops.add(x, 1.0))),
        lambda fd, x: halved(fd, fd.ops.mul(x, fd.ops.sub(function(fd, x), 1.0))),
        lambda fd, x: halved(fd, fd.ops.permute(fd.ops.mul(function(fd, x), 3.0), [1, 0])),
        lambda fd, x: halved(fd, fd.ops.sum(function(fd, x), [0])),
    ]
    wide = [
        lambda fd, x: fd.ops.mul(function(fd, x), 2.0),
        lambda fd, x: (function(fd, x), halved(fd, fd.ops.neg(function(fd, x)))),
        lambda fd, x: fd.ops.gt(function(fd, x), 0.5),
        lambda fd, x: fd.ops.cast(halved(fd, fd.ops.neg(function(fd, x))), D.Float),
        lambda fd, x: halved(fd, fd.ops.neg(function(fd, fd.ops.cast(x, D.Double)))),
    ]
    for body in narrow:
        assert f"coarse_{name}" in ops(body, noise(4, 5))
    for body in wide:
        assert f"coarse_{name}" not in ops(body, noise(4, 5))


def rounded_norm(fd, x, name):
    """The norm of a rounded function, with its statistics in float32."""
    rounded = fd.ops.cast(halved(fd, fd.ops.neg(getattr(fd.ops, name)(x))), D.Float)
    var, mean = fd.ops.var_mean(rounded, [1], 0)
    spread = fd.ops.rsqrt(fd.ops.add(fd.ops.broadcast(var, [False, True]), 1e-5))
    centered = fd.ops.sub(rounded, fd.ops.broadcast(mean, [False, True]))
    return halved(fd, fd.ops.mul(centered, spread)), mean, spread


@pytest.mark.parametrize("name", FUNCTIONS)
def test_statistics_of_rounded_values_may_be_wide(name: str) -> None:
    def sliced(fd, x):
        outs = rounded_norm(fd, x, name)
        return (*outs, fd.ops.mul(fd.ops.cast(halved(fd, getattr(fd.ops, name)(x)), D.Float), 2.0))

    def scanned(fd, x):
        return fd.ops.cumsum(fd.ops.cast(halved(fd, getattr(fd.ops, name)(x)), D.Float), 1)

    def summed(fd, x):
        return fd.ops.sum(getattr(fd.ops, name)(x), [1])

    assert f"coarse_{name}" in ops(lambda fd, x: rounded_norm(fd, x, name), noise(4, 5))
    for body in (sliced, scanned, summed):
        assert f"coarse_{name}" not in ops(body, noise(4, 5))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_alone_has_the_bits_of_torch(name: str) -> None:
    assert ops(lambda fd, x: halved(fd, getattr(fd.ops, name)(x)), noise(4)) == [name, "cast"]


@pytest.mark.parametrize(
    "step",
    [
        lambda fd, x: fd.ops.floor(x),
        lambda fd, x: fd.ops.remainder(x, 2.0),
        lambda fd, x: fd.ops.where(fd.ops.ge(x, 2.0), 1.0, 0.5),
        lambda fd, x: fd.ops.cast(fd.ops.cast(x, D.Int), D.Float),
    ],
)
def test_the_last_place_counts_before_a_step(step) -> None:
    """6 / 3 is 2, and the floor of a little less is 1."""

    def body(fd, x, y):
        return halved(fd, step(fd, fd.ops.div(x, y)))

    assert "div" in ops(body, noise(4, 5), noise(4, 5))


def test_coarse_division() -> None:
    def body(fd, x, y):
        return halved(fd, fd.ops.neg(fd.ops.div(x, y)))

    assert "coarse_div" in ops(body, noise(4, 5), noise(4, 5))
    assert "coarse_div" not in ops(body, noise(4, 5).int(), noise(4, 5).int() + 1)


def gelu_with_erf(fd, x):
    inner = fd.ops.erf(fd.ops.mul(x, 0.7071067811865476))
    return fd.ops.mul(fd.ops.mul(0.5, x), fd.ops.add(1.0, inner))


def test_one_plus_erf_for_16_bits() -> None:
    assert "one_plus_erf" in ops(lambda fd, x: halved(fd, gelu_with_erf(fd, x)), noise(4, 5))
    assert "one_plus_erf" not in ops(gelu_with_erf, noise(4, 5))


def gelu_with_scaled_erf(fd, x, first=0.5):
    half = fd.ops.mul(0.5, fd.ops.erf(fd.ops.mul(x, 0.7071067811865476)))
    return fd.ops.mul(x, fd.ops.add(first, half))


def test_one_plus_erf_that_is_scaled() -> None:
    """As a tracer writes a gelu: the half of erf is added to a half."""
    assert "one_plus_erf" in ops(lambda fd, x: halved(fd, gelu_with_scaled_erf(fd, x)), noise(4, 5))
    assert "one_plus_erf" not in ops(gelu_with_scaled_erf, noise(4, 5))
    other = ops(lambda fd, x: halved(fd, gelu_with_scaled_erf(fd, x, 0.25)), noise(4, 5))
    assert "one_plus_erf" not in other

    def shown(fd, x):
        half = fd.ops.mul(0.5, fd.ops.erf(x))
        return halved(fd, fd.ops.add(0.5, half)), halved(fd, fd.ops.mul(half, x))

    assert "one_plus_erf" not in ops(shown, noise(4, 5))
    x = torch.cat([torch.linspace(-12, 12, 3001), torch.tensor([math.inf, -math.inf, math.nan])])
    with FusionDefinition() as fd:
        fd.add_output(halved(fd, gelu_with_scaled_erf(fd, fd.from_pytorch(x))))
    (out,) = fd.run([x])
    wide = x.double()
    wanted = wide * (0.5 + 0.5 * torch.erf(wide * 0.7071067811865476))
    torch.testing.assert_close(out.double(), wanted, rtol=2**-7, atol=2**-15, equal_nan=True)


# --- masks ---------------------------------------------------------------------------------------


COMPARED = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@pytest.mark.parametrize("number", [0.9, 0.5, 0.1, 1e-9, 0.99999988, 0.3333])
@pytest.mark.parametrize("or_equal", [False, True])
def test_words_are_counted_to_the_last_one(number: float, or_equal: bool) -> None:
    target = float(np.float32(number))
    count = words_below(target, or_equal)
    last = count - (2**32 - first_word_of_one())
    near = [last + d for d in range(-600, 600)] + list(range(600)) + [2**31, 2**32 - 1]
    near += [first_word_of_one() + d for d in range(-300, 128)]
    for word in (w for w in near if 0 <= w < 2**32):
        unit = unit_float(word) % 1.0
        assert ((word - first_word_of_one()) % 2**32 < count) == (
            unit <= target if or_equal else unit < target
        )


@pytest.mark.parametrize("dtype", [D.BFloat16, D.Half])
@pytest.mark.parametrize("number", [0.9, 0.5, 0.1, 1e-7, 0.3333, 0.8984375, 0.99])
@pytest.mark.parametrize("or_equal", [False, True])
def test_words_of_16_bit_numbers_are_counted_to_the_last_one(dtype, number, or_equal) -> None:
    target = float(np.float32(number))
    count = words_below(target, or_equal, dtype)
    first = first_word_of_one()
    last = count - (2**32 - first)
    near = [last + d for d in range(-300, 300)] + list(range(300)) + [2**31, 2**32 - 1]
    near += [first + d for d in range(-300, 128)]
    near += [w + d for w in range(0, 2**32, 2**26) for d in (0, 77)]
    words = torch.tensor([w for w in near if 0 <= w < 2**32])
    unit = (words.float() + 0.5) * 2.0**-32
    drawn = philox.round_below(torch.where(unit == 1, 0, unit), 1.0, dtype.info.torch).float()
    wanted = drawn <= target if or_equal else drawn < target
    assert torch.equal((words - first) % 2**32 < count, wanted)


def test_words_stand_for_the_numbers_of_the_generator() -> None:
    bits = philox.words(8, 5, 3).reshape(-1)
    assert [unit_float(int(word)) for word in bits] == philox.uniform((32,), 5, 3).tolist()


@pytest.mark.parametrize("op", COMPARED)
@pytest.mark.parametrize("turned", [False, True])
def test_masks_are_those_of_the_numbers(op: str, turned: bool) -> None:
    def body(fd, x):
        unit = fd.ops.uniform(0.0, 1.0, [7, 33], rng_seed=5, rng_offset=3)
        mask = getattr(fd.ops, op)(*((0.3, unit) if turned else (unit, 0.3)))
        return fd.ops.mul(x, fd.ops.cast(mask, D.Float))

    x = torch.ones(7, 33)
    assert {"random_word"} < set(ops(body, x)) and "uniform" not in ops(body, x)
    with FusionDefinition() as fd:
        fd.add_output(body(fd, fd.from_pytorch(x)))
    unit = philox.uniform((7, 33), 5, 3).numpy()
    number = np.float32(0.3)
    expected = COMPARED[op](*((number, unit) if turned else (unit, number)))
    assert torch.equal(fd.run([x])[0], torch.from_numpy(expected).float())


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [D.BFloat16, D.Half])
@pytest.mark.parametrize("op", COMPARED)
@pytest.mark.parametrize("widened", [False, True])
@pytest.mark.parametrize("number", [0.90234375, 0.9])
def test_masks_are_those_of_numbers_of_16_bits(op, dtype, widened, number) -> None:
    """As they are recorded of models in these dtypes: drawn, widened or not, compared."""

    def body(fd, x):
        unit = fd.ops.uniform(0.0, 1.0, [70, 33], rng_seed=5, rng_offset=3, dtype=dtype)
        unit = fd.ops.cast(unit, D.Float) if widened else unit
        mask = getattr(fd.ops, op)(unit, number)
        return fd.ops.mul(x, fd.ops.cast(mask, D.Float))

    x = torch.ones(70, 33)
    assert {"random_word"} < set(ops(body, x)) and "uniform" not in ops(body, x)
    with FusionDefinition() as fd:
        fd.add_output(body(fd, fd.from_pytorch(x)))
    unit = philox.round_below(philox.uniform((70, 33), 5, 3), 1.0, dtype.info.torch)
    assert (unit == 0.90234375).any()

    def kept(fd, x):  # the same with numbers that are used, and so drawn
        unit = fd.ops.uniform(0.0, 1.0, [70, 33], rng_seed=5, rng_offset=3, dtype=dtype)
        wide = fd.ops.cast(unit, D.Float)
        mask = getattr(fd.ops, op)(wide if widened else unit, number)
        return fd.ops.cast(mask, D.Float), wide

    with FusionDefinition() as drawn:
        for result in kept(drawn, None):
            drawn.add_output(result)
    assert torch.equal(fd.run([x])[0], drawn.run([], device="cpu")[0])
    expected = COMPARED[op](unit.float().numpy(), np.float32(number))
    assert torch.equal(fd.run([x])[0], torch.from_numpy(expected).float())


def test_numbers_of_16_bits_that_are_used_are_drawn() -> None:
    def body(fd):
        unit = fd.ops.uniform(0.0, 1.0, [4], rng_seed=5, rng_offset=3, dtype=D.BFloat16)
        return fd.ops.lt(fd.ops.cast(unit, D.Float), 0.5), fd.ops.mul(unit, 2.0)

    def near_one(fd):
        unit = fd.ops.uniform(0.0, 1.0, [4], rng_seed=5, rng_offset=3, dtype=D.BFloat16)
        return fd.ops.le(fd.ops.cast(unit, D.Float), 0.99609375)

    assert "random_word" not in ops(body) and "random_word" not in ops(near_one)


@pytest.mark.parametrize("number", [0.0, 1.0, 1.5, -0.25, math.nan, 1 - 2.0**-24])
def test_numbers_outside_leave_the_comparison(number: float) -> None:
    def body(fd):
        return fd.ops.lt(fd.ops.uniform(0.0, 1.0, [4], rng_seed=5, rng_offset=3), number)

    assert "random_word" not in ops(body)


def test_numbers_that_are_used_are_drawn() -> None:
    def body(fd):
        unit = fd.ops.uniform(0.0, 1.0, [4], rng_seed=5, rng_offset=3)
        return fd.ops.lt(unit, 0.5), fd.ops.mul(unit, 2.0)

    assert "random_word" not in ops(body)


# --- runs of neighbours --------------------------------------------------------------------------


@pytest.mark.parametrize("width", [33, 34, 35, 36, 8193])
def test_rows_begin_anywhere_among_the_counters(width: int) -> None:
    """Rows, columns that are added up, a row alone, and one in chunks."""
    shape = (5, width)
    with FusionDefinition() as fd:
        unit = fd.ops.uniform(0.0, 1.0, list(shape), rng_seed=2**40 + 3, rng_offset=9)
        fd.add_output(fd.ops.add(unit, 0.0))
        fd.add_output(fd.ops.sub(unit, fd.ops.max(unit, [1], keepdim=True)))
        fd.add_output(fd.ops.sum(unit, [0]))
        fd.add_output(fd.ops.slice(unit, [1, 3], [4, width - 2]))
    plain, below, total, part = fd.run([], device="cpu")
    unit = philox.uniform(shape, 2**40 + 3, 9)
    assert torch.equal(plain, unit)
    assert torch.equal(below, unit - unit.amax(1, keepdim=True))
    torch.testing.assert_close(total, unit.sum(0))
    assert torch.equal(part, unit[1:4, 3 : width - 2])


@pytest.mark.parametrize("block", [1, 2, 4, 8])
def test_a_block_may_be_shorter_than_a_run(block: int) -> None:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.uniform(0.0, 1.0, [31], rng_seed=5, rng_offset=9))
    (params,) = fd.heuristics([])
    (found,) = fd.run([], params=[replace(params, block_x=block)], device="cpu")
    assert torch.equal(found, philox.uniform((31,), 5, 9))


@pytest.mark.parametrize(
    ("width", "run"), [(8192, "four"), (8196, "four"), (8193, "four"), (201, "eight")]
)
def test_neighbours_share_counters(width: int, run: str) -> None:
    with FusionDefinition() as fd:
        unit = fd.ops.uniform(0.0, 1.0, [512, width], rng_seed=5, rng_offset=9)
        fd.add_output(fd.ops.sub(unit, fd.ops.sum(unit, [1], keepdim=True)))
    (kernel,) = fd.kernels([], arch="sm_90")
    found = set(re.findall(r"philox_uniform\w*", kernel.text))
    # Of tiles for what whole blocks leave a lane has one element, and draws for itself.
    assert found - {"philox_uniform"} == {f"philox_uniform_by_{run}"}
