"""Which dtype comes out where dtypes meet: tensors, 0-dim ones, numbers, scalar inputs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

from tests.e2e.checking import same_outline
from tests.ops.pointwise_harness import DTYPES
from tritonfuser import DataType, FusionDefinition

D = DataType
RANK = {D.Bool: 0, D.Int32: 1, D.Int: 2, D.Half: 3, D.BFloat16: 3, D.Float: 4, D.Double: 5}
FLOATS = frozenset({D.Half, D.BFloat16, D.Float, D.Double})
NUMBERS: dict[DataType, Any] = {D.Bool: True, D.Int: 3, D.Double: 2.5}


def wide(dtype: DataType) -> DataType:
    """What arithmetic gives back for a dtype: never 16 bits."""
    return D.Float if dtype in (D.Half, D.BFloat16) else dtype


def promoted(a: DataType, b: DataType) -> DataType:
    """nvFuser's rule for two tensors with dims."""
    return wide(max(a, b, key=lambda d: RANK[d]))


def category(dtype: DataType) -> int:
    return 0 if dtype is D.Bool else (2 if dtype in FLOATS else 1)


def beside_scalar(tensor: DataType, scalar: DataType) -> DataType:
    """A scalar counts where its category is higher; its own dtype is then the result."""
    return wide(scalar if category(scalar) > category(tensor) else tensor)


def small(dtype: DataType, device: str) -> torch.Tensor:
    x = torch.tensor([0, 1, 2, 3, 1, 0, 2], device=device)
    return x.to(dtype.info.torch)


def assert_outputs(fd: FusionDefinition, inputs: list[Any], wanted: list[DataType]) -> list[Any]:
    """Each output of the dtype named, recorded and run."""
    handles = fd.fusion.outputs()
    found = fd.run(inputs)
    for place, (handle, one, dtype) in enumerate(zip(handles, found, wanted, strict=True)):
        assert handle.dtype() is dtype, place
        assert one.dtype is dtype.info.torch, place
    same_outline(fd)
    return [x.cpu() for x in found]


def test_two_tensors(device: str) -> None:
    pairs = list(product(DTYPES, repeat=2))
    tensors = {dtype: small(dtype, device) for dtype in DTYPES}
    with FusionDefinition() as fd:
        handles = {dtype: fd.from_pytorch(x) for dtype, x in tensors.items()}
        for a, b in pairs:
            fd.add_output(fd.ops.mul(handles[a], handles[b]))
    inputs = list(tensors.values())
    found = assert_outputs(fd, inputs, [promoted(a, b) for a, b in pairs])
    for one, (a, b) in zip(found, pairs, strict=True):
        wanted = tensors[a].cpu().double() * tensors[b].cpu().double()
        assert torch.equal(one.double(), wanted)


@pytest.mark.parametrize("how", ["number", "constant", "input"])
def test_tensor_and_scalar(how: str, device: str) -> None:
    """Numbers as Python writes them, as constants of the definition, and given to the run."""
    pairs = list(product(DTYPES, NUMBERS))
    tensors = {dtype: small(dtype, device) for dtype in DTYPES}
    inputs: list[Any] = list(tensors.values())
    with FusionDefinition() as fd:
        handles = {dtype: fd.from_pytorch(x) for dtype, x in tensors.items()}
        scalars: dict[DataType, Any] = dict(NUMBERS)
        if how == "constant":
            scalars = {d: fd.define_scalar(v) for d, v in NUMBERS.items()}
        if how == "input":
            scalars = {d: fd.define_scalar(None, dtype=d) for d in NUMBERS}
            inputs += NUMBERS.values()
        for a, b in pairs:
            fd.add_output(fd.ops.mul(handles[a], scalars[b]))
    found = assert_outputs(fd, inputs, [beside_scalar(a, b) for a, b in pairs])
    for one, (a, b) in zip(found, pairs, strict=True):
        assert torch.equal(one.double(), tensors[a].cpu().double() * NUMBERS[b])


@pytest.mark.parametrize("dtype", [D.Float, D.Int32, D.Half, D.BFloat16])
def test_scalar_inputs_of_other_dtypes(dtype: DataType, device: str) -> None:
    """An Int32 or Half scalar promotes as a scalar, and keeps what its dtype holds."""
    x = small(D.Int, device)
    value = 3 if dtype is D.Int32 else 2.5
    with FusionDefinition() as fd:
        t, s = fd.from_pytorch(x), fd.define_scalar(None, dtype=dtype)
        fd.add_output(fd.ops.mul(t, s))
        fd.add_output(fd.ops.add(fd.ops.cast(t, D.Double), s))
    found = assert_outputs(fd, [x, value], [beside_scalar(D.Int, dtype), D.Double])
    assert torch.equal(found[0].double(), x.cpu().double() * value)
    assert torch.equal(found[1], x.cpu().double() + value)


def test_tensors_without_dims_count_as_scalars(device: str) -> None:
    pairs = list(product(DTYPES, repeat=2))
    tensors = {dtype: small(dtype, device) for dtype in DTYPES}
    points = {dtype: small(dtype, device)[3] for dtype in DTYPES}
    with FusionDefinition() as fd:
        handles = {dtype: fd.from_pytorch(x) for dtype, x in tensors.items()}
        weak = {dtype: fd.from_pytorch(x) for dtype, x in points.items()}
        for a, b in pairs:
            fd.add_output(fd.ops.mul(handles[a], weak[b]))
    inputs = [*tensors.values(), *points.values()]
    found = assert_outputs(fd, inputs, [beside_scalar(a, b) for a, b in pairs])
    for one, (a, b) in zip(found, pairs, strict=True):
        wanted = tensors[a].cpu().double() * points[b].cpu().double()
        assert torch.equal(one.double(), wanted)


