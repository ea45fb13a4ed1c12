"""What validate takes for right and what not: limits by error analysis."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest
import torch

from tests.e2e.test_index_bounds import OPS, X, definition
from tritonfuser import DataType, FusionDefinition, ValidationError, get_val_tolerances
from tritonfuser.errors import IndexRangeError, InputError
from tritonfuser.frontend.inspect.expectation import Check, expected
from tritonfuser.frontend.inspect.tolerances import tolerances

BF16, FLOAT = DataType.BFloat16, DataType.Float


def giving(fd, monkeypatch, *outputs):
    monkeypatch.setattr(fd, "run", lambda inputs, **kwargs: list(outputs))
    return fd


def limit(fd, inputs, place=0):
    return expected(fd.fusion.ir, inputs, Check()).limits[place].values


def next_up(x):
    return torch.nextafter(x, torch.full_like(x, math.inf))


def softmax(dtype=BF16):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=dtype)
        wide = fd.ops.cast(x, FLOAT)
        top = fd.ops.broadcast(fd.ops.max(wide, [1]), [False, True])
        powers = fd.ops.exp(fd.ops.sub(wide, top))
        total = fd.ops.broadcast(fd.ops.sum(powers, [1]), [False, True])
        fd.add_output(fd.ops.cast(fd.ops.div(powers, total), dtype))
    return fd


# --- wrong results that were let through ---------------------------------------------------------


def test_a_softmax_of_zeros_is_wrong(monkeypatch):
    x = torch.randn(77, 77).bfloat16()
    softmax().validate([x])
    with pytest.raises(ValidationError, match="5929 of 5929 elements differ"):
        giving(softmax(), monkeypatch, torch.zeros_like(x)).validate([x])


def test_a_softmax_two_ulps_off_is_wrong(monkeypatch):
    x = torch.randn(8, 77).bfloat16()
    (right,) = softmax().run([x])
    with pytest.raises(ValidationError):
        giving(softmax(), monkeypatch, next_up(next_up(right))).validate([x])


# --- right results that were refused -------------------------------------------------------------


def test_a_rounding_to_bf16_on_the_way_may_go_either_way_where_it_is_close(monkeypatch):
    """One ULP of bf16 in a Float, but only where the product is near the middle of two numbers."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        narrow = fd.ops.cast(fd.ops.mul(x, 0.1), BF16)
        fd.add_output(fd.ops.mul(fd.ops.cast(narrow, FLOAT), 2.0))
    middles = 1 + (torch.arange(64) + 0.5) / 128
    x = torch.cat([middles, middles + 1 / 256]) / 0.1
    (right,) = fd.validate([x])
    wanted = expected(fd.fusion.ir, [x], Check())
    found = wanted.limits[0].values
    close = found > 0
    assert close[:64].all()
    assert not close[64:].any()
    assert found.max() >= 2.0**-7
    other = torch.where(close, wanted.wide.outputs[0] + 0.99 * found, right).float()
    giving(fd, monkeypatch, other).validate([x])
    sure = torch.where(close, right, right * (1 + 2.0**-7)).float()
    with pytest.raises(ValidationError, match="64 of 128"):
        giving(fd, monkeypatch, sure).validate([x])


def test_linear_one_ulp_off_is_right(monkeypatch):
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1, -1], contiguity=True) for _ in range(2))
        fd.add_output(fd.ops.linear(a, b))
    a, b = torch.randn(8, 100) * 100, torch.randn(16, 100)
    (right,) = fd.validate([a, b])
    giving(fd, monkeypatch, next_up(right)).validate([a, b])
    with pytest.raises(ValidationError):
        giving(fd, monkeypatch, right + a[:, -1:] * b[:, -1]).validate([a, b])


def test_products_of_large_bf16_numbers(monkeypatch):
    with FusionDefinition() as fd:
        a, b = (fd.define_tensor([-1, -1], contiguity=True, dtype=BF16) for _ in range(2))
        fd.add_output(fd.ops.matmul(a, b))
    a, b = (torch.randn(64, 64) * 1000).bfloat16(), torch.randn(64, 64).bfloat16()
    (right,) = fd.validate([a, b])
    with pytest.raises(ValidationError):
        giving(fd, monkeypatch, right + right.abs().max()).validate([a, b])


def linear(*inputs):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.linear(*map(fd.from_pytorch, inputs)))
    return fd


@pytest.mark.parametrize("shapes", [(5, 0), (0, 5), (0, 0)], ids=str)
def test_linear_of_nothing_is_right(shapes):
    m, n = shapes
    inputs = [torch.randn(m, 3), torch.randn(n, 3), torch.randn(n)]
    linear(*inputs).validate(inputs)


