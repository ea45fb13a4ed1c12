"""Views: result types, index maps and aliases against torch, and every error text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.ops.evaluate import add_tensor, concrete, inputs_for, run
from tritonfuser.dtypes import DataType
from tritonfuser.errors import ArgumentError, DefinitionError
from tritonfuser.ir import Const, Dim, ScalarType, Value
from tritonfuser.ops.builder import GraphBuilder, as_call
from tritonfuser.ops.registry import OPS
from tritonfuser.ops.table import View
from tritonfuser.shapes.memory import Memory
from tritonfuser.symbolic.extents import SymbolicExtent


@dataclass
class Case:
    """One op on tensors of these shapes; ``expected`` computes the result with torch."""

    op: str
    shapes: list[tuple[int, ...]]
    args: tuple[Any, ...]
    expected: Callable[..., torch.Tensor]
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.op}-{self.shapes}-{self.args}".replace(" ", "")


def one(op: str, shape: tuple[int, ...], *args: Any, to: Callable[..., Any], **kw: Any) -> Case:
    return Case(op, [shape], args, to, kw)


def _sliced(*limits: tuple[int, int]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda t: t[tuple(slice(a, b) for a, b in limits)]


CASES = [
    one("broadcast", (3, 4), [False, True, False], to=lambda t: t[:, None]),
    one("broadcast", (3,), [True, True, False, True], to=lambda t: t[None, None, :, None]),
    one("broadcast", (), [True, True], to=lambda t: t[None, None]),
    one("broadcast", (0, 2), (True, False, False), to=lambda t: t[None]),
    one("expand", (1, 3), [4, 3], to=lambda t: t.expand(4, 3)),
    one("expand", (3, 1), [2, -1, 5], to=lambda t: t.expand(2, 3, 5)),
    one("expand", (1, 3), [0, 3], to=lambda t: t.expand(0, 3)),
    one("expand", (), [2, 2], to=lambda t: t.expand(2, 2)),
    one("broadcast_in_dim", (3,), [2, 3, 4], [1], to=lambda t: t[:, None].expand(2, 3, 4)),
    one("broadcast_in_dim", (3, 1), [2, 3, 4], [-2, -1], to=lambda t: t.expand(2, 3, 4)),
    one("broadcast_in_dim", (3,), [1, 3], [1], to=lambda t: t[None]),
    one("broadcast_in_dim", (3,), [-1, 4], [0], to=lambda t: t[:, None].expand(3, 4)),
    one("broadcast_in_dim", (), [2, 3], [], to=lambda t: t.expand(2, 3)),
    one("reshape", (2, 6), [3, 4], to=lambda t: t.reshape(3, 4)),
    one("reshape", (2, 3, 4), [-1], to=lambda t: t.reshape(-1)),
    one("reshape", (4, 6), [2, -1, 3], to=lambda t: t.reshape(2, -1, 3)),
    one("reshape", (5, 6), [3, 1, 10], to=lambda t: t.reshape(3, 1, 10)),
    one("reshape", (), [1, 1], to=lambda t: t.reshape(1, 1)),
    one("reshape", (1, 1), [], to=lambda t: t.reshape(())),
    one("reshape", (0, 3), [3, 0, 7], to=lambda t: t.reshape(3, 0, 7)),
    one("reshape", (0, 3), [-1, 3], to=lambda t: t.reshape(-1, 3)),
    one("permute", (2, 3, 4), [2, 0, 1], to=lambda t: t.permute(2, 0, 1)),
    one("permute", (2, 3, 4), [-1, 1, -3], to=lambda t: t.permute(2, 1, 0)),
    one("permute", (), [], to=lambda t: t),
    one("squeeze", (1, 3, 1), [0, -1], to=lambda t: t[0, :, 0]),
    one("squeeze", (1, 3), 0, to=lambda t: t[0]),
    one("squeeze", (2, 3), [], to=lambda t: t),
    one("squeeze", (1,), [0], to=lambda t: t[0]),
    one("stride_order", (2, 3, 4), [0, 2, 1], to=lambda t: t),
    one("stride_order", (2, 3), [-1, -2], to=lambda t: t),
    one("stride_order", (2, 3), [], to=lambda t: t),
    one("slice", (5, 6), [1, 2], [4, 6], to=_sliced((1, 4), (2, 6))),
    one("slice", (5, 6), [0, 3], [99, 3], to=_sliced((0, 5), (3, 3))),
    one("slice", (5,), [7], [9], [1], to=_sliced((7, 9))),
    one("slice", (5, 4), [0, 0], [5, 4], to=lambda t: t),
    one("slice", (5,), [2], [9], manual_normalization=0, to=_sliced((2, 5))),
    one("pad", (2, 3), [1, 2], to=lambda t: F.pad(t, [1, 2])),
    one("pad", (2, 3), (0, 1, 2, 0), 1.5, to=lambda t: F.pad(t, [0, 1, 2, 0], value=1.5)),
    one("pad", (4, 5), [-1, 2, 0, -3], to=lambda t: F.pad(t, [-1, 2, 0, -3])),
    one("pad", (2, 3), [0, -3], to=lambda t: F.pad(t, [0, -3])),
    one("pad", (0, 2), [0, 0, 1, 1], to=lambda t: F.pad(t, [0, 0, 1, 1])),
    one("pad", (2, 3), [0, 0], to=lambda t: t),
    one("pad", (2, 3), [], to=lambda t: t),
    one("select", (3, 4), 2, 1, to=lambda t: t[:, 2]),
    one("select", (3, 4), -1, -2, to=lambda t: t[2]),
]


def _recorded(case: Case, dynamic: bool) -> tuple[GraphBuilder, list[torch.Tensor], Value]:
    builder = GraphBuilder()
    tensors = [_numbered(shape) for shape in case.shapes]
    values = inputs_for(builder, tensors, dynamic)
    return builder, tensors, builder.call(case.op, *values, *case.args, **case.kwargs)


def _numbered(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_view_is_what_torch_gives(case: Case, dynamic: bool) -> None:
    builder, tensors, out = _recorded(case, dynamic)
    (found,) = run(builder, [out], tensors)
    assert torch.equal(found, case.expected(*tensors))
    if not dynamic:
        assert out.tensor.sizes == tuple(found.shape)
    assert out.tensor.weak == (out.tensor.rank == 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_oracle_agrees_with_the_index_map(case: Case) -> None:
    builder, tensors, out = _recorded(case, dynamic=True)
    fusion = concrete(builder, [out], tensors)
    known: dict[Value, Any] = dict(zip(fusion.inputs, tensors, strict=True))
    for node in fusion.nodes:
        call = as_call(node)
        operands = [
            tuple(c.value for c in arg) if isinstance(arg, tuple) else known.get(arg, arg)
            for arg in node.args
        ]
        operands = [arg.value if isinstance(arg, Const) else arg for arg in operands]
        known[node.out] = call.op.oracle(*operands, **call.attrs)
    assert torch.equal(known[fusion.outputs[0].value], case.expected(*tensors))


ALIASED = ("broadcast", "expand", "broadcast_in_dim", "permute", "squeeze", "slice", "select")


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("case", [c for c in CASES if c.op in ALIASED], ids=lambda c: c.name)
def test_alias_is_the_view_in_the_operands_memory(case: Case, transposed: bool) -> None:
    (shape,) = case.shapes
    tensor = _numbered(shape)
    if transposed:
        tensor = _numbered(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
    builder = GraphBuilder()
    (value,) = inputs_for(builder, [tensor], dynamic=False)
    out = builder.call(case.op, value, *case.args, **case.kwargs)
    memory: Memory | None = Memory(tuple(tensor.shape), tensor.stride())
    for node in concrete(builder, [out], [tensor]).nodes:
        form = as_call(node).op.form
        if isinstance(form, View):
            assert form.alias is not None and memory is not None
            memory = form.alias(as_call(node), memory)
    assert memory is not None
    seen = torch.as_strided(tensor, memory.sizes, memory.strides, memory.offset)
    assert torch.equal(seen, case.expected(tensor))


def test_reshape_alias_is_none_where_elements_must_move() -> None:
    builder = GraphBuilder()
    out = builder.call("reshape", add_tensor(builder, (2, 6)), [3, 4])
    call = as_call(builder.nodes[-1])
    assert out.tensor.sizes == (3, 4)
    assert isinstance(call.op.form, View) and call.op.form.alias is not None
    assert call.op.form.alias(call, Memory((2, 6), (6, 1))) == Memory((3, 4), (4, 1))
    assert call.op.form.alias(call, Memory((2, 6), (1, 2))) is None


def test_stride_order_pad_cat_and_gathers_have_no_alias() -> None:
    for name in ("stride_order", "pad", "cat", "index_select", "gather", "take_along_axis"):
        form = OPS[name].form
        assert isinstance(form, View) and form.alias is None


# --- cat -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    ("shapes", "dim"),
    [
        ([(2, 3), (4, 3)], 0),
        ([(2, 3), (2, 1), (2, 2)], -1),
        ([(0, 3), (2, 3), (0, 3)], 0),
        ([(0,), (0,)], 0),
        ([(2, 2, 2), (2, 1, 2)], 1),
    ],
)
def test_cat(shapes: list[tuple[int, ...]], dim: int, dynamic: bool) -> None:
    builder = GraphBuilder()
    tensors = [_numbered(s) + 100 * i for i, s in enumerate(shapes)]
    out = builder.call("cat", inputs_for(builder, tensors, dynamic), dim, manual_padding=0)
    assert torch.equal(run(builder, [out], tensors)[0], torch.cat(tensors, dim))


def test_cat_of_one_is_a_copy() -> None:
    builder = GraphBuilder()
    builder.call("cat", [add_tensor(builder, (2, 3))], -1)
    assert [n.op for n in builder.nodes] == ["set"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bool, torch.int32])
def test_cat_of_padded_tensors_overlays_them(dtype: torch.dtype) -> None:
    builder = GraphBuilder()
    tensors = [
        torch.tensor([1, 0, 1, 0, 0], dtype=dtype),
        torch.tensor([0, 0, 0, 1, 1], dtype=dtype),
    ]
    values = inputs_for(builder, tensors, dynamic=False)
    out = builder.call("cat", values, 0, manual_padding=True)
    (found,) = run(builder, [out], tensors)
    assert torch.equal(found, torch.tensor([1, 0, 1, 1, 1], dtype=dtype))


# --- shapes that are known at run time ---------------------------------------------------------


def _scalar(builder: GraphBuilder, dtype: DataType = DataType.Int) -> Value:
    return builder.add_input(ScalarType(dtype))


def test_scalars_as_sizes() -> None:
    builder = GraphBuilder()
    tensor = add_tensor(builder, (-1, -1))
    rows, columns = _scalar(builder), _scalar(builder, DataType.Float)
    out = builder.call("reshape", tensor, [rows, columns, -1])
    assert [isinstance(s, SymbolicExtent) for s in out.tensor.shape] == [True] * 3
    numbers = _numbered((4, 6))
    (found,) = run(builder, [out], [numbers, 2, 3.0])
    assert torch.equal(found, numbers.reshape(2, 3, 4))


def test_size_of_one_tensor_sizes_another() -> None:
    builder = GraphBuilder()
    like, tensor = add_tensor(builder, (-1, 3)), add_tensor(builder, (1, 3))
    out = builder.call("expand", tensor, builder.call("shape", like))
    assert out.tensor.dims[0].expanded and out.tensor.dims[1] == Dim(3)
    (found,) = run(builder, [out], [_numbered((5, 3)), _numbered((1, 3))])
    assert torch.equal(found, _numbered((1, 3)).expand(5, 3))


@pytest.mark.parametrize(
    ("start", "end"), [(1, 4), (0, 99), (4, 2), (-3, -1), (-99, 2), (9, 12), (3, -9)]
)
def test_slice_bounds_at_run_time_follow_python(start: int, end: int) -> None:
    builder = GraphBuilder()
    tensor = add_tensor(builder, (6,))
    out = builder.call("slice", tensor, [_scalar(builder)], [_scalar(builder)])
    (found,) = run(builder, [out], [_numbered((6,)), start, end])
    assert torch.equal(found, _numbered((6,))[start:end])


def test_pad_widths_and_value_at_run_time() -> None:
    builder = GraphBuilder()
    tensor = add_tensor(builder, (-1,))
    low, high, fill = _scalar(builder), _scalar(builder), _scalar(builder, DataType.Double)
    out = builder.call("pad", tensor, [low, high], fill)
    (found,) = run(builder, [out], [_numbered((3,)), 2, -1, 7.5])
    assert found.tolist() == [7.5, 7.5, 1.0, 2.0]


def test_sizes_of_known_dims_are_constants() -> None:
    builder = GraphBuilder()
    tensor = add_tensor(builder, (2, -1, 1))
    two, many, single = builder.call("shape", tensor)
    assert (two, single) == (Const.of(2), Const.of(1))
    assert isinstance(many, Value) and many.dtype is DataType.Int
    assert builder.call("size", tensor, -3) == Const.of(2)
    assert [n.op for n in builder.nodes] == ["size"]


# --- what recording makes of calls -------------------------------------------------------------


def _ops(name: str, shape: tuple[int, ...], *args: Any) -> list[str]:
    builder = GraphBuilder()
    builder.call(name, add_tensor(builder, shape), *args)
    return [n.op for n in builder.nodes]


@pytest.mark.parametrize(
    ("name", "shape", "args", "ops"),
    [
        ("broadcast", (2, 3), ([False, False],), []),
        ("expand", (2, 3), ([2, 3],), ["set"]),
        ("expand", (2, 3), ([-1, -1],), ["set"]),
        ("broadcast_in_dim", (2, 3), ([2, 3], [0, 1]), ["set"]),
        ("broadcast_in_dim", (2, 1), ([2, 3], [0, 1]), ["expand"]),
        ("broadcast_in_dim", (2,), ([2, 3], [0]), ["broadcast", "expand"]),
        ("broadcast_in_dim", (2,), ([2, 1], [0]), ["broadcast"]),
        ("stride_order", (), ([],), ["set"]),
        ("slice", (2, 3), ([0, 0], [2, 9]), ["set"]),
        ("pad", (2,), ([0, 0],), ["set"]),
    ],
)
def test_recorded_ops(name: str, shape: tuple[int, ...], args: Any, ops: list[str]) -> None:
    assert _ops(name, shape, *args) == ops


def test_broadcast_of_nothing_is_the_tensor_itself() -> None:
    builder = GraphBuilder()
    tensor = add_tensor(builder, (2,))
    assert builder.call("broadcast", tensor, [False]) is tensor


def test_slice_of_known_bounds_is_normalised() -> None:
    builder = GraphBuilder()
    builder.call("slice", add_tensor(builder, (12, 5)), [0, 0], [99, 1])
    node = builder.nodes[-1]
    ones = (Const.of(1), Const.of(1))
    assert node.args[1:] == ((Const.of(0), Const.of(0)), (Const.of(12), Const.of(1)), ones)
    assert node.attr("manual_normalization") is True


def test_reshape_writes_out_its_unknown() -> None:
    builder = GraphBuilder()
    builder.call("reshape", add_tensor(builder, (4, 6)), [3, -1])
    assert builder.nodes[-1].args[1] == (Const.of(3), Const.of(8))
    dynamic = builder.call("reshape", add_tensor(builder, (-1, 6)), [-1])
    assert str(dynamic.tensor.shape[0]) == "6*i1_0"


def test_expanded_dims_are_marked() -> None:
    builder = GraphBuilder()
    out = builder.call("expand", add_tensor(builder, (1, 1, 3)), [4, 1, 3])
    assert out.tensor.dims == (Dim(4, expanded=True), Dim(1), Dim(3))
    assert builder.call("permute", out, [2, 0, 1]).tensor.dims[1].expanded
    cut = builder.call("slice", out, [0, 0, 0], [2, 1, 3]).tensor.dims
    assert cut[0] == Dim(2, expanded=True)
    assert builder.call("slice", out, [0, 0, 0], [1, 1, 3]).tensor.dims[0] == Dim(1)


def test_squeeze_of_an_expanded_dim_must_be_asked_for() -> None:
    builder = GraphBuilder()
    out = builder.call("expand", add_tensor(builder, (1, 3)), [4, 3])
    with pytest.raises(DefinitionError, match="squeeze_expanded=True"):
        builder.call("squeeze", out, [0])
    small = builder.call("squeeze", out, [0], squeeze_expanded=True)
    (found,) = run(builder, [small], [_numbered((1, 3))])
    assert found.tolist() == [1.0, 2.0, 3.0]


def test_squeeze_of_an_unknown_size_fails_at_the_run_that_has_another() -> None:
    builder = GraphBuilder()
    out = builder.call("squeeze", add_tensor(builder, (-1, 3)), [0])
    assert run(builder, [out], [_numbered((1, 3))])[0].shape == (3,)
    with pytest.raises(DefinitionError, match="size 1 in dim 0, got 2"):
        concrete(builder, [out], [_numbered((2, 3))])


# --- errors ------------------------------------------------------------------------------------

SLICE_TEXTS = [
    (([0, 0], [1, 1], [1]), "Slice start_indices and strides don't match!"),
    (([0], [1], [1]), "Number of tensor dimensions does not match slice dimensions!"),
    (([0, 0], [1]), "Slice indexing attribute dimensions don't match!"),
    (
        ([0, -1], [1, 1]),
        "Slice operation start_indices must be greater than or equal to 0.",
    ),
    (
        ([2, -1], [1, 1], [2, 1]),
        "Slice operation end_indices must be greater than or equal to start_indices.",
    ),
    (
        ([0, 0], [1, 1], [1, 2]),
        "nvFuser Limitation: All slice operation strides must be of const size 1.",
    ),
]


@pytest.mark.parametrize(("args", "text"), SLICE_TEXTS, ids=range(len(SLICE_TEXTS)))
def test_slice_error_texts(args: tuple[list[int], ...], text: str) -> None:
    builder = GraphBuilder()
    with pytest.raises(RuntimeError) as caught:
        builder.call("slice", add_tensor(builder, (4, 4)), *args)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("name", "shape", "args", "text"),
    [
        ("broadcast", (2, 3), ([True, False],), "2 times False"),
        ("expand", (2, 3), ([3],), "at least 2 sizes"),
        ("expand", (2, 3), ([2, 4],), "size 3, 1 or -1 in dim 1, got 4"),
        ("expand", (2, 3), ([-1, 2, 3],), "new leading dim 0"),
        ("expand", (1, 3), ([-2, 3],), "0 and more, or -1"),
        ("broadcast_in_dim", (2, 3), ([2, 3, 4], [0]), "2 ascending broadcast_dims"),
        ("broadcast_in_dim", (2, 3), ([2, 3], [1, 1]), "each dim once"),
        ("broadcast_in_dim", (2, 3), ([3, 2], [1, 0]), "ascending"),
        ("broadcast_in_dim", (2,), ([2, 3], [2]), "a dim from -2 to 1"),
        ("broadcast_in_dim", (2,), ([3, 3], [0]), "size 2, 1 or -1 in dim 0"),
        ("reshape", (2, 3), ([4, 2],), "6 elements"),
        ("reshape", (2, 3), ([-1, -1],), "-1 once at most"),
        ("reshape", (2, 3), ([-2, 3],), "sizes of 0 and more"),
        ("reshape", (2, 3), ([-1, 4],), "divide the 6 elements"),
        ("reshape", (0, 3), ([-1, 0],), "could be anything"),
        ("permute", (2, 3), ([0],), "2 dims for a tensor of rank 2"),
        ("permute", (2, 3), ([0, 0],), "each dim once"),
        ("permute", (2, 3), ([0, 2],), "a dim from -2 to 1"),
        ("squeeze", (2, 1), ([0],), "size 1 in dim 0, got 2"),
        ("squeeze", (1, 1), ([0, -2],), "each dim once"),
        ("stride_order", (2, 3), ([0],), "2 dims for a tensor of rank 2"),
        ("stride_order", (2, 3), ([0, -2],), "each dim once"),
        ("size", (2, 3), (2,), "a dim from -2 to 1"),
        ("size", (), (0,), "0-dim"),
        ("pad", (2,), ([1],), "two widths for each padded dim"),
        ("pad", (2,), ([1, 1, 1, 1],), "two widths for each padded dim"),
        ("pad", (2,), ([-2, -1],), "0 and more of the 2 elements"),
        ("pad", (2,), ([1, 1], 2), "must have the same dtype"),
        ("select", (2, 3), (2, 0), "an index from -2 to 1"),
        ("select", (2, 3), (0.5, 0), "an integer index"),
        ("select", (), (0, 0), "0-dim"),
        ("gather", (2,), (0,), None),
        ("permute", (2, 3), ([0.0, 1.0],), None),
        ("reshape", (2, 3), ([2.0, 3],), None),
    ],
)
def test_wrong_arguments_are_refused(
    name: str, shape: tuple[int, ...], args: Any, text: str | None
) -> None:
    builder = GraphBuilder()
    expected = DefinitionError if text else ArgumentError
    with pytest.raises(expected) as caught:
        builder.call(name, add_tensor(builder, shape), *args)
    assert (text or "incompatible function arguments") in str(caught.value)


def test_errors_of_cat() -> None:
    builder = GraphBuilder()
    tensor = add_tensor(builder, (2, 3))
    for others, dim, text in [
        ([add_tensor(builder, (2, 3), DataType.Half)], 0, "tensors of one dtype"),
        ([add_tensor(builder, (3,))], 0, "tensors of one rank"),
        ([add_tensor(builder, (2, 4))], 0, "size 3 in dim 1 of tensor 1"),
        ([tensor], 2, "a dim from -2 to 1"),
    ]:
        with pytest.raises(DefinitionError, match=text):
            builder.call("cat", [tensor, *others], dim)
    with pytest.raises(DefinitionError, match="one tensor and more"):
        builder.call("cat", [])


def test_pad_value_keeps_to_the_tensors_class() -> None:
    builder = GraphBuilder()
    whole = add_tensor(builder, (2,), DataType.Int)
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        builder.call("pad", whole, [1, 1], 2.0)
    builder.call("pad", whole, [1, 1], 2)
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        builder.call("pad", add_tensor(builder, (2,), DataType.Bool), [1, 1], 0)
