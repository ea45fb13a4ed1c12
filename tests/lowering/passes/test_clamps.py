"""Clamps by masks, as tracers write them, and their gradients: fewer ops, the same bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.harness import lowered, planned, record
from tritonfuser import DataType

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 6.0, 6.5, -3.0, INF, -INF, NAN, 3e38, -1e-40]
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def limited(fd: Any, x: Any, compare: str, limit: float) -> Any:
    """``x`` or the limit; nan where ``x`` is."""
    inside = getattr(fd.ops, compare)(x, limit)
    cut = fd.ops.cast(fd.ops.where(inside, x, limit), x.dtype())
    return fd.ops.cast(fd.ops.where(fd.ops.ne(x, x), x, cut), x.dtype())


def passed_on(fd: Any, x: Any, grad: Any, compare: str, limit: float) -> Any:
    """The gradient of ``limited``."""
    is_nan, dtype = fd.ops.ne(x, x), grad.dtype()
    of_nan = fd.ops.cast(fd.ops.where(is_nan, grad, 0.0), dtype)
    others = fd.ops.cast(fd.ops.where(is_nan, 0.0, grad), dtype)
    inside = getattr(fd.ops, compare)(x, limit)
    kept = fd.ops.cast(fd.ops.where(inside, others, 0.0), dtype)
    wide = [fd.ops.cast(part, DataType.Float) for part in (of_nan, kept)]
    return fd.ops.cast(fd.ops.add(*wide), dtype)


def relu6(fd: Any, x: Any) -> Any:
    return limited(fd, limited(fd, x, "gt", 0.0), "lt", 6.0)


def relu6_backward(fd: Any, x: Any, grad: Any) -> Any:
    low = limited(fd, x, "gt", 0.0)
    return passed_on(fd, x, passed_on(fd, low, grad, "lt", 6.0), "gt", 0.0)


def ops_of(body: Any, *inputs: torch.Tensor) -> list[str]:
    ir = lowered(record(body, inputs), inputs).segmented.fusion
    return [node.op for node in ir.nodes]


def run(body: Any, *inputs: torch.Tensor) -> torch.Tensor:
    (found,) = planned(lowered(record(body, inputs), inputs), inputs).run(list(inputs))
    return found


def same_bits(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    numbers = torch.equal(found.nan_to_num(7.0), wanted.nan_to_num(7.0))
    nans = torch.equal(found.isnan(), wanted.isnan())
    signs = torch.equal(found.signbit() & ~found.isnan(), wanted.signbit() & ~wanted.isnan())
    return numbers and nans and signs


def by_masks(x: torch.Tensor, compare: str, limit: float) -> torch.Tensor:
    cut = torch.where(getattr(x, compare)(limit), x, torch.full_like(x, limit))
    return torch.where(x.isnan(), x, cut)


@pytest.mark.parametrize("dtype", DTYPES)
def test_relu6(dtype: torch.dtype) -> None:
    x = torch.tensor(SPECIAL * 3).to(dtype)
    assert ops_of(relu6, x).count("where") == 0
    assert {"maximum", "minimum"} <= set(ops_of(relu6, x))
    assert same_bits(run(relu6, x), by_masks(by_masks(x, "gt", 0.0), "lt", 6.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_its_gradient(dtype: torch.dtype) -> None:
    x, grad = (
        g.flatten().to(dtype) for g in torch.meshgrid(*[torch.tensor(SPECIAL)] * 2, indexing="ij")
    )
    assert ops_of(relu6_backward, x, grad).count("where") == 2
    low = by_masks(x, "gt", 0.0)
    should_continue = (low.isnan() | (low < 6.0)) & (x.isnan() | (x > 0.0))
    wanted = torch.where(should_continue, grad + 0.0, torch.zeros_like(grad))
    assert same_bits(run(relu6_backward, x, grad), wanted)


@pytest.mark.parametrize("compare", ["gt", "ge", "lt", "le"])
@pytest.mark.parametrize("limit", [0.0, -0.0, 1.0, 0.1, -256.0, INF, NAN])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_any_limit(compare: str, limit: float, dtype: torch.dtype) -> None:
    x = torch.tensor([*SPECIAL, 0.1, 0.10009765625]).to(dtype)
    found = run(lambda fd, x: limited(fd, x, compare, limit), x)
    assert same_bits(found, by_masks(x, compare, limit))


def test_the_number_is_used_beside_its_clamp() -> None:
    def body(fd: Any, x: Any) -> Any:
        low = limited(fd, x, "gt", 0.0)
        return fd.ops.mul(fd.ops.cast(low, DataType.Float), fd.ops.cast(x, DataType.Float)), low

    x = torch.tensor(SPECIAL).bfloat16()
    product, low = planned(lowered(record(body, [x]), [x]), [x]).run([x])
    wanted = by_masks(x, "gt", 0.0)
    assert same_bits(low, wanted)
    assert same_bits(product, wanted.float() * x.float())


def other_numbers(fd: Any, x: Any, y: Any) -> Any:
    """What is compared is not what is limited."""
    cut = fd.ops.where(fd.ops.gt(y, 0.0), x, 0.0)
    return fd.ops.where(fd.ops.ne(x, x), x, cut)


def other_limit(fd: Any, x: Any, y: Any) -> Any:
    cut = fd.ops.where(fd.ops.gt(x, 0.0), x, 1.0)
    return fd.ops.where(fd.ops.ne(x, x), x, cut)


def other_gradients(fd: Any, x: Any, y: Any) -> Any:
    mask = fd.ops.ne(x, x)
    one = fd.ops.where(mask, x, 0.0)
    return fd.ops.add(one, fd.ops.where(fd.ops.gt(x, 0.0), fd.ops.where(mask, 0.0, y), 0.0))


@pytest.mark.parametrize("body", [other_numbers, other_limit, other_gradients])
def test_what_is_no_clamp_stays(body: Any) -> None:
    x, y = torch.tensor(SPECIAL), torch.tensor(SPECIAL[::-1])
    found = ops_of(body, x, y)
    assert "maximum" not in found and "logical_or" not in found
