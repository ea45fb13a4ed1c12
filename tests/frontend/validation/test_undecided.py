"""Elements that rounding may decide either way, of which validate accepts any."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tests.frontend.validation.outputs import BF16, FLOAT, giving, limit
from tritonfuser import DataType, FusionDefinition, ValidationError


def test_a_comparison_within_the_error_is_undecided(monkeypatch):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        third = fd.ops.div(x, 3.0)
        fd.add_output(fd.ops.eq(fd.ops.mul(third, 3.0), x))
        fd.add_output(fd.ops.gt(third, 100.0))
        fd.add_output(fd.ops.floor(fd.ops.mul(third, 3.0)))
        fd.add_output(fd.ops.cast(fd.ops.mul(third, 3.0), DataType.Int))
    x = torch.arange(1.0, 50.0, 3.0)  # no multiple of 3, which would be exact
    table = fd.audit([x])
    assert table.ok
    assert [row.found.undecided for row in table.rows] == [17, 0, 0, 17]
    outputs = fd.run([x])
    giving(fd, monkeypatch, ~outputs[0], *outputs[1:]).validate([x])
    giving(fd, monkeypatch, *outputs[:2], x - 1, *outputs[3:]).validate([x])
    with pytest.raises(ValidationError, match="output 1"):
        giving(fd, monkeypatch, outputs[0], ~outputs[1], *outputs[2:]).validate([x])
    with pytest.raises(ValidationError, match="output 2"):
        giving(fd, monkeypatch, *outputs[:2], x - 2, *outputs[3:]).validate([x])


def test_numbers_without_full_precision_are_rounded_to_a_whole_number_of_the_least():
    """Some lie so close to a half of it that the rounding before decides which."""
    torch.manual_seed(0)
    x = torch.randn(64, 100)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.mul(fd.ops.mul(t, 1e-25), 1e-15))
    fd.validate([x])
    least = math.ldexp(1.0, -149)
    assert 0.5 * least <= limit(fd, [x]).max() < 0.6 * least


REPEATING = {
    "sin": lambda o, x: o.sin(o.mul(x, 1e9)),
    "cos": lambda o, x: o.cos(o.mul(x, 1e7)),
    "tan": lambda o, x: o.tan(o.mul(x, 1e9)),
    "frac": lambda o, x: o.frac(o.mul(x, 1e5)),
    "frac of integers": lambda o, x: o.frac(o.mul(x, 1e9)),
    "fmod": lambda o, x: o.fmod(o.mul(x, 1e9), o.exp(x)),
    "mod": lambda o, x: o.mod(o.mul(x, -1e9), 3.0),
    "remainder": lambda o, x: o.remainder(o.mul(x, 1e9), -3.0),
    "lgamma": lambda o, x: o.lgamma(o.mul(x, -1e6)),
}
"""Functions that repeat, of numbers whose rounding moves them by a part of a period, or by many."""


@pytest.mark.parametrize("name", REPEATING)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_what_repeats_may_be_anything_where_an_operand_is_not_known_well(name, dtype):
    torch.manual_seed(0)
    x = torch.rand(4096, dtype=torch.float64).to(dtype) * 3 + 0.1
    with FusionDefinition() as fd:
        fd.add_output(REPEATING[name](fd.ops, fd.from_pytorch(x)))
    fd.validate([x])


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "frac", "lgamma"])
def test_what_repeats_is_known_where_its_operand_is(monkeypatch, name):
    x = torch.linspace(-3.4, 3.4, 999)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(getattr(fd.ops, name)(fd.ops.mul(t, 1.7)))
    (right,) = fd.run([x])
    with pytest.raises(ValidationError, match=r"9\d\d of 999 elements differ"):
        giving(fd, monkeypatch, right + 1e-2).validate([x])


def folded(op, **attrs):
    return lambda fd, x: getattr(fd.ops, op)(x, **attrs)


ZEROS = {
    "max": (folded("max", dims=[0]), [0.0, -0.0]),
    "min": (folded("min", dims=[0]), [0.0, -0.0, 1.0]),
    "cummax": (folded("cummax", dim=0), [-0.0, -1.0, 0.0]),
    "maximum": (lambda fd, x: fd.ops.maximum(x, fd.ops.neg(x)), [0.0, -0.0]),
    "minimum": (lambda fd, x: fd.ops.minimum(x, fd.ops.neg(x)), [0.0, -0.0]),
    "clamp": (lambda fd, x: fd.ops.clamp(x, 0.0, 1.0), [0.0, -0.0]),
    "cumsum": (folded("cumsum", dim=0), [-0.0, -0.0]),
}


@pytest.mark.parametrize("last", ["signbit", "reciprocal"])
@pytest.mark.parametrize("name", ZEROS)
def test_zeros_of_both_signs_are_equal(name, last):
    """Which of them is chosen is not said, nor of which sign an empty sum is."""
    body, numbers = ZEROS[name]
    for given in (numbers, numbers[::-1]):
        x = torch.tensor(given)
        with FusionDefinition() as fd:
            fd.add_output(getattr(fd.ops, last)(body(fd, fd.from_pytorch(x))))
        fd.validate([x])


@pytest.mark.parametrize("name", ["max", "min", "maximum", "cumsum"])
def test_zeros_of_one_sign_are_known(name):
    x = torch.tensor([0.0, 0.0])
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        found = fd.ops.maximum(t, t) if name == "maximum" else ZEROS[name][0](fd, t)
        fd.add_output(fd.ops.reciprocal(found))
    (row,) = fd.audit([x]).rows
    assert row.found.undecided == 0


def test_exact_arithmetic_decides():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        total = fd.ops.sum(fd.ops.mul(x, 0.5), [1])
        fd.add_output(fd.ops.gt(total, fd.ops.cast(fd.ops.cast(total, BF16), FLOAT)))
        fd.add_output(fd.ops.floor(total))
    x = torch.randint(-50, 50, (20, 30)).float()
    assert [limit(fd, [x], place).max().item() for place in (0, 1)] == [0.0, 0.0]


def test_undecided_choices_spread():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        again = fd.ops.mul(fd.ops.div(x, 3.0), 3.0)
        fd.add_output(fd.ops.where(fd.ops.lt(again, x), 5.0, x))
        fd.add_output(fd.ops.where(fd.ops.lt(again, 1e9), 5.0, x))
    x = torch.tensor([1.0, 2.0, 4.0, 5.0, 7.0, 8.0])
    assert torch.equal(limit(fd, [x]), (x - 5).abs().double())
    assert not limit(fd, [x], 1).any()


@pytest.mark.parametrize("dtype", [DataType.Int, DataType.Int32])
def test_products_of_integers_are_exact(monkeypatch, dtype):
    with FusionDefinition() as fd:
        x, w, bias = (fd.define_tensor([-1] * rank, dtype=dtype) for rank in (2, 2, 1))
        fd.add_output(fd.ops.linear(x, w, bias))
    given = (torch.randint(-9, 9, shape).to(dtype.info.torch) for shape in ((3, 5), (4, 5), (4,)))
    inputs = list(given)
    (right,) = fd.validate(inputs)
    with pytest.raises(ValidationError):
        giving(fd, monkeypatch, right + 1).validate(inputs)


def test_an_undecided_integer_leaves_what_it_is_a_factor_of_undecided():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        w = fd.define_tensor([-1, -1], contiguity=True, dtype=DataType.Int)
        again = fd.ops.mul(fd.ops.div(x, 3.0), 3.0)
        fd.add_output(fd.ops.matmul(fd.ops.cast(again, DataType.Int), w))
    x, w = torch.tensor([[0.5, 1.5], [0.5, 2.0]]), torch.tensor([[1, 2, 3], [4, 5, 6]])
    assert limit(fd, [x, w]).tolist() == [[0.0] * 3, [math.inf] * 3]


def test_an_order_of_what_is_undecided_is_undecided():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        again = fd.ops.mul(fd.ops.div(x, 3.0), 3.0)
        whole = fd.ops.cast(again, DataType.Int)
        fd.add_output(fd.ops.argsort(fd.ops.lt(again, x), 1, stable=True))
        fd.add_output(fd.ops.argsort(whole, 1, stable=True))
        for found in fd.ops.topk(fd.ops.cast(whole, FLOAT), fd.define_scalar(1), 1):
            fd.add_output(found)
    close, apart = torch.tensor([[1.0, 4.0], [2.0, 5.0]]), torch.tensor([[1.5, 2.5], [4.5, 3.5]])
    for place in range(4):
        assert limit(fd, [close], place).isinf().all()
        assert limit(fd, [apart], place).any() == (place == 0)


def test_overflow_for_sure_is_infinite_and_else_undecided():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.mul(fd.ops.exp(x), 0.5))
    x = torch.tensor([100.0, math.log(torch.finfo(torch.float32).max), 1.0])
    found = limit(fd, [x])
    assert (found[0], found[1]) == (0.0, math.inf)
    assert 0 < found[2] < 1e-5
    assert fd.validate([x])[0][0] == math.inf


@pytest.mark.parametrize("block", [128, 16], ids=["whole rows", "parts"])
@pytest.mark.parametrize("number", [math.inf, 3e38], ids=str)
@pytest.mark.parametrize("op", ["welford", "var_mean"])
def test_a_mean_may_overflow_where_a_row_is_summed_or_be_nan_where_parts_are_joined(
    monkeypatch, op, number, block
):
    x = torch.randn(3, 100)
    x[1, 40:] = number
    with FusionDefinition() as fd:
        for result in getattr(fd.ops, op)(fd.from_pytorch(x), [1]):
            fd.add_output(result)
    (params,) = fd.heuristics([x])
    found = fd.run([x], params=[replace(params, persistent=block > 100, block_r=block)])
    giving(fd, monkeypatch, *found).validate([x])
    wrong = [found[0] + torch.tensor([1.0, 0.0, 0.0]), *found[1:]]
    with pytest.raises(ValidationError):
        giving(fd, monkeypatch, *wrong).validate([x])


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_sigmoids_of_complex_numbers_far_on_the_left_are_0(name, dtype):
    """Those of torch are nan, whose exponential is infinite."""
    x = torch.tensor([-800 + 1j, -3e38 + 3e38j, -1 + 2j, 1 - 2j, 800 + 3j], dtype=dtype)
    with FusionDefinition() as fd:
        fd.add_output(getattr(fd.ops, name)(fd.from_pytorch(x)))
    (found,) = fd.validate([x])
    assert (found[:2] == 0).all() and not limit(fd, [x])[[0, 2, 3, 4]].isinf().any()


def of_numbers(body):
    """A definition of a Float and an Int, of which sizes are made too."""
    with FusionDefinition() as fd:
        c, n = (fd.define_scalar(dtype) for dtype in (FLOAT, DataType.Int))
        fd.add_output(body(fd.ops, c, n))
    return fd


def test_an_integer_of_a_number_that_is_rounded_is_undecided_where_that_decides(monkeypatch):
    """The number is a constant where sizes depend on it too."""
    fd = of_numbers(lambda ops, c, n: ops.iota(n, ops.cast(ops.mod(c, ops.log(n)), DataType.Int)))
    assert limit(fd, [1e19, 10]).isinf().all()
    fd.validate([1e19, 10])
    assert not limit(fd, [7.5, 10]).any()
    with pytest.raises(ValidationError, match="10 of 10 elements differ"):
        giving(fd, monkeypatch, fd.run([7.5, 10])[0] + 1).validate([7.5, 10])


def test_what_is_computed_of_sizes_is_rounded():
    fd = of_numbers(lambda ops, c, n: ops.mul(ops.full([n], ops.sqrt(2), FLOAT), ops.rsqrt(n)))
    fd.validate([1.0, 2])


def test_sizes_of_the_reference_are_those_of_the_run():
    """In float64 the size is 3295836."""

    def body(ops, c, n):
        return ops.full([ops.cast(ops.mul(ops.log(n), c), DataType.Int)], n, DataType.Int)

    fd = of_numbers(body)
    (found,) = fd.validate([3e6, 3])
    assert found.shape == (3295837,)


LARGE = torch.tensor([3e38 + 3e38j, 1 + 1j, 3e38 + 1j, 1e38 + 2e38j])
STEPS = {
    "lerp": (
        lambda ops, x: ops.lerp(x, ops.neg(x), 0.5),
        torch.tensor([3.4e38, 1.0, 3e38, 1e38]),
        [True, False, True, False],
    ),
    "product": (lambda ops, x: ops.mul(x, x), LARGE, [True, False, False, True]),
    "quotient": (lambda ops, x: ops.div(x, x), LARGE, [True, False, False, False]),
    "reciprocal": (lambda ops, x: ops.reciprocal(x), LARGE, [True, False, False, False]),
    "comparison": (
        lambda ops, x: ops.isnan(ops.real(ops.mul(x, x))),
        LARGE,
        [True, False, False, True],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_overflows_in_a_step_of_an_op_alone_is_undecided(monkeypatch, name):
    """In float64 the step is a number. What the op itself overflows to is known."""
    body, x, either = STEPS[name]
    with FusionDefinition() as fd:
        fd.add_output(body(fd.ops, fd.from_pytorch(x)))
    (found,) = fd.validate([x])
    assert limit(fd, [x]).isinf().tolist() == either
    wrong = ~found if found.dtype is torch.bool else torch.where(found == 0, 1e37, found / 2)
    wrong = torch.where(torch.tensor(either), found, torch.where(found.isinf(), 1, wrong))
    with pytest.raises(ValidationError, match=f"{either.count(False)} of 4"):
        giving(fd, monkeypatch, wrong).validate([x])


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_ops_behind_an_overflow_have_infinities(dtype):
    """In float64 exp(100) is a number: of inf - inf it made 0, and of inf / inf 1."""
    x = torch.tensor([1.0, 50.0, 100.0]).to(dtype)
    with FusionDefinition() as fd:
        power = fd.ops.exp(fd.from_pytorch(x))
        fd.add_output(fd.ops.sub(power, power))
        fd.add_output(fd.ops.div(power, fd.ops.add(power, 1.0)))
        fd.add_output(fd.ops.reciprocal(power))
        fd.add_output(fd.ops.sub(power, fd.ops.sum(power, [0], keepdim=True)))
    found = fd.validate([x])
    assert found[0][2].isnan() and found[1][2].isnan() and found[3][2].isnan()
