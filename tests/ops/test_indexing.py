"""Views whose index is read at run time: index_select, select, gather and their kin."""

from __future__ import annotations

import pytest
import torch

from tests.ops.evaluate import add_tensor, inputs_for, run
from tritonfuser.dtypes import DataType
from tritonfuser.errors import DefinitionError
from tritonfuser.ir import ScalarType
from tritonfuser.ops.builder import GraphBuilder

DTYPES = [torch.int32, torch.int64]


def _check(name: str, dynamic: bool, tensors: list[torch.Tensor], *rest: int) -> torch.Tensor:
    builder = GraphBuilder()
    out = builder.call(name, *inputs_for(builder, tensors, dynamic), *rest)
    (found,) = run(builder, [out], tensors)
    assert out.tensor.rank == found.dim()
    return found


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_select(dim: int, dtype: torch.dtype, dynamic: bool) -> None:
    arg, index = torch.randn(4, 3), torch.tensor([2, 0, 2, 1, 1], dtype=dtype)
    found = _check("index_select", dynamic, [arg, index], dim)
    assert torch.equal(found, torch.index_select(arg, dim, index))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_0_dim_index_keeps_the_dim(dynamic: bool) -> None:
    arg, index = torch.randn(4, 3), torch.tensor(2)
    found = _check("index_select", dynamic, [arg, index], 0)
    assert torch.equal(found, arg[2:3])


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_takes_a_smaller_index(dim: int, dynamic: bool) -> None:
    arg, index = torch.randn(4, 5), torch.randint(0, 4, (3, 2))
    found = _check("gather", dynamic, [arg, index], dim)
    assert torch.equal(found, torch.gather(arg, dim, index))


def test_gather_of_0_dim_tensors() -> None:
    arg, index = torch.tensor(7.0), torch.tensor(0)
    assert torch.equal(_check("gather", False, [arg, index], 0), arg)
    assert torch.equal(_check("take_along_axis", False, [arg, index], -1), arg)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("shape", "index_shape", "dim"),
    [((4, 5), (4, 2), 1), ((1, 5), (3, 7), 1), ((4, 5), (2, 1), 0), ((5,), (9,), 0)],
)
def test_take_along_axis_broadcasts(
    shape: tuple[int, ...], index_shape: tuple[int, ...], dim: int, dynamic: bool
) -> None:
    arg, index = torch.randn(shape), torch.randint(0, shape[dim], index_shape)
    found = _check("take_along_axis", dynamic, [arg, index], dim)
    assert torch.equal(found, torch.take_along_dim(arg, index, dim))


def test_select_by_a_scalar_of_the_run() -> None:
    builder = GraphBuilder()
    arg = add_tensor(builder, (-1, 3))
    index = builder.add_input(ScalarType(DataType.Int))
    out = builder.call("select", arg, index, 0)
    tensor = torch.randn(4, 3)
    assert torch.equal(run(builder, [out], [tensor, 2])[0], tensor[2])
    assert [node.op for node in builder.nodes] == ["select"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_embedding(dynamic: bool) -> None:
    index, weight = torch.randint(0, 6, (2, 3)), torch.randn(6, 4)
    found = _check("embedding_fwd", dynamic, [index, weight])
    assert torch.equal(found, torch.nn.functional.embedding(index, weight))


@pytest.mark.parametrize("power", [None, 1.0, 2.5, float("inf")])
def test_embedding_with_max_norm_scales_long_rows(power: float | None) -> None:
    index, weight = torch.tensor([0, 1, 2, 1]), torch.randn(3, 4) * torch.tensor([[0.1], [3], [9]])
    builder = GraphBuilder()
    values = inputs_for(builder, [index, weight], dynamic=False)
    out = builder.call("embedding_fwd", *values, None, 1.5, power, False, False)
    (found,) = run(builder, [out], [index, weight])
    expected = torch.nn.functional.embedding(
        index, weight.clone(), max_norm=1.5, norm_type=2.0 if power is None else power
    )
    torch.testing.assert_close(found, expected)


def test_embedding_norm_options_at_run_time() -> None:
    index, weight = torch.tensor([0, 1]), torch.randn(2, 4) * 5
    builder = GraphBuilder()
    values = inputs_for(builder, [index, weight], dynamic=True)
    most, power = (builder.add_input(ScalarType(DataType.Double)) for _ in range(2))
    out = builder.call("embedding_fwd", *values, None, most, power)
    (found,) = run(builder, [out], [index, weight, 1.0, 3.0])
    expected = torch.nn.functional.embedding(index, weight.clone(), max_norm=1.0, norm_type=3.0)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("name", "shapes", "dtype", "text"),
    [
        ("index_select", [(4, 3), (2,)], DataType.Bool, "an Int or Int32 tensor"),
        ("index_select", [(4, 3), (2, 2)], DataType.Int, "an index of rank 0 or 1"),
        ("index_select", [(), (2,)], DataType.Int, "an index of rank 0 or 1"),
        ("gather", [(4, 3), (2,)], DataType.Int, "an index of rank 2"),
        ("gather", [(4, 3), (2, 4)], DataType.Int, "an index of at most 3 in dim 1"),
        ("take_along_axis", [(4, 3), (4, 2)], DataType.Int, "sizes that broadcast"),
        ("take_along_axis", [(4, 3), (3,)], DataType.Int, "an index of rank 2"),
    ],
)
def test_wrong_arguments_are_refused(
    name: str, shapes: list[tuple[int, ...]], dtype: DataType, text: str
) -> None:
    builder = GraphBuilder()
    arg, index = add_tensor(builder, shapes[0]), add_tensor(builder, shapes[1], dtype)
    with pytest.raises(DefinitionError, match=text):
        builder.call(name, arg, index, 0)


def test_embedding_wants_a_matrix() -> None:
    builder = GraphBuilder()
    index = add_tensor(builder, (2,), DataType.Int)
    with pytest.raises(DefinitionError, match="a weight of rank 2"):
        builder.call("embedding_fwd", index, add_tensor(builder, (4,)))
