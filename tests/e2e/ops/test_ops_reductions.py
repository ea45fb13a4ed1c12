"""Each reduction and scan on each dtype, along memory and across it, over nothing and over all."""

from __future__ import annotations

import random

import pytest
import torch

from tests.e2e.checking import Schedule, gpu
from tests.e2e.ops import calls as many
from tests.e2e.ops.samples import (
    Call,
    on_devices,
    reduced_rows,
    reduction_calls,
    scan_calls,
    scanned_rows,
)
from tests.ops.pointwise_harness import ALL_DTYPES
from tritonfuser import DataType, FusionDefinition
from tritonfuser.errors import DefinitionError
from tritonfuser.ops import registry
from tritonfuser.ops.table import Op

D = DataType


def _takes(op: Op, dtype: DataType) -> bool:
    """Whether the row takes a matrix of a dtype."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], dtype=dtype)
        try:
            getattr(fd.ops, op.name)(x, 1)
        except DefinitionError:
            return False
    return True


REDUCED = [(op.name, d) for op in reduced_rows() for d in ALL_DTYPES if _takes(op, d)]
ON_GPU = (D.Float, D.Half, D.Int, D.Bool)
SCANNED = [(op.name, d) for op in scanned_rows() for d in ALL_DTYPES if _takes(op, d)]


def check(name: str, calls: list[Call], device: str) -> None:
    """The calls in one definition, as run and as scheduled for a GPU."""
    recorded = many.record(name, calls)
    wanted = many.reference(name, calls, double=True)
    many.assert_close(many.run(recorded), wanted, recorded, times=4, signs=False)
    if device == "cpu":
        for schedule in (Schedule(gpu()), Schedule(gpu(2), random.Random(name))):
            found = schedule.run(recorded.fd, recorded.inputs)
            assert found is not None
            many.assert_close(found, wanted, recorded, times=4, signs=False)


@pytest.mark.covering(apart=True, times=2)
@pytest.mark.parametrize(("name", "dtype", "device"), on_devices(REDUCED, ON_GPU))
def test_reduction(name: str, dtype: DataType, device: str) -> None:
    check(name, reduction_calls(registry.get(name), dtype, device), device)


@pytest.mark.covering(apart=True)
@pytest.mark.parametrize(("name", "dtype", "device"), on_devices(SCANNED, (D.Half, D.Int)))
def test_scan(name: str, dtype: DataType, device: str) -> None:
    check(name, scan_calls(registry.get(name), dtype, device), device)


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=lambda x: x.name)
def test_sum_in_a_dtype_casts_the_operand_first(dtype: DataType, device: str) -> None:
    x = torch.full((4, 300), 3).to(dtype.info.torch).to(device)
    kinds = (D.Float, D.Double, D.Int, D.Int32, D.Half)
    calls = [Call(kind.name, (x, [1]), {"dtype": kind}) for kind in kinds]
    recorded = many.record("sum", calls)
    found = many.run(recorded)
    count = 300 if dtype is D.Bool else 900
    for one, kind in zip(found, kinds, strict=True):
        assert one.dtype is kind.info.torch
        assert one.tolist() == [count] * 4


@pytest.mark.parametrize("second", [1, D.Double])
def test_the_second_argument_is_a_dim_or_a_dtype(second: int | DataType, device: str) -> None:
    x = torch.ones(3, 5, device=device)
    recorded = many.record("sum", [Call("short", (x, second))])
    (found,) = many.run(recorded)
    wanted = x.cpu().sum(1) if second == 1 else x.cpu().double().sum()
    assert found.dtype is wanted.dtype and torch.equal(found, wanted)


def test_a_reduction_of_one_element_beside_one_of_many(device: str) -> None:
    """It has no axis of its own, and must not be taken for a sum along the other's."""
    x = torch.arange(16.0, device=device).reshape(16, 1)
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1], contiguity=True)
        shifted = fd.ops.sub(t, fd.ops.sum(t, [0], keepdim=True))
        for out in fd.ops.var_mean(shifted, [1], 0):
            fd.add_output(out)
        fd.add_output(fd.ops.sum(shifted, [1]))
    var, mean, total = (y.cpu() for y in fd.run([x]))
    wanted = (x - x.sum()).cpu()[:, 0]
    assert torch.equal(var, torch.zeros(16))
    assert torch.equal(mean, wanted) and torch.equal(total, wanted)


def test_a_scan_of_a_stretched_dim_is_stretched_no_more(device: str) -> None:
    """Its sum is not a multiple of its first element."""
    x = torch.full((2, 1), 3.0, device=device).expand(2, 4)
    with FusionDefinition() as fd:
        running = fd.ops.cumsum(fd.from_pytorch(x), 1)
        fd.add_output(fd.ops.sum(running, [1]))
        with pytest.raises(DefinitionError, match="squeeze"):
            fd.ops.squeeze(fd.ops.cumsum(fd.ops.expand(fd.ops.full([1], 2, D.Int), [3]), 0), [0])
    (found,) = fd.run([x])
    assert found.tolist() == [30.0, 30.0]


def test_long_sums_of_half_do_not_stop_growing(device: str) -> None:
    """A running sum in half would stay at 2048."""
    x = torch.ones(3, 20000, dtype=torch.half, device=device)
    recorded = many.record("sum", [Call("ones", (x, [1]))])
    (found,) = many.run(recorded)
    assert found.tolist() == [20000.0] * 3


def test_variance_of_numbers_far_from_zero(device: str) -> None:
    """Differences of squares would leave nothing of it in float32."""
    generator = torch.Generator().manual_seed(3)
    x = (torch.rand(4, 3000, generator=generator) + 1e4).to(device)
    calls = [Call("rows", (x, [1])), Call("columns", (x.t().contiguous(), [0]))]
    recorded = many.record("var_mean", calls)
    var, mean = torch.var_mean(x.cpu().double(), 1)
    for found in (many.run(recorded)[:2], many.run(recorded)[2:]):
        torch.testing.assert_close(found[0].double(), var, rtol=1e-3, atol=0)
        torch.testing.assert_close(found[1].double(), mean, rtol=1e-6, atol=0)


@pytest.mark.parametrize("length", [1, 2, 3, 17, 1000, 4097])
def test_lengths(length: int, device: str) -> None:
    """Sums, extrema and moments of rows that fill tiles, or do not."""
    generator = torch.Generator().manual_seed(length)
    x = torch.randn(3, length, generator=generator).to(device)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        outs = [fd.ops.sum(t, [1]), fd.ops.max(t, [1]), *fd.ops.var_mean(t, [1], 0)]
        outs.append(fd.ops.cumsum(t, 1))
        for out in outs:
            fd.add_output(out)
    found = [y.cpu().double() for y in fd.run([x])]
    wide = x.cpu().double()
    var, mean = torch.var_mean(wide, 1, correction=0)
    wanted = [wide.sum(1), wide.amax(1), var, mean, wide.cumsum(1)]
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-4)