@pytest.mark.parametrize("number", [math.inf, math.nan, 1e30], ids=str)
def test_one_number_of_a_bias_says_nothing_of_other_columns(monkeypatch, number):
    inputs = [torch.randn(4, 3), torch.randn(2, 3), torch.tensor([number, 1.0])]
    fd = linear(*inputs)
    (right,) = fd.validate(inputs)
    with pytest.raises(ValidationError):
        giving(fd, monkeypatch, right + torch.tensor([0.0, 1.0])).validate(inputs)


@pytest.mark.parametrize(
    ("x", "w", "sure"),
    [
        ([3e38, 3e38, -3e38], [2.0, 1.0, 2.0], False),  # inf - inf
        ([3e38, 3e38, -3e38], [1.0, 1.0, 1.0], False),  # inf or 3e38
        ([3e38, -1e30, 0.0], [3e38, 1e15, 0.0], False),  # inf - inf: 9e76 hides 1e45 in float64
        ([3e38, 3e38, -1.0], [2.0, 1.0, 2.0], True),
        ([1e-40, -2.0, 0.0], [0.1, 2.25e-40, 0.0], True),  # off by units of underflow
    ],
)
def test_products_that_overflow_or_underflow(x, w, sure):
    inputs = [torch.tensor([x]), torch.tensor([w])]
    fd = linear(*inputs)
    fd.validate(inputs)
    assert bool(limit(fd, inputs).isfinite().all()) is sure
    assert limit(fd, inputs).item() >= 1e-45 or max(x) > 1


def test_a_product_with_a_factor_that_may_be_any_number_may_be_any():
    x = torch.randn(3, 50)
    x[1, 20] = math.inf
    with FusionDefinition() as fd:
        _, mean = fd.ops.var_mean(fd.from_pytorch(x), [1])
        fd.add_output(fd.ops.prod(mean, [0]))
    fd.validate([x])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_powers_that_torch_has_as_roots(exponent, dtype):
    """Where the exponent is a number, of the run too; one of a tensor makes C's powers."""
    x = torch.tensor([-math.inf, -2.0, -0.0, 0.0, 4.0, math.inf, math.nan]).to(dtype)
    exponents = torch.full_like(x, exponent)
    with FusionDefinition() as fd:
        base, number = fd.from_pytorch(x), fd.define_scalar(DataType.Double)
        for power in (exponent, number, fd.from_pytorch(exponents)):
            fd.add_output(fd.ops.cast(fd.ops.pow(base, power), DataType.Double))
        fd.add_output(fd.ops.mul(base, fd.ops.pow(fd.ops.neg(number), number)))
    constant, given, powers, _ = fd.validate([x, exponent, exponents])
    root = (torch.sqrt if exponent > 0 else torch.rsqrt)(x.double())
    for found, wanted in ((constant, root), (given, root), (powers, x.double() ** exponents)):
        torch.testing.assert_close(found, wanted, equal_nan=True)
        assert torch.equal(found[2].signbit(), wanted[2].signbit())


def test_complex_quotients_that_torch_rounds_otherwise():
    """Torch's has an imaginary part of 1.7e-17, that of other steps is 0: both are right."""
    x = torch.full((3,), 0.3 + 0.7j, dtype=torch.complex128)
    with FusionDefinition() as fd:
        z = fd.from_pytorch(x)
        quotient = fd.ops.div(z, z)
        fd.add_output(quotient)
        fd.add_output(fd.ops.mul(fd.ops.imag(quotient), 3.0))
    fd.validate([x])
    assert limit(fd, [x]).max() < 1e-14


def test_products_in_double_depend_on_their_order():
    x = torch.linspace(0.3, 3.1, 60, dtype=torch.float64).reshape(3, 20)
    with FusionDefinition() as fd:
        a = fd.from_pytorch(x)
        fd.add_output(fd.ops.prod(a, [1]))
        fd.add_output(fd.ops.prod(fd.ops.floor(a), [1]))
    found = [limit(fd, [x], place) for place in (0, 1)]
    assert (found[0] > 0).all() and not found[1].any()
    assert (found[0] < 1e-13 * x.prod(1)).all()


def test_sums_of_complex_infinities():
    """Torch on a CPU adds 1+0j times the second operand, in which an infinity makes nan."""
    x = torch.tensor([complex(-math.inf, 0), complex(1, math.inf), 1j])
    y = torch.tensor([2, -1j, complex(0, math.inf)])
    for dtype in (torch.complex64, torch.complex128):
        with FusionDefinition() as fd:
            a, b = (fd.from_pytorch(given.to(dtype)) for given in (x, y))
            fd.add_output(fd.ops.add(b, a))
            fd.add_output(fd.ops.sub(b, a))
        fd.validate([x.to(dtype), y.to(dtype)])


# --- undecided elements --------------------------------------------------------------------------


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


# --- what may be asked for -----------------------------------------------------------------------


