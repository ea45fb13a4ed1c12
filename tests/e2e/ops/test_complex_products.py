"""Matrix products of complex numbers, which torch runs as one product of reals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.e2e.ops.complex_numbers import DOUBLE, SINGLE, assert_near, definition, numbers, run
from tritonfuser.ops.registry import OPS

SHAPES = [
    ((3, 5), (5, 4)),
    ((5,), (5, 4)),
    ((3, 5), (5,)),
    ((5,), (5,)),
    ((2, 3, 5), (5, 4)),
    ((2, 1, 3, 5), (7, 5, 4)),
    ((5,), (2, 5, 4)),
    ((2, 3, 5), (5,)),
    ((1, 5), (5, 1)),
    ((0, 5), (5, 4)),
    ((3, 0), (0, 4)),
]


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_matrix_products(
    left: tuple[int, ...], right: tuple[int, ...], dtype: torch.dtype, device: str
) -> None:
    """One product of reals; what is around it is fused."""
    a = numbers(*left, dtype=dtype, device=device)
    b = numbers(*right, dtype=dtype, device=device, seed=1)
    found = run(lambda fd, a, b: [fd.ops.matmul(a, b), fd.ops.matmul(fd.ops.mul(a, 1j), b)], [a, b])
    wide = a.to(DOUBLE) @ b.to(DOUBLE)
    for one, other in zip(found, (wide, 1j * wide), strict=True):
        assert one.dtype is dtype
        assert_near(one, other, 10)


@pytest.mark.parametrize(
    ("rows", "weight", "bias"),
    [
        ((3, 5), (4, 5), None),
        ((3, 5), (4, 5), (4,)),
        ((2, 3, 5), (4, 5), (4,)),
        ((5,), (4, 5), (4,)),
        ((3, 5), (2, 4, 5), (2, 4)),
        ((3, 5), (2, 4, 5), (4,)),
        ((3, 2, 5), (2, 4, 5), (2, 4)),
        ((6, 3, 5), (2, 4, 5), (2, 4)),
    ],
)
def test_linear(rows: Any, weight: Any, bias: Any, device: str) -> None:
    given = [numbers(*s, device=device, seed=n) for n, s in enumerate((rows, weight, bias)) if s]
    (found,) = run(lambda fd, x, w, b=None: fd.ops.linear(x, w, bias=b), given)
    assert_near(found, OPS["linear"].oracle(*given), 10)


@pytest.mark.parametrize("rows", [(5,), (3, 5), (2, 3, 5), (4, 2, 3, 5)])
def test_a_stack_of_weights(rows: Any, device: str) -> None:
    """``[*rows, k] x [d, n, k] + [d, n] -> [d, *rows, n]``, of reals too."""
    for dtype in (torch.float32, torch.complex64):
        x, w, b = (
            numbers(*shape, dtype=dtype, device=device, seed=n)
            for n, shape in enumerate((rows, (2, 4, 5), (2, 4)))
        )
        (found,) = run(lambda fd, x, w, b: fd.ops.linear(x, w, bias=b), [x, w, b])
        wanted = [torch.nn.functional.linear(x, w[d], b[d]) for d in range(2)]
        torch.testing.assert_close(found, torch.stack(wanted), rtol=1e-5, atol=1e-5)


def test_products_in_one_call() -> None:
    a, b = numbers(8, 16), numbers(16, 8, seed=1)
    fd = definition(lambda fd, a, b: fd.ops.matmul(a, b), [a, b])
    names = [s.scheduler for s in fd.segments([a, b]).segments]
    assert names.count("expr_eval") == 1
