"""Complex numbers whose parts are zeros, ones, infinities and nan: as torch and Annex G of C."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

from tests.e2e.ops.complex_numbers import COUNTS, DOUBLE, SINGLE, definition, op_of
from tritonfuser.ops.registry import OPS

_PARTS = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan)
_NUMBERS = [complex(re, im) for re, im in itertools.product(_PARTS, repeat=2)]

_MORE_THAN_TORCH = {
    "expm1": "exp(z) - 1 loses what exp(z) says of a zero imaginary part",
    "log1p": "the logarithm of an infinite number beside nan is infinite, as clog says",
    "sigmoid": "1 / (1 + exp(-z)) divides by infinity beside nan, where the limit is 0",
}
"""Functions that C does not have and torch composes of others: it gives nan where we do not."""


def _tensor(numbers: list[complex]) -> torch.Tensor:
    parts = torch.tensor([[z.real, z.imag] for z in numbers], dtype=torch.float64)
    return torch.view_as_complex(parts)


def _one_by_one(name: str, *operands: torch.Tensor) -> torch.Tensor:
    """What torch says of each number alone: its vector code differs from C's functions."""
    rows = zip(*(operand.split(1) for operand in operands), strict=True)
    return torch.cat([OPS[name].oracle(*row) for row in rows])


def _assert_near(name: str, found: torch.Tensor, wanted: torch.Tensor, *given: Any) -> None:
    for ours, theirs, *z in zip(found.tolist(), wanted.tolist(), *given, strict=True):
        parts = [(ours, theirs)]
        if isinstance(theirs, complex):
            parts = [(ours.real, theirs.real), (ours.imag, theirs.imag)]
        assert all(_agree(name, a, b) for a, b in parts), (name, z, ours, theirs)


def _agree(name: str, ours: float, theirs: float) -> bool:
    if name in _MORE_THAN_TORCH and math.isnan(theirs):
        return True
    if name in ("sinh", "sin") and math.isinf(theirs):
        return math.isinf(ours)  # C leaves the sign open where there is no direction
    return torch.isclose(
        torch.tensor(ours), torch.tensor(theirs), rtol=1e-6, atol=1e-6, equal_nan=True
    ).item()


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize("name", [n for n in COUNTS[1] if n not in ("cast", "complex")])
def test_one_operand(name: str, dtype: torch.dtype) -> None:
    x = _tensor(_NUMBERS)
    (found,) = definition(op_of(name), [x.to(dtype)]).run([x.to(dtype)])
    _assert_near(name, found, _one_by_one(name, x), _NUMBERS)


@pytest.mark.parametrize("name", ["mul", "div", "add", "sub"])
def test_two_operands(name: str) -> None:
    """Products and quotients as torch has them, nan where Annex G would recover an infinity.

    Sums are C's: torch multiplies what is added by a complex 1, which makes nan of infinities.
    """
    pairs = list(itertools.product(_NUMBERS, repeat=2))
    x, y = _tensor([x for x, _ in pairs]), _tensor([y for _, y in pairs])
    (found,) = definition(op_of(name), [x, y]).run([x, y])
    if name in ("add", "sub"):
        parts = getattr(torch, name)(torch.view_as_real(x), torch.view_as_real(y))
        wanted = torch.view_as_complex(parts)
    else:
        wanted = _one_by_one(name, x, y)
    _assert_near(name, found, wanted, pairs)


@pytest.mark.parametrize(
    ("name", "x", "wanted"),
    [
        ("exp", complex(-math.inf, math.inf), 0j),
        ("expm1", complex(math.inf, 0.0), complex(math.inf, 0.0)),
        ("log1p", complex(-math.inf, math.nan), complex(math.inf, math.nan)),
        ("sigmoid", complex(-math.inf, 1.0), 0j),
        ("tanh", complex(0.0, math.inf), complex(0.0, math.nan)),
        ("acosh", complex(0.0, math.nan), complex(math.nan, math.pi / 2)),
    ],
)
def test_where_references_differ(name: str, x: complex, wanted: complex) -> None:
    """Of ``tanh`` and ``acosh`` C99 says (nan, nan), C17 and torch the part that is known."""
    (found,) = definition(op_of(name), [_tensor([x])]).run([_tensor([x])])
    _assert_near("", found, _tensor([wanted]), [x])
