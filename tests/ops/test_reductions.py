"""Reductions, statistics and scans: what recording makes of calls, and that it means torch's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.ops.evaluate import add_tensor, concrete, inputs_for, run
from tritonfuser.dtypes import DataType
from tritonfuser.errors import ArgumentError, DefinitionError
from tritonfuser.ir import ScalarType, Value
from tritonfuser.lowering.passes.decompose import decompose
from tritonfuser.ops.builder import GraphBuilder

D = DataType
INF = float("inf")


def _record(name: str, shape: tuple[int, ...], *args: Any, dtype: D = D.Float, **kw: Any) -> Any:
    builder = GraphBuilder()
    out = builder.call(name, add_tensor(builder, shape, dtype), *args, **kw)
    return [node.op for node in builder.nodes], builder.nodes, out


def _value(name: str, tensor: torch.Tensor, *args: Any, dynamic: bool, **kw: Any) -> torch.Tensor:
    builder = GraphBuilder()
    out = builder.call(name, *inputs_for(builder, [tensor], dynamic), *args, **kw)
    return run(builder, [out], [tensor])[0]


# --- recorded nodes ----------------------------------------------------------------------------


def test_dims_are_sorted_and_the_dtype_written_out() -> None:
    _, nodes, out = _record("sum", (2, -1, 4), [-1, 0])
    assert dict(nodes[0].attrs) == {"dims": (0, 2), "keepdim": False, "dtype": D.Float}
    assert out.dtype is D.Float and out.tensor.rank == 1


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((D.Double,), {}),
        (([0, 1],), {}),
        ((), {"axes": [-1, -2]}),
        (([1, 0], False, D.Double), {}),
    ],
)
def test_spellings_of_a_full_reduction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _, nodes, out = _record("sum", (2, 3), *args, **kwargs)
    assert nodes[-1].attr("dims") == (0, 1)
    assert out.tensor.rank == 0 and not out.tensor.weak
    assert out.dtype is (D.Double if D.Double in args else D.Float)


def test_one_dim_may_be_an_int() -> None:
    assert _record("max", (2, 3), 1)[1][0].attr("dims") == (1,)
    assert _record("max", (2, 3), dim=-1)[1][0].attr("dims") == (1,)


def test_a_given_dtype_casts_the_operand_first() -> None:
    ops, _, out = _record("sum", (2, 3), [1], dtype=D.Half)
    assert ops == ["sum"] and out.dtype is D.Half
    builder = GraphBuilder()
    out = builder.call("sum", add_tensor(builder, (2, 3), D.Half), [1], dtype=D.Double)
    assert [n.op for n in builder.nodes] == ["cast", "sum"]
    assert out.dtype is D.Double and builder.nodes[0].out.dtype is D.Double


@pytest.mark.parametrize("dtype", [D.Bool, D.Int32, D.Int])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_whole_numbers_accumulate_in_int(name: str, dtype: D) -> None:
    ops, _, out = _record(name, (4,), dtype=dtype)
    assert out.dtype is D.Int
    assert ops == ([name] if dtype is D.Int else ["cast", name])


@pytest.mark.parametrize("dtype", [D.Bool, D.Int32, D.Half, D.Double])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_keep_the_dtype(name: str, dtype: D) -> None:
    ops, nodes, out = _record(name, (4, 2), [0], dtype=dtype)
    assert out.dtype is dtype
    assert ops == [name] and nodes[0].attr("dtype") is D.Null


@pytest.mark.parametrize(
    ("shape", "args", "ops"),
    [
        ((2, 1, 1), ([1, 2],), ["squeeze"]),
        ((2, 1, 3), ([1, 2],), ["squeeze", "sum"]),
        ((1, 1), (), ["squeeze"]),
        ((-1, 1), (), ["squeeze", "sum"]),
        ((), (), ["set"]),
        ((), (0,), ["set"]),
        ((2, 3), ([0], True), ["sum", "broadcast"]),
        ((1, 3), ([0], True), ["squeeze", "broadcast"]),
    ],
)
def test_dims_of_size_one_are_squeezed(shape: Any, args: Any, ops: list[str]) -> None:
    assert _record("sum", shape, *args)[0] == ops


def test_dims_left_are_those_of_the_squeezed_tensor() -> None:
    _, nodes, out = _record("sum", (1, 4, 1, 5, 6), [0, 2, 3])
    assert nodes[0].attr("dims") == (0, 2) and nodes[1].attr("dims") == (1,)
    assert out.tensor.sizes == (4, 6)


@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("sum", ["squeeze", "sum", "mul"]),
        ("prod", ["squeeze", "prod", "pow"]),
        ("max", ["squeeze", "max"]),
        ("min", ["squeeze", "min"]),
    ],
)
def test_stretched_dims_are_not_walked_over(name: str, ops: list[str]) -> None:
    tensor = torch.tensor([[1.0], [2.0], [-3.0]]).expand(3, 4)
    builder = GraphBuilder()
    out = builder.call(name, *inputs_for(builder, [tensor], dynamic=False))
    assert [n.op for n in builder.nodes] == ops
    full = {"max": torch.amax, "min": torch.amin}.get(name, getattr(torch, name))
    torch.testing.assert_close(run(builder, [out], [tensor])[0], full(tensor))


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32, torch.bool])
def test_stretched_sums_keep_their_dtype(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[1], [0], [1]], dtype=dtype).expand(3, 4)
    found = _value("sum", tensor, [1], dynamic=False)
    assert torch.equal(found, torch.sum(tensor, 1)) and found.dtype is torch.sum(tensor, 1).dtype


def test_an_empty_stretched_sum_is_zero_even_of_inf() -> None:
    builder = GraphBuilder()
    tensor = add_tensor(builder, (1, 2))
    none = builder.call("sum", builder.call("expand", tensor, [0, 2]), [0])
    assert run(builder, [none], [torch.full((1, 2), INF)])[0].tolist() == [0.0, 0.0]


# --- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dims", [[0], [1, -1], [0, 1, 2]])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_reductions(name: str, dims: list[int], keepdim: bool, dynamic: bool) -> None:
    tensor = torch.randn(3, 1, 4, dtype=torch.float64)
    found = _value(name, tensor, dims, keepdim, dynamic=dynamic)
    expected = tensor
    if name == "prod":
        for dim in sorted((d % 3 for d in dims), reverse=True):
            expected = torch.prod(expected, dim, keepdim=keepdim)
    else:
        reduce = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}[name]
        expected = reduce(tensor, dims, keepdim=keepdim)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("name", "identity"), [("sum", 0.0), ("prod", 1.0), ("max", -INF), ("min", INF)]
)
def test_empty_reductions_give_the_identity(name: str, identity: float) -> None:
    found = _value(name, torch.empty(2, 0), [1], dynamic=True)
    assert found.tolist() == [identity, identity]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_reductions_of_bools(name: str) -> None:
    tensor = torch.tensor([[True, False], [True, True]])
    found = _value(name, tensor, [1], dynamic=False)
    expected = {"sum": [1, 2], "prod": [0, 1], "max": [True, True], "min": [False, True]}[name]
    assert found.tolist() == expected
    assert found.dtype is (torch.int64 if name in ("sum", "prod") else torch.bool)


def test_sum_in_bool_is_any() -> None:
    tensor = torch.tensor([[0.0, 2.0], [0.0, 0.0]])
    found = _value("sum", tensor, [1], False, D.Bool, dynamic=False)
    assert found.tolist() == [True, False] and found.dtype is torch.bool


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "text"),
    [
        ("sum", ([],), {}, "No reduction axis specified"),
        ("sum", ([0, 0],), {}, "each dim once"),
        ("sum", ([0, -2],), {}, "each dim once"),
        ("max", (2,), {}, "a dim from -2 to 1"),
        ("max", (0,), {"dtype": D.Double}, "A dtype other than Null is not currently supported"),
        ("min", (D.Float,), {}, "A dtype other than Null is not currently supported"),
        ("var", ([],), {}, "No reduction axis specified"),
        ("var_mean", ([3],), {}, "a dim from -2 to 1"),
        ("cumsum", (2,), {}, "a dim from -2 to 1"),
    ],
)
def test_wrong_arguments_are_refused(name: str, args: Any, kwargs: Any, text: str) -> None:
    builder = GraphBuilder()
    with pytest.raises(DefinitionError, match=text):
        builder.call(name, add_tensor(builder, (2, 3)), *args, **kwargs)


@pytest.mark.parametrize(
    ("name", "hint"), [("sum", "Leave dims out, or name all dims,"), ("var_mean", "Name all dims")]
)
def test_no_dims_are_refused_with_what_the_op_takes_instead(name: str, hint: str) -> None:
    builder = GraphBuilder()
    with pytest.raises(DefinitionError) as error:
        builder.call(name, add_tensor(builder, (2, 3)), [])
    assert error.value.hint == f"{hint} to reduce over all of them."


@pytest.mark.parametrize(
    ("name", "args"), [("sum", ([0.5],)), ("var_mean", ([0.0],)), ("cumsum", (1.0,)), ("var", ())]
)
def test_wrong_types(name: str, args: Any) -> None:
    builder = GraphBuilder()
    with pytest.raises(ArgumentError, match="incompatible function arguments"):
        builder.call(name, add_tensor(builder, (2, 3)), *args)


@pytest.mark.parametrize("name", ["max", "min", "cummax", "cummin"])
def test_complex_numbers_have_no_order(name: str) -> None:
    builder = GraphBuilder()
    with pytest.raises(DefinitionError, match="numbers that have an order"):
        builder.call(name, add_tensor(builder, (2, 3), D.ComplexFloat), 0)


# --- welford, var, var_mean --------------------------------------------------------------------


def _lowered(builder: GraphBuilder, outs: list[Value], tensor: torch.Tensor) -> list[torch.Tensor]:
    """The results after composite ops are taken apart, by brute force."""
    fusion = decompose(concrete(builder, outs, [tensor]))
    assert not {"var", "var_mean"} & {n.op for n in fusion.nodes}
    again = GraphBuilder()
    again.inputs, again.nodes = list(fusion.inputs), list(fusion.nodes)
    return run(again, [o.value for o in fusion.outputs], [tensor])


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("dims", [[0], [-1, 0], [0, 1, 2]])
def test_var_mean(dims: list[int], correction: int, keepdim: bool) -> None:
    tensor = torch.randn(3, 2, 4, dtype=torch.float64)
    builder = GraphBuilder()
    (arg,) = inputs_for(builder, [tensor], dynamic=True)
    outs = builder.call("var_mean", arg, dims, correction, keepdim)
    outs = [*outs, builder.call("var", arg, dims, correction=correction, keepdim=keepdim)]
    var, mean = torch.var_mean(tensor, dims, correction=correction, keepdim=keepdim)
    for found in (run(builder, outs, [tensor]), _lowered(builder, outs, tensor)):
        torch.testing.assert_close(found, [var, mean, var])


@pytest.mark.parametrize(("shape", "correction"), [((1,), 1), ((0,), 0), ((2,), 2), ((2,), 5)])
def test_too_few_elements_are_as_in_torch(shape: tuple[int, ...], correction: int) -> None:
    tensor = torch.arange(2, dtype=torch.float32)[: shape[0]].clone()
    builder = GraphBuilder()
    (arg,) = inputs_for(builder, [tensor], dynamic=True)
    outs = list(builder.call("var_mean", arg, [0], correction))
    with pytest.warns(UserWarning):
        expected = list(torch.var_mean(tensor, [0], correction=correction))
    torch.testing.assert_close(_lowered(builder, outs, tensor), expected, equal_nan=True)


def test_variance_of_complex_numbers_is_real() -> None:
    tensor = torch.randn(5, dtype=torch.complex64)
    builder = GraphBuilder()
    (arg,) = inputs_for(builder, [tensor], dynamic=True)
    var, mean = builder.call("var_mean", arg, [0])
    assert (var.dtype, mean.dtype) == (D.Float, D.ComplexFloat)
    expected = list(torch.var_mean(tensor, [0]))
    torch.testing.assert_close(_lowered(builder, [var, mean], tensor), expected)


def test_types_do_not_change_when_var_is_taken_apart() -> None:
    builder = GraphBuilder()
    var, mean = builder.call("var_mean", add_tensor(builder, (2, 3)), [0, 1])
    fusion = decompose(concrete(builder, [var, mean], [torch.zeros(2, 3)]))
    assert [o.value.type for o in fusion.outputs] == [var.type, mean.type]


def test_welford_gives_undivided_squares_and_a_count() -> None:
    tensor = torch.randn(3, 4, dtype=torch.float64)
    builder = GraphBuilder()
    (arg,) = inputs_for(builder, [tensor], dynamic=True)
    outs = builder.call("welford", arg, [-1])
    average, squares, count = run(builder, list(outs), [tensor])
    torch.testing.assert_close(average, tensor.mean(1))
    torch.testing.assert_close(squares, torch.var(tensor, 1, correction=0) * 4)
    assert count.tolist() == [4, 4, 4] and count.dtype is torch.int64


@pytest.mark.parametrize("name", ["var", "var_mean", "welford"])
@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (D.Half, "a Float or Double tensor"),
        (D.BFloat16, "a Float or Double tensor"),
        (D.Float8_e5m2, "a Float or Double tensor"),
        (D.Int, "a floating-point tensor"),
    ],
)
def test_statistics_refuse_narrow_and_whole_numbers(name: str, dtype: D, text: str) -> None:
    builder = GraphBuilder()
    with pytest.raises(RuntimeError, match=text):
        builder.call(name, add_tensor(builder, (2, 3), dtype), [0])


def test_statistics_of_a_0_dim_tensor() -> None:
    builder = GraphBuilder()
    with pytest.raises(DefinitionError, match="a tensor with dims"):
        builder.call("var", add_tensor(builder, ()), [0])


# --- scans -------------------------------------------------------------------------------------

SCANS = {
    "cumsum": (lambda t, d: torch.cumsum(t, d, dtype=t.dtype), torch.add),
    "cumprod": (lambda t, d: torch.cumprod(t, d, dtype=t.dtype), torch.mul),
    "cummin": (lambda t, d: torch.cummin(t, d).values, torch.minimum),
    "cummax": (lambda t, d: torch.cummax(t, d).values, torch.maximum),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32])
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", SCANS)
def test_scans_keep_the_dtype(name: str, dim: int, dtype: torch.dtype) -> None:
    tensor = (torch.randn(4, 5) * 3).to(dtype)
    assert torch.equal(_value(name, tensor, dim, dynamic=True), SCANS[name][0](tensor, dim))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize("name", SCANS)
def test_scans_from_an_initial_value(name: str, dtype: torch.dtype) -> None:
    tensor = (torch.randn(5) * 3).to(dtype)
    builder = GraphBuilder()
    values = inputs_for(builder, [tensor], dynamic=True)
    out = builder.call(name, *values, 0, 2)
    scan, join = SCANS[name]
    expected = join(scan(tensor, 0), torch.tensor(2, dtype=dtype))
    (found,) = run(builder, [out], [tensor])
    torch.testing.assert_close(found, expected)


def test_scan_from_a_scalar_of_the_run() -> None:
    builder = GraphBuilder()
    arg = add_tensor(builder, (3,))
    out = builder.call("cumsum", arg, 0, builder.add_input(ScalarType(D.Double)))
    assert out.dtype is D.Float
    assert run(builder, [out], [torch.ones(3), 0.5])[0].tolist() == [1.5, 2.5, 3.5]


def test_scans_of_bools_and_of_0_dim_tensors() -> None:
    tensor = torch.tensor([False, True, False])
    assert _value("cumsum", tensor, 0, dynamic=False).tolist() == [False, True, True]
    assert _value("cumprod", ~tensor, 0, dynamic=False).tolist() == [True, False, False]
    with pytest.raises(DefinitionError, match="Tried to access out of boundary index"):
        _record("cumsum", (), 0)


def test_a_full_reduction_counts_as_dimensional_through_views() -> None:
    builder = GraphBuilder()
    total = builder.call("sum", add_tensor(builder, (2, 3), D.Double))
    assert not total.tensor.weak
    assert not builder.call("permute", total, []).tensor.weak
    assert builder.call("squeeze", add_tensor(builder, (1,)), [0]).tensor.weak
