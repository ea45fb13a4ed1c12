"""Reductions of a few elements as pointwise ops: when, and that the numbers are the same."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, schedulers
from tritonfuser import DataType
from tritonfuser.lowering.passes.unrolled_reductions import MOST_UNROLLED
from tritonfuser.ops.forms import Reduction
from tritonfuser.ops.registry import OPS

REDUCTIONS = [op.name for op in OPS.values() if isinstance(op.form, Reduction)]


def reduced(name: str, *dims: int) -> Any:
    return lambda fd, x: getattr(fd.ops, name)(x, list(dims))


def is_unrolled(body: Any, *inputs: torch.Tensor) -> bool:
    found = lowered(record(body, inputs), inputs)
    return not any(n.op in REDUCTIONS for s in found.segmented.segments for n in s.nodes)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32])
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((3, 2, 5), (1,)),
        ((2, 7), (0,)),
        ((2, 3, 4), (0, 1)),
        ((8, 1, 6), (0,)),
        ((3, 4, 1, 2, 9), (1, 3)),
    ],
)
def test_the_same_numbers(
    name: str, shape: tuple[int, ...], dims: tuple[int, ...], dtype: Any
) -> None:
    x = (2 * noise(*shape)).to(dtype)
    assert is_unrolled(reduced(name, *dims), x)
    if dtype.is_floating_point:
        check(reduced(name, *dims), x)
    else:
        (found,) = record(reduced(name, *dims), [x]).run([x])
        expected = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}.get(name)
        if expected is not None:
            assert torch.equal(found, expected(x, dims))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_special_numbers(name: str) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[inf, -inf, nan, -0.0, 1.0, inf], [1.0, 2.0, 3.0, -0.0, nan, -inf]])
    assert is_unrolled(reduced(name, 0), x)
    check(reduced(name, 0), x)


def test_sums_of_groups_in_two_layouts_are_one_kernel() -> None:
    """The gradients of keys and values that several heads share, one of them transposed."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        keys = fd.ops.reshape(fd.ops.permute(x, [0, 1, 3, 2]), [2, 2, 2, 64, 32])
        values = fd.ops.reshape(y, [2, 2, 2, 64, 32])
        return fd.ops.sum(keys, [2]), fd.ops.permute(fd.ops.sum(values, [2]), [0, 2, 1, 3])

    given = noise(2, 4, 32, 64), noise(2, 4, 64, 32)
    found = check(body, *given)
    assert schedulers(found) == ["pointwise"]


def test_long_ones_and_those_along_memory_stay() -> None:
    assert not is_unrolled(reduced("sum", 0), noise(MOST_UNROLLED + 1, 5))
    assert not is_unrolled(reduced("sum", 1), noise(5, 4))


def test_a_result_that_meets_its_operand_again_stays() -> None:
    """One kernel has the operand in registers for both."""

    def normal(fd: Any, x: Any) -> Any:
        return fd.ops.div(x, fd.ops.sum(x, [0], keepdim=True))

    def stored(fd: Any, x: Any) -> Any:
        y = fd.ops.exp(x)
        return y, fd.ops.sum(y, [0])

    def beside(fd: Any, x: Any) -> Any:
        return fd.ops.exp(x), fd.ops.sum(fd.ops.tanh(x), [0])

    def transposed(fd: Any, x: Any) -> Any:
        total = fd.ops.sum(fd.ops.reshape(x, [2, 4, 3]), [0])
        return fd.ops.add(fd.ops.slice(total, [0, 0], [3, 3]), fd.ops.slice(total, [1, 0], [4, 3]))

    for body in (normal, stored, beside, transposed):
        assert not is_unrolled(body, noise(4, 6))
        check(body, noise(4, 6))


def test_two_of_one_operand_are_unrolled_or_stay_together() -> None:
    def body(fd: Any, x: Any) -> Any:
        y = fd.ops.exp(x)
        return fd.ops.sum(y, [0]), fd.ops.max(y, [0])

    assert not is_unrolled(body, noise(4, 6))
    check(body, noise(4, 6))


def test_sizes_that_vary_are_not_unrolled() -> None:
    fd = record(reduced("sum", 0), [noise(2, 5)])
    for rows in (2, 3, 4, 5, 6):
        x = noise(rows, 5)
        torch.testing.assert_close(fd.run([x])[0], x.sum(0))


def test_half_sums_are_rounded_once() -> None:
    def body(fd: Any, x: Any) -> Any:
        return fd.ops.sum(x, [0], dtype=DataType.BFloat16)

    x = torch.tensor([[256.0], [1.0], [1.0], [1.0]]).bfloat16()
    (found,) = record(body, [x]).run([x])
    assert found.item() == torch.tensor(259.0).bfloat16().item()