def test_what_is_left_of_a_full_reduction_counts_as_a_tensor(device: str) -> None:
    x, y = small(D.Float, device), small(D.Double, device)
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(y)
        fd.add_output(fd.ops.add(a, fd.ops.sum(b)))
    (found,) = assert_outputs(fd, [x, y], [D.Double])
    assert torch.equal(found, x.cpu().double() + y.cpu().sum())


def test_scalars_among_themselves(device: str) -> None:
    """Arithmetic of scalars follows the tensors' rules, also where it is folded."""
    x = small(D.Double, device)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        n, f = fd.define_scalar(None, dtype=D.Int), fd.define_scalar(None, dtype=D.Float)
        third = fd.ops.reciprocal(n)
        assert third.dtype() is D.Float
        assert fd.ops.add(n, 1).dtype() is D.Int
        assert fd.ops.add(n, 1.0).dtype() is D.Double
        assert fd.ops.truediv(n, 2).dtype() is D.Float
        assert fd.ops.div(n, 2).dtype() is D.Int
        assert fd.ops.gt(n, f).dtype() is D.Bool
        fd.add_output(fd.ops.mul(t, third))
        fd.add_output(fd.ops.add(t, fd.ops.div(fd.ops.neg(n), 2)))
        fd.add_output(fd.ops.where(fd.ops.gt(n, f), t, 0.0))
    found = fd.run([x, 7, 0.5])
    wide_x = x.cpu()
    assert torch.equal(found[0].cpu(), wide_x * torch.tensor(1 / 7).double())
    assert torch.equal(found[1].cpu(), wide_x - 3)
    assert torch.equal(found[2].cpu(), wide_x)


def test_where_of_scalars_takes_their_dtype(device: str) -> None:
    x = small(D.Bool, device)
    with FusionDefinition() as fd:
        condition = fd.from_pytorch(x)
        for one, other in ((2.0, 3.0), (2, 3), (True, False), (2, 3.5)):
            fd.add_output(fd.ops.where(condition, one, other))
        half = fd.ops.cast(condition, D.Half)
        fd.add_output(fd.ops.where(condition, half, half))
    kinds = [D.Double, D.Int, D.Bool, D.Double, D.Half]
    found = assert_outputs(fd, [x], kinds)
    assert torch.equal(found[3], torch.where(x.cpu(), 2.0, 3.5).double())


@pytest.mark.parametrize("value", [2**40 + 1, -(2**62), 2**31])
def test_great_integers_are_exact(value: int, device: str) -> None:
    """As inputs and as constants: beyond what 32 bits and what doubles hold."""
    x = torch.tensor([0, 1, -1], device=device)
    with FusionDefinition() as fd:
        t, s = fd.from_pytorch(x), fd.define_scalar(None, dtype=D.Int)
        fd.add_output(fd.ops.add(t, s))
        fd.add_output(fd.ops.add(t, value))
        fd.add_output(fd.ops.where(fd.ops.gt(t, 0), value, s))
    for one in fd.run([x, value]):
        assert one.cpu()[1].item() in (value + 1, value)
    assert torch.equal(fd.run([x, value])[0].cpu(), x.cpu() + value)
    assert torch.equal(fd.run([x, value])[1].cpu(), x.cpu() + value)


def test_numbers_keep_all_their_digits(device: str) -> None:
    """A Double constant is not rounded to a Float on the way into a Double tensor's kernel."""
    x = torch.zeros(4, dtype=torch.float64, device=device)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        fd.add_output(fd.ops.add(t, 0.1))
        fd.add_output(fd.ops.add(t, 1e300))
        fd.add_output(fd.ops.add(t, fd.define_scalar()))
        fd.add_output(fd.ops.maximum(t, 1 / 3))
        fd.add_output(fd.ops.where(fd.ops.eq(t, 0.0), 0.1, 0.2))
    found = fd.run([x, 0.1])
    wanted = (0.1, 1e300, 0.1, 1 / 3, 0.1)
    for one, value in zip(found, wanted, strict=True):
        assert one.cpu().tolist() == [value] * 4
    same_outline(fd)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), -0.0])
def test_special_numbers_as_scalars(value: float, device: str) -> None:
    x = torch.ones(3, device=device)
    with FusionDefinition() as fd:
        t, s = fd.from_pytorch(x), fd.define_scalar()
        fd.add_output(fd.ops.mul(t, value))
        fd.add_output(fd.ops.mul(t, s))
        fd.add_output(fd.ops.full([2], value, dtype=D.Float))
        fd.add_output(fd.ops.pad(t, [1, 0], value))
    found = [y.cpu() for y in fd.run([x, value])]
    wanted = torch.full((3,), value)
    for one in (found[0], found[1], found[2], found[3][:1]):
        torch.testing.assert_close(one, wanted[: len(one)], rtol=0, atol=0, equal_nan=True)
        assert torch.equal(one.signbit(), wanted[: len(one)].signbit()) or value != value
    same_outline(fd)
