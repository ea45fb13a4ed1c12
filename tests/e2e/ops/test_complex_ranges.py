"""Complex numbers next to poles, and near the ends of what a dtype holds."""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Callable

import pytest
import torch

from tests.e2e.ops.complex_numbers import COUNTS, DOUBLE, SINGLE, definition, numbers, op_of

_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "acos": cmath.acos,
    "acosh": cmath.acosh,
    "asin": cmath.asin,
    "asinh": cmath.asinh,
    "atan": cmath.atan,
    "atanh": cmath.atanh,
    "log": cmath.log,
    "log1p": lambda z: cmath.log(z + 1),
    "log10": cmath.log10,
    "sqrt": cmath.sqrt,
    "rsqrt": lambda z: 1 / cmath.sqrt(z),
}
_PARTS = {SINGLE: (1e-38, 1e-30, 1.0, 3e18, 1e30, 3e38), DOUBLE: (1e-200, 1.0, 1e20, 1.7e308)}


def _pairs(dtype: torch.dtype) -> torch.Tensor:
    """Every part beside every other one, with all signs."""
    parts = [sign * part for part in _PARTS[dtype] for sign in (1, -1)]
    found = [complex(re, im) for re, im in itertools.product(parts, repeat=2)]
    return torch.tensor(found, dtype=dtype)


def _assert_close(found: torch.Tensor, wanted: list[complex]) -> None:
    """By the size of each number; where there is an infinity, part by part."""
    limit = 20 * torch.finfo(found.dtype).eps
    for ours, theirs in zip(found.tolist(), wanted, strict=True):
        assert cmath.isclose(ours, theirs, rel_tol=limit), (ours, theirs)


@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_near_poles_and_far_away(name: str, dtype: torch.dtype) -> None:
    x = _pairs(dtype)
    if name == "log1p":  # the sum with 1 is exact
        x = x[x.abs() >= 1]
    (found,) = definition(op_of(name), [x]).run([x])
    _assert_close(found, [_FUNCTIONS[name](z) for z in x.tolist()])


@pytest.mark.parametrize(
    ("name", "x", "wanted"),
    [
        ("atan", 1e-30 + 1j, complex(math.pi / 4, 34.885349)),
        ("atan", 1 - 3e38j, complex(math.pi / 2, -1 / 3e38)),
        ("atan", 1e38 - 1e38j, complex(math.pi / 2, -5e-39)),
        ("atanh", -3e38j, complex(0.0, -math.pi / 2)),
        ("atanh", complex(3e38, -0.0), complex(1 / 3e38, -math.pi / 2)),
        ("atanh", 1 + 0j, complex(math.inf, 0.0)),
        ("sqrt", complex(1e-45, 0.0), complex(torch.tensor(1e-45).double().sqrt(), 0.0)),
    ],
)
def test_parts_that_are_small(name: str, x: complex, wanted: complex) -> None:
    given = torch.tensor([x], dtype=SINGLE)
    (found,) = definition(op_of(name), [given]).run([given])
    torch.testing.assert_close(found, torch.tensor([wanted], dtype=SINGLE), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", [name for name in COUNTS[1] if name not in ("cast", "complex")])
def test_kernels_compute_in_the_dtype_of_the_parts(name: str) -> None:
    x = numbers(8, dtype=SINGLE)
    fd = definition(op_of(name), [x])
    assert not any("float64" in kernel.text for kernel in fd.kernels([x]))


# --- powers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "x", "y"),
    [
        (SINGLE, 100j, 20 + 40j),
        (SINGLE, 0.01j, 20 - 40j),
        (SINGLE, -1e20 - 1j, 1 - 20j),
        (SINGLE, -3e38 - 3e38j, 0.3 + 0j),
        (SINGLE, -3e38 - 3e38j, 0.25 + 0.5j),
        (DOUBLE, 1e10j, 35 + 100j),
        (DOUBLE, 1e-10j, 35 - 100j),
        (DOUBLE, 1e200j, 5 + 1100j),
    ],
)
def test_a_power_whose_factors_are_out_of_range(dtype: torch.dtype, x: complex, y: complex) -> None:
    """``|x| ** re(y)`` or ``exp(-im(y) angle(x))`` overflows, their product does not."""
    wanted = cmath.exp(y * cmath.log(x))
    given = [torch.tensor([number], dtype=dtype) for number in (x, y)]
    found = definition(op_of("pow"), given).validate(given)
    limit = 1e-4 if dtype is SINGLE else 1e-11
    assert cmath.isclose(found[0].item(), wanted, rel_tol=limit)


def test_a_power_of_scalars_whose_factors_are_out_of_range() -> None:
    given = [torch.ones(1, dtype=DOUBLE), 1e10j, 35 + 100j]
    fd = definition(lambda fd, t, x, y: fd.ops.mul(t, fd.ops.pow(x, y)), given)
    wanted = cmath.exp(given[2] * cmath.log(given[1]))
    assert cmath.isclose(fd.run(given)[0].item(), wanted, rel_tol=1e-11)


def test_powers_in_range_have_the_digits_of_their_factors() -> None:
    """An exponential of the sum of 70 and more would have an error of 70 roundings."""
    x = numbers(1000, dtype=SINGLE) * 1e11
    y = torch.full((1000,), 3.1 + 0j, dtype=SINGLE)
    (found,) = definition(op_of("pow"), [x, y]).run([x, y])
    wanted = torch.pow(x.to(DOUBLE), y.to(DOUBLE)).abs()
    torch.testing.assert_close(found.abs().double(), wanted, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("x", "y", "wanted"),
    [
        (0j, 1 + 1j, 0j),
        (complex(-0.0, 0.0), 1 - 2j, 0j),
        (complex(math.inf, 0.0), -1.5 + 0j, 0j),
        (complex(math.inf, 0.0), 2.5 + 0j, complex(math.inf, 0.0)),
        (complex(0.0, math.inf), 0j, 1 + 0j),
        (complex(math.inf, 1.0), 1 + 1j, complex(math.nan, math.nan)),
        (complex(math.nan, 1.0), 2.5 + 1j, complex(math.nan, math.nan)),
    ],
)
def test_powers_of_zeros_infinities_and_nan(x: complex, y: complex, wanted: complex) -> None:
    given = [torch.tensor([number], dtype=DOUBLE) for number in (x, y)]
    (found,) = definition(op_of("pow"), given).run(given)
    expected = torch.tensor([wanted], dtype=DOUBLE)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
