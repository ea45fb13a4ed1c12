"""embedding_fwd with its options, which come as numbers, as Vals of both kinds, or not at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.e2e.checking import copied, round_trip
from tritonfuser import DataType, FusionDefinition
from tritonfuser.errors import ArgumentError

D = DataType
OPTIONS = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
KINDS = {bool: D.Bool, int: D.Int, float: D.Double}
LIMIT = {torch.float64: 1e-12, torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def weight_of(device: str, dtype: torch.dtype = torch.float32, width: int = 5) -> torch.Tensor:
    """Rows of norms between a tenth and a hundred, one of zeros."""
    generator = torch.Generator().manual_seed(width)
    found = torch.randn(8, width, generator=generator) * torch.logspace(-1, 1.5, 8).unsqueeze(1)
    found[3] = 0
    return found.to(dtype).to(device)


def indices(device: str, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor([[7, 0, 3], [5, 5, 6]], dtype=dtype, device=device)


def run(
    inputs: Sequence[Any], options: Sequence[Any], how: str = "number"
) -> tuple[torch.Tensor, FusionDefinition]:
    """The rows, and the definition; options as numbers, as constants or as inputs."""
    given = [*inputs]
    with FusionDefinition() as fd:
        handles = [fd.from_pytorch(x) for x in inputs]

        def option(value: Any) -> Any:
            if value is None or how == "number":
                return value
            if how == "constant":
                return fd.define_scalar(value)
            given.append(value)
            return fd.define_scalar(None, dtype=KINDS[type(value)])

        fd.add_output(fd.ops.embedding_fwd(*handles, *map(option, options)))
    (found,) = fd.run(copied(given))
    round_trip(fd, given, [found])
    return found, fd


def wanted(index: torch.Tensor, weight: torch.Tensor, options: Sequence[Any]) -> torch.Tensor:
    """By torch, in float64."""
    named = {k: v for k, v in zip(OPTIONS, options, strict=True) if v is not None}
    return F.embedding(index.cpu().long(), weight.detach().cpu().double(), **named)


def assert_near(found: torch.Tensor, other: torch.Tensor) -> None:
    limit = LIMIT[found.dtype]
    torch.testing.assert_close(found.cpu().double(), other, rtol=limit, atol=limit)


@pytest.mark.parametrize("how", ["number", "constant", "input"])
@pytest.mark.parametrize(
    "options",
    [
        (None, None, None, None, None),
        (5, None, None, True, False),
        (-1, None, 2.0, False, True),
        (5, 1.5, 2.0, False, False),
        (None, 1.5, None, None, None),
        (None, 3.0, 1.0, False, None),
        (None, 2, 3, None, False),
        (None, 0.7, 2.5, None, None),
        (None, 1.5, math.inf, None, None),
    ],
)
def test_options(options: tuple[Any, ...], how: str, device: str) -> None:
    index, weight = indices(device), weight_of(device)
    found, _ = run([index, weight], options, how)
    assert_near(found, wanted(index, weight, options))


@pytest.mark.parametrize("dtype", [*LIMIT], ids=str)
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=str)
def test_dtypes(dtype: torch.dtype, index_dtype: torch.dtype, device: str) -> None:
    index, weight = indices(device, index_dtype), weight_of(device, dtype)
    for options in ((None,) * 5, (None, 1.25, None, None, None)):
        found, _ = run([index, weight], options)
        assert found.dtype is dtype
        assert_near(found, wanted(index, weight, options))


@pytest.mark.parametrize("how", ["number", "input"])
@pytest.mark.parametrize("norm", [0.0, 0.5, -1.0, -math.inf])
def test_odd_norms(norm: float, how: str) -> None:
    """How many are not zero; the smallest one."""
    index, weight = torch.tensor([0, 7, 2]), weight_of("cpu")
    options = (None, 0.75, norm, None, None)
    found, _ = run([index, weight], options, how)
    assert_near(found, wanted(index, weight, options))


def test_the_weight_is_left_alone(device: str) -> None:
    """One that has a gradient too; torch itself would change its rows."""
    index, weight = indices(device), weight_of(device).requires_grad_()
    before = weight.detach().clone()
    with FusionDefinition() as fd:
        i, w = fd.from_pytorch(index), fd.from_pytorch(weight)
        fd.add_output(fd.ops.embedding_fwd(i, w, max_norm=1.0))
        fd.add_output(fd.ops.embedding_fwd(i, w))
    scaled, plain = fd.run([index, weight])
    assert torch.equal(weight.detach(), before)
    assert weight.grad is None and not scaled.requires_grad
    assert torch.equal(plain, before[index])
    assert_near(scaled, wanted(index, weight, (None, 1.0, None, None, None)))


def test_one_kernel_looks_up_and_scales() -> None:
    """The rows stay in registers."""
    index, weight = torch.arange(64) % 8, weight_of("cpu", width=64)
    _, fd = run([index, weight], (None, 1.0, 2.0, None, None))
    (segment,) = fd.segments([index, weight], arch="sm_90").segments
    assert segment.scheduler == "inner_persistent"
    (report,) = fd.compile_for("sm_90", [index, weight])
    assert report.spill_bytes == 0


@pytest.mark.parametrize("shape", [(), (0,), (1, 1), (2, 0, 3)])
def test_shapes_of_the_index(shape: tuple[int, ...], device: str) -> None:
    index, weight = torch.full(shape, 2, device=device), weight_of(device)
    for options in ((None,) * 5, (None, 0.1, 2.0, None, None)):
        found, _ = run([index, weight], options)
        assert found.shape == (*shape, 5)
        assert_near(found, wanted(index, weight, options))


def test_an_option_of_a_wrong_kind() -> None:
    index, weight = indices("cpu"), weight_of("cpu")
    with pytest.raises(ArgumentError, match="'max_norm' must be Val"):
        run([index, weight], (None, "1", None, None, None))
