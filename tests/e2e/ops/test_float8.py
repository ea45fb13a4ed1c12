"""Floats of eight bits through the whole path: in memory they are bytes, computed with in Float."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.e2e.checking import Schedule, copied, gpu, round_trip
from tests.ops.pointwise_harness import DTYPES, EIGHTS, specials
from tritonfuser import DataType, FusionDefinition
from tritonfuser.errors import DefinitionError

D = DataType
BOTH = pytest.mark.parametrize("dtype", EIGHTS, ids=lambda d: d.name)


def run(record: Callable[..., Any], inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The outputs; as the printed definition and the schedule of a GPU give them."""
    with FusionDefinition() as fd:
        handles = [
            fd.from_pytorch(x)
            if isinstance(x, torch.Tensor)
            else fd.define_scalar(None, dtype=x[1])
            for x in inputs
        ]
        found = record(fd, *handles)
        for out in found if isinstance(found, list | tuple) else [found]:
            fd.add_output(out)
    given = [x if isinstance(x, torch.Tensor) else x[0] for x in inputs]
    outs = fd.run(copied(given))
    round_trip(fd, given, outs)
    if all(x.device.type == "cpu" for x in given if isinstance(x, torch.Tensor)):
        scheduled = Schedule(gpu()).run(fd, given)
        assert scheduled is not None
        for one, other in zip(scheduled, outs, strict=True):
            assert_same(one, other)
    return outs


