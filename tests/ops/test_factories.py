"""Factories, random numbers and triu: types, values, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.ops.evaluate import add_tensor, concrete, inputs_for, run
from tritonfuser.dtypes import DataType
from tritonfuser.errors import DefinitionError
from tritonfuser.ir import Const, ScalarType, Value
from tritonfuser.lowering.passes.decompose import decompose
from tritonfuser.ops.builder import GraphBuilder
from tritonfuser.ops.creation import philox

D = DataType


def _value(name: str, *args: Any, **kwargs: Any) -> torch.Tensor:
    builder = GraphBuilder()
    return run(builder, [builder.call(name, *args, **kwargs)], [])[0]


# --- iota, full --------------------------------------------------------------------------------


def test_iota_counts_from_zero_by_one() -> None:
    builder = GraphBuilder()
    out = builder.call("iota", 5)
    assert out.dtype is D.Int and out.tensor.sizes == (5,)
    assert builder.nodes[0].args == (Const.of(5), Const.of(0), Const.of(1))
    assert run(builder, [out], [])[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("args", "dtype", "expected"),
    [
        ((4, 2, -3), D.Int32, [2, -1, -4, -7]),
        ((3, 1.0, 2.0), D.Float, [1.0, 3.0, 5.0]),
        ((3, 0.5, 0.25), D.Double, [0.5, 0.75, 1.0]),
        ((3, 2, None), D.Int, [2, 3, 4]),
        ((0, None, None), D.Int, []),
    ],
)
def test_iota(args: tuple[Any, ...], dtype: D, expected: list[float]) -> None:
    found = _value("iota", *args, dtype=dtype)
    assert found.tolist() == expected and found.dtype is dtype.info.torch


@pytest.mark.parametrize("dtype", [D.Half, D.BFloat16])
def test_narrow_floats_are_counted_exactly_and_rounded_once(dtype: D) -> None:
    found = _value("iota", 3000, 1.0, 3.0, dtype=dtype)
    assert torch.equal(found, torch.arange(1, 9001, 3).to(dtype.info.torch))


def test_iota_of_run_time_scalars() -> None:
    builder = GraphBuilder()
    tensor = add_tensor(builder, (-1, -1))
    start = builder.add_input(ScalarType(D.Int))
    length = builder.call("size", tensor, -1)
    out = builder.call("iota", length, start, dtype=D.Int)
    assert run(builder, [out], [torch.zeros(2, 3), 4])[0].tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    ("shape", "fill", "dtype", "constant"),
    [
        ([2, 3], 1, D.Float, Const.of(1.0)),
        ((), 2.5, D.Half, Const.of(2.5)),
        ([0, 2], True, D.Int, Const.of(1)),
        ([2], 3, D.Bool, Const.of(True)),
        ([2], 1, D.ComplexFloat, Const.of(1 + 0j)),
        ([2], float("inf"), D.Float, Const.of(float("inf"))),
    ],
)
def test_full(shape: Any, fill: Any, dtype: D, constant: Const) -> None:
    builder = GraphBuilder()
    out = builder.call("full", shape, fill, dtype)
    assert builder.nodes[0].args[1] == constant
    expected = torch.full(tuple(shape), constant.value, dtype=dtype.info.torch)
    assert torch.equal(run(builder, [out], [])[0], expected)
    assert out.tensor.weak == (len(shape) == 0)


def test_full_of_run_time_scalars() -> None:
    builder = GraphBuilder()
    size, fill = (builder.add_input(ScalarType(d)) for d in (D.Int, D.Int))
    out = builder.call("full", [size, 2], fill, D.Float)
    assert [n.op for n in builder.nodes] == ["cast", "full"]
    assert run(builder, [out], [1, 7])[0].tolist() == [[7.0, 7.0]]


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "text"),
    [
        ("iota", (-1,), {}, "a length of 0 and more"),
        ("iota", (3,), {"dtype": D.Bool}, "an integer or floating-point dtype"),
        ("iota", (3, 1j), {}, "a start that is an integer"),
        ("full", ([-1], 0, D.Int), {}, "sizes of 0 and more"),
        ("full", ([2], float("nan"), D.Int), {}, "a finite fill_value"),
        ("full", ([2], 1j, D.Float), {}, "a real fill_value"),
        ("full", ([2], 1, D.Null), {}, "a dtype that tensors can have"),
        ("uniform", (0, 1, [2]), {"dtype": D.Int}, "one of Double, Float"),
        ("uniform", (0, 1, [2]), {"rng_seed": 1}, "rng_seed and rng_offset must be provided"),
        ("normal", (0, 1, [2]), {"rng_offset": 1}, "rng_seed and rng_offset must be provided"),
        ("normal", (0, 1, [2]), {"rng_seed": 1.0, "rng_offset": 1}, "an integer rng_seed"),
        ("uniform", (0, 1, [-2]), {}, "sizes of 0 and more"),
    ],
)
def test_wrong_arguments_are_refused(name: str, args: Any, kwargs: Any, text: str) -> None:
    with pytest.raises(DefinitionError, match=text):
        GraphBuilder().call(name, *args, **kwargs)


# --- random ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [D.Float, D.Double, D.Half, D.BFloat16])
def test_uniform_of_a_seed(dtype: D) -> None:
    kwargs = {"rng_seed": 7, "rng_offset": 3, "dtype": dtype}
    found = _value("uniform", -1, 2.0, [100], **kwargs)
    assert found.dtype is dtype.info.torch
    assert torch.equal(found, _value("uniform", -1.0, 2, [100], **kwargs))
    assert found.min() >= -1 and found.max() < 2
    kind = torch.float64 if dtype is D.Double else torch.float32
    unit = philox.uniform((100,), 7, 3, kind)
    torch.testing.assert_close(found, (unit * 3 - 1).to(dtype.info.torch))


def test_normal_of_a_seed() -> None:
    found = _value("normal", 10.0, 2, [50], rng_seed=7, rng_offset=3)
    torch.testing.assert_close(found, philox.normal((50,), 7, 3) * 2 + 10)


def test_random_numbers_of_torch_follow_its_seed() -> None:
    draws = []
    for _ in range(2):
        torch.manual_seed(5)
        draws.append(_value("uniform", 0.0, 1.0, [4]))
    assert torch.equal(*draws)
    assert not torch.equal(draws[0], _value("uniform", 0.0, 1.0, [4]))


def test_bounds_and_seeds_at_run_time() -> None:
    builder = GraphBuilder()
    low, high = (builder.add_input(ScalarType(D.Int)) for _ in range(2))
    seed, offset = (builder.add_input(ScalarType(D.Int)) for _ in range(2))
    out = builder.call("uniform", low, high, [10], rng_seed=seed, rng_offset=offset)
    (found,) = run(builder, [out], [2, 4, 7, 0])
    torch.testing.assert_close(found, philox.uniform((10,), 7, 0) * 2 + 2)


@pytest.mark.parametrize(("name", "draw"), [("rand_like", "uniform"), ("randn_like", "normal")])
def test_random_numbers_like_a_tensor(name: str, draw: str) -> None:
    builder = GraphBuilder()
    out = builder.call(name, add_tensor(builder, (-1, 3), D.Half))
    assert [n.op for n in builder.nodes] == ["size", draw]
    assert out.dtype is D.Half
    assert run(builder, [out], [torch.zeros(2, 3, dtype=torch.half)])[0].shape == (2, 3)


@pytest.mark.parametrize("name", ["rand_like", "randn_like"])
def test_only_floats_can_be_drawn(name: str) -> None:
    builder = GraphBuilder()
    with pytest.raises(DefinitionError, match="a tensor of Double, Float"):
        builder.call(name, add_tensor(builder, (2,), D.Int))


# --- triu --------------------------------------------------------------------------------------


def _triu(tensor: torch.Tensor, diagonal: Any, feeds: list[Any]) -> torch.Tensor:
    """triu after it is taken apart, by brute force."""
    builder = GraphBuilder()
    (arg,) = inputs_for(builder, [tensor], dynamic=True)
    k = builder.add_input(ScalarType(D.Int)) if feeds else diagonal
    out = builder.call("triu", arg, k)
    fusion = decompose(concrete(builder, [out], [tensor, *feeds]))
    assert "triu" not in {n.op for n in fusion.nodes}
    assert fusion.outputs[0].value.dtype is out.dtype
    again = GraphBuilder()
    again.inputs, again.nodes = list(fusion.inputs), list(fusion.nodes)
    result: list[Value] = [o.value for o in fusion.outputs]
    return run(again, result, [tensor, *feeds])[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.bool])
@pytest.mark.parametrize("diagonal", [0, 1, -2, 100, -100, 2**40])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3), (0, 2)])
def test_triu(shape: tuple[int, ...], diagonal: int, dtype: torch.dtype) -> None:
    tensor = torch.ones(shape).to(dtype)
    assert torch.equal(_triu(tensor, diagonal, []), torch.triu(tensor, diagonal))


def test_triu_of_a_run_time_diagonal() -> None:
    tensor = torch.ones(4, 4)
    assert torch.equal(_triu(tensor, None, [-1]), torch.triu(tensor, -1))


def test_triu_wants_a_matrix() -> None:
    builder = GraphBuilder()
    with pytest.raises(DefinitionError, match="rank 2 and more"):
        builder.call("triu", add_tensor(builder, (3,)))
    with pytest.raises(DefinitionError, match="an integer diagonal"):
        builder.call("triu", add_tensor(builder, (3, 3)), 0.5)
