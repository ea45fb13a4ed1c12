"""What validate takes for right and what not, and the tolerances that may be given."""

from __future__ import annotations

import math

import pytest
import torch

from tests.frontend.validation.outputs import BF16, FLOAT, giving, limit, next_up, softmax
from tritonfuser import DataType, FusionDefinition, ValidationError, get_val_tolerances
from tritonfuser.errors import InputError
from tritonfuser.frontend.inspect.expectation import Check, expected
from tritonfuser.frontend.inspect.tolerances import tolerances

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