def test_tolerances_that_are_given(monkeypatch):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1], contiguity=True)))
    x = torch.full((4,), 8.0)
    off = giving(fd, monkeypatch, -x + 0.5)
    with pytest.raises(ValidationError, match="error of 0:"):
        off.validate([x])
    off.validate([x], atol=0.5)
    off.validate([x], rtol=0.0625)
    off.validate([x], atol=0.25, rtol=0.03125)
    with pytest.raises(ValidationError, match=r"error of 0.25: atol=0.25 and rtol=0 were given"):
        off.validate([x], atol=0.25)
    assert not off.audit([x], rtol=0.06).ok
    assert off.audit([x], rtol=0.0625).ok


@pytest.mark.parametrize("name", ["atol", "rtol"])
def test_a_tolerance_may_be_any_number_that_a_float_holds(name):
    """torch takes integers of 64 bits."""
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1], contiguity=True)))
    x = torch.full((4,), 8.0)
    for large in (2**100, 1e300, float("inf")):
        fd.validate([x], **{name: large})
        assert fd.audit([x], **{name: large}).ok
    with pytest.raises(InputError, match=f"{name} must be a number that a float can hold"):
        fd.validate([x], **{name: 10**400})


def test_outputs_that_are_given_may_be_off_by_nvfusers_tolerance():
    x = torch.randn(8, 32).bfloat16()
    eager = torch.softmax(x, 1)
    softmax().validate([x], [eager])
    with pytest.raises(ValidationError, match="nvFuser's table for"):
        softmax().validate([x], [eager + 10])


def test_nvfusers_table_stays():
    fd = softmax()
    x = torch.randn(77, 77).bfloat16()
    assert get_val_tolerances(fd.fusion, [x]) == [tolerances(BF16, 77 * 77)]


# --- random numbers, indices ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [FLOAT, DataType.Double, BF16])
def test_random_numbers_are_drawn_again(monkeypatch, dtype):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True, dtype=dtype)
        noise = fd.ops.normal(0.0, 1.0, [1000], dtype=dtype)
        fd.add_output(fd.ops.add(x, fd.ops.uniform(-1.0, 2.0, [1000], dtype=dtype)))
        fd.add_output(fd.ops.mul(noise, fd.ops.rand_like(x)))
    x = torch.zeros(1000, dtype=dtype.info.torch)
    state = torch.get_rng_state()
    outputs = fd.validate([x])
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    assert all(torch.equal(a, b) for a, b in zip(fd.run([x]), outputs, strict=True))
    assert torch.equal(torch.get_rng_state(), after)
    assert not any(row.is_random for row in fd.audit([x]).rows)
    run, other = fd.run, fd.run([x])[1]
    monkeypatch.setattr(fd, "run", lambda inputs, **kwargs: [run(inputs, **kwargs)[0], other])
    with pytest.raises(ValidationError):
        fd.validate([x])


@pytest.mark.parametrize("count", [0, 3])
def test_random_numbers_that_no_element_needs_are_not_counted(count):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.mul(x, fd.ops.uniform(0.0, 1.0, [1])))
        fd.add_output(fd.ops.normal(0.0, 1.0, [5]))
        column = fd.ops.broadcast(x, [True, False])
        fd.add_output(fd.ops.prod(fd.ops.rand_like(column), dims=[1]))
        fd.add_output(fd.ops.randn_like(column))
        fd.add_output(fd.ops.uniform(2.0, 3.0, [4]))
    fd.validate([torch.ones(count)])


@pytest.mark.parametrize("how", ["audit", "validate"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("op", OPS)
def test_an_index_outside_raises(monkeypatch, op, dtype, how):
    """Of a kernel on a GPU nothing may be heard of it, so the reference says so."""
    record, shape, size = OPS[op]
    right, *wrong_ones = (
        shape(torch.tensor([0, wrong, 2], dtype=dtype)).contiguous()
        for wrong in (1, size, 1000, -size - 1, 2**31 - 1)
    )
    fd = definition(record, X, right)
    giving(fd, monkeypatch, *fd.run([X, right]))
    assert getattr(fd, how)([X, right])
    for wrong in wrong_ones:
        text = f"{op}: index -?\\d+ is out of range for a dim of {size} elements"
        with pytest.raises(IndexRangeError, match=text) as error:
            getattr(fd, how)([X, wrong])
        assert "test_index_bounds.py" in str(error.value)
        assert isinstance(error.value, IndexError)


def test_a_scalar_index_outside_raises(monkeypatch):
    with FusionDefinition() as fd:
        x, place = fd.from_pytorch(X), fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.select(x, place, 0))
    giving(fd, monkeypatch, X[2])
    assert fd.audit([X, 2]).ok and fd.audit([X, -1]).ok
    for wrong in (3, -4):
        with pytest.raises(IndexRangeError, match=f"select: index {wrong} is out of range"):
            fd.audit([X, wrong])


def test_integers_that_were_summed_can_be_scattered():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=DataType.Int)
        index = fd.define_tensor([-1], contiguity=True, dtype=DataType.Int)
        total = fd.ops.sum(x, [1])
        fd.add_output(fd.ops.scatter(total, index, fd.ops.max(x, [0]), 0))
    assert fd.audit([torch.arange(16).reshape(4, 4), torch.tensor([2, 0])]).ok