def assert_same(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """The same dtype and numbers, -0.0 and nan among them."""
    assert found.dtype is wanted.dtype
    if found.is_complex():
        assert_same(found.real, wanted.real)
        found, wanted = found.imag, wanted.imag
    one, other = found.cpu().double(), wanted.cpu().double()
    torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    zero = one == 0
    assert torch.equal(one[zero].signbit(), other[zero].signbit())


def every(dtype: DataType, device: str = "cpu") -> torch.Tensor:
    """All 256 bytes."""
    return torch.arange(256, dtype=torch.uint8).view(dtype.info.torch).to(device)


def some(dtype: DataType, *shape: int, device: str = "cpu", seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.randn(shape, generator=generator) * 3).to(dtype.info.torch).to(device)


def wide(x: torch.Tensor) -> torch.Tensor:
    return x.cpu().float()


# --- casts ---------------------------------------------------------------------------------------


@BOTH
def test_casts_to_every_dtype(dtype: DataType, device: str) -> None:
    x = every(dtype, device)
    targets = [d for d in (*DTYPES, *EIGHTS, D.ComplexFloat) if d is not dtype]
    found = run(lambda fd, x: [fd.ops.cast(x, d) for d in targets], [x])
    for one, target in zip(found, targets, strict=True):
        if target in (D.Int, D.Int32):  # of nan and infinity any number will do
            finite = wide(x).isfinite()
            assert_same(one.cpu()[finite], wide(x)[finite].to(target.info.torch))
        elif target is D.ComplexFloat:
            assert_same(one.real, wide(x))
        else:
            assert_same(one, wide(x).to(target.info.torch))


def numbers(dtype: DataType) -> torch.Tensor:
    """Around the ends of both ranges, and special ones."""
    ends = torch.tensor([447, 448, 449, 463.5, 464, 465, 57344, 61439, 61440, 61441, 2**-9, 2**-10])
    found = torch.cat([ends, ends * 0.75, -ends, torch.linspace(-9, 9, 301)])
    if dtype in (D.Int, D.Int32):
        found = found.round()
    return torch.cat([found.to(dtype.info.torch), specials(dtype)])


@pytest.mark.parametrize("source", DTYPES, ids=lambda d: d.name)
def test_casts_from_every_dtype(source: DataType, device: str) -> None:
    """To nearest even; what is too large becomes what this torch makes of it."""
    x = numbers(source).to(device)
    found = run(lambda fd, x: [fd.ops.cast(x, d) for d in EIGHTS], [x])
    for one, target in zip(found, EIGHTS, strict=True):
        assert_same(one, x.cpu().to(target.info.torch))


@BOTH
def test_results_of_arithmetic_are_rounded_once(dtype: DataType, device: str) -> None:
    x, y = some(dtype, 40, 7, device=device), some(dtype, 7, device=device, seed=1)

    def record(fd: Any, x: Any, y: Any) -> Any:
        made = fd.ops.add(fd.ops.mul(x, y), 0.25)
        return made, fd.ops.cast(made, dtype), fd.ops.relu(fd.ops.cast(made, dtype))

    found = run(record, [x, y])
    wanted = wide(x) * wide(y) + 0.25
    assert_same(found[0], wanted)
    assert_same(found[1], wanted.to(x.dtype))
    assert_same(found[2], wanted.to(x.dtype).float().relu().to(x.dtype))


# --- moved as they are ---------------------------------------------------------------------------


@BOTH
def test_what_moves_bytes(dtype: DataType, device: str) -> None:
    """Every byte arrives: no number is made of it on the way."""
    x = every(dtype, device).view(16, 16)
    index = torch.arange(16, device=device).flip(0)

    def record(fd: Any, x: Any, index: Any) -> list[Any]:
        o = fd.ops
        far = o.broadcast_in_dim(index, [16, 16], [1])
        return [
            o.cat([x, o.permute(x, [1, 0])], 1),
            o.set(x),
            o.slice(o.stride_order(x, [0, 1]), [3, 0], [16, 9]),
            o.index_select(x, index, 0),
            o.gather(x, far, 1),
            o.scatter(x, far, x, 1),
            o.reshape(o.pad(x, [1, 1]), [18, 16]),
        ]

    found = [y.cpu().view(torch.uint8) for y in run(record, [x, index])]
    given = x.cpu().view(torch.uint8)
    wanted = [
        torch.cat([given, given.t()], 1),
        given,
        given[3:, :9],
        given.flip(0),
        given.flip(1),
        given.flip(1),
        torch.nn.functional.pad(given, (1, 1)).view(18, 16),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


@BOTH
def test_choices_and_fills(dtype: DataType, device: str) -> None:
    x, y = every(dtype, device), some(dtype, 256, device=device)

    def record(fd: Any, x: Any, y: Any) -> list[Any]:
        o = fd.ops
        return [
            o.where(o.gt(y, 0.0), x, y),
            o.where(o.gt(y, 0.0), x, 2.6),
            o.pad(x, [2, 3], -1.7),
            o.full([3], 3.3, dtype),
            o.iota(20, 1.0, 2.0, dtype),
            o.clamp(x, -2.0, 2.0),
        ]

    found = run(record, [x, y])
    pick = wide(y) > 0
    filled = torch.nn.functional.pad(wide(x), (2, 3), value=-1.7)
    wanted = [
        torch.where(pick, wide(x), wide(y)),
        torch.where(pick, wide(x), 2.6),
        filled,
        torch.full((3,), 3.3),
        torch.arange(1.0, 41.0, 2.0),
        wide(x).clamp(-2.0, 2.0),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert_same(one, other.to(x.dtype))


# --- reductions ----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("dim", [0, 1])
def test_reductions(dim: int, dtype: DataType, device: str) -> None:
    """Summed in Float, stored as they were; over masked tiles too, where e4m3 has no infinity."""
    x = (-wide(some(dtype, 9, 21)).abs()).to(dtype.info.torch).to(device)

    def record(fd: Any, x: Any) -> list[Any]:
        o = fd.ops
        return [
            o.max(x, [dim]),
            o.min(x, [dim]),
            o.sum(x, [dim]),
            o.sum(x, [dim], dtype=D.Float),
            o.cummax(x, dim),
            o.cumsum(o.set(x), dim),
        ]

    found = run(record, [x])
    w = wide(x)
    wanted = [w.amax(dim), w.amin(dim), w.sum(dim), w.sum(dim), w.cummax(dim).values, w.cumsum(dim)]
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert_same(one, other.to(torch.float32 if place == 3 else x.dtype))


@BOTH
def test_quantized_rows(dtype: DataType, device: str) -> None:
    """What scaled products want: each row divided by its largest number, in one kernel."""
    x = (some(D.Float, 33, 128, device=device) * 50).to(torch.bfloat16)
    top = 448.0 if dtype is D.Float8_e4m3fn else 57344.0

    def record(fd: Any, x: Any) -> Any:
        o = fd.ops
        scale = o.div(o.max(o.abs(x), [1], keepdim=True), top)
        return o.cast(o.div(x, scale), dtype), scale

    found, scale = run(record, [x])
    wanted = x.cpu().float().abs().amax(1, keepdim=True) / top
    assert_same(scale, wanted)
    assert_same(found, (x.cpu().float() / wanted).to(dtype.info.torch))
    with FusionDefinition() as fd:
        for out in record(fd, fd.from_pytorch(x)):
            fd.add_output(out)
    (kernel,) = fd.compile_for("sm_90", [x])
    assert kernel.scheduler == "inner_persistent"


@BOTH
def test_scalars(dtype: DataType, device: str) -> None:
    """Of the run and of the definition; rounded as they come in."""
    x = some(dtype, 12, device=device)

    def record(fd: Any, x: Any, s: Any) -> list[Any]:
        constant = fd.define_scalar(0.33, dtype=dtype)
        return [
            fd.ops.mul(x, s),
            fd.ops.mul(x, constant),
            fd.ops.full([2], s, dtype),
            fd.ops.where(fd.ops.gt(x, 0.0), x, fd.ops.cast(fd.ops.mul(s, 3.0), dtype)),
        ]

    found = run(record, [x, (0.33, dtype)])
    third = torch.tensor(0.33).to(x.dtype).float()
    assert_same(found[0], wide(x) * third)
    assert_same(found[1], wide(x) * third)
    assert_same(found[2], third.expand(2).to(x.dtype))
    other = torch.where(wide(x) > 0, wide(x), (third * 3).to(x.dtype).float())
    assert_same(found[3], other.to(x.dtype))


@BOTH
@pytest.mark.parametrize("name", ["matmul", "linear"])
def test_products_are_those_of_scaled_operands(name: str, dtype: DataType) -> None:
    text = f"{name}: expected operands of 16 bits and more, got {dtype}"
    with pytest.raises(DefinitionError, match=text), FusionDefinition() as fd:
        a, b = (fd.define_tensor([8, 8], dtype=dtype) for _ in range(2))
        getattr(fd.ops, name)(a, b)


# --- real code -----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "gfx942"])
def test_compiled(arch: str, dtype: DataType) -> None:
    """Sixteen bytes at a time, on GPUs that do not know the type too."""
    x = torch.empty(1 << 22, dtype=dtype.info.torch, device="meta")
    y = torch.empty(1 << 22, dtype=torch.bfloat16, device="meta")
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        fd.add_output(fd.ops.cast(fd.ops.add(a, b), dtype))
        fd.add_output(fd.ops.where(fd.ops.gt(b, 0.0), a, 1.0))
    (report,) = fd.compile_for(arch, [x, y])
    assert report.spill_bytes == 0
    assert report.max_load_bytes >= 8
    if arch == "sm_90":
        assert report.max_load_bytes == report.max_store_bytes == 16