def test_an_input_that_was_written_into_is_returned_as_it_is_then():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(x)
        fd.add_output(fd.ops.add(x, 1.0), x)
        fd.add_output(fd.ops.permute(x, [1, 0]))
    found, turned = fd.validate([torch.zeros(2, 3)])
    assert torch.equal(found, torch.ones(2, 3)) and torch.equal(turned, torch.zeros(3, 2))


def test_ops_that_torch_has_no_function_for_have_no_reference():
    x = torch.tensor([3, 2**63 + 5], dtype=torch.uint64)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.relu(fd.from_pytorch(x)))
    with pytest.raises(NotImplementedError, match="relu: there is no reference") as error:
        fd.validate([x])
    assert "fd.ops.relu(fd.from_pytorch(x))" in str(error.value)


@pytest.mark.parametrize("as_constant", [False, True])
def test_numbers_that_only_unsigned_integers_hold(as_constant):
    """Philox seeds are such."""
    x, seed = torch.ones(4), 2**63 + 2**40
    with FusionDefinition() as fd:
        given = fd.from_pytorch(x)
        number = fd.define_scalar(seed if as_constant else None, dtype=DataType.UInt64)
        fd.add_output(fd.ops.mul(given, number))
        fd.add_output(fd.ops.full([2], number, DataType.UInt64))
        fd.add_output(fd.ops.uniform(0.0, 1.0, [9], rng_seed=number, rng_offset=0))
    product, filled, _ = fd.validate([x] if as_constant else [x, seed])
    assert product.tolist() == [float(seed)] * 4 and filled.tolist() == [seed] * 2


def test_numbers_of_a_run_are_rounded_to_their_dtype():
    """5e-324 is 0 as a Float: a reference or a bound that takes it as it is counts it as true."""
    with FusionDefinition() as fd:
        x, number = fd.define_tensor([-1, -1]), fd.define_scalar(FLOAT)
        place = fd.ops.cast(fd.ops.cast(number, DataType.Bool), DataType.Int)
        index = fd.ops.broadcast(fd.ops.iota(1, place, 1), [False, True])
        fd.add_output(fd.ops.gather(x, index, 0))
    fd.validate([torch.ones(1, 3), 5e-324])


@pytest.mark.parametrize(
    "dtype, number, given",
    [
        (DataType.Half, DataType.Double, 1e19),
        (BF16, DataType.Double, -1e300),
        (DataType.Int32, DataType.Int, 2**62 + 5),
        (DataType.UInt64, DataType.Int, -1),
        (DataType.Float8_e4m3fn, DataType.Double, 1e5),
    ],
)
def test_a_tensor_is_filled_with_a_number_that_its_dtype_does_not_hold(dtype, number, given):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.full([2, 3], fd.define_scalar(number), dtype))
    fd.validate([given])


@pytest.mark.parametrize("dtype", [DataType.Float, DataType.Double])
def test_the_next_number_is_that_of_the_dtype(dtype):
    """In float64 the one before infinity is no Float."""
    with FusionDefinition() as fd:
        x, y = (fd.define_tensor([-1], dtype=dtype) for _ in "xy")
        near = fd.ops.nextafter(x, y)
        fd.add_output(near)
        fd.add_output(fd.ops.sub(near, x))
    given = [[math.inf, -math.inf, 0.0, 1.0, 3.0], [0.0, 0.0, 1.0, math.inf, 3.0]]
    inputs = [torch.tensor(row, dtype=dtype.info.torch) for row in given]
    fd.validate(inputs)
    wide = expected(fd.fusion.ir, inputs, Check()).wide.outputs
    assert torch.equal(wide[0], torch.nextafter(*inputs).double())
    assert torch.equal(wide[1], (torch.nextafter(*inputs) - inputs[0]).double())


def test_numbers_that_other_threads_draw_are_none_of_the_runs():
    """The reference draws what the run drew, whatever the generator has been used for since."""
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.uniform(0.0, 1.0, [3, 4], dtype=DataType.Float))
    fd.run([])
    ended = threading.Event()

    def draw():
        while not ended.is_set():
            torch.rand(3)

    other = threading.Thread(target=draw)
    other.start()
    try:
        found = {tuple(fd.validate([])[0].flatten().tolist()) for _ in range(40)}
    finally:
        ended.set()
        other.join()
    assert len(found) == 40
