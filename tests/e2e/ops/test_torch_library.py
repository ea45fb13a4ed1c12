"""Ops that torch runs: sorts, rows added up at indices, products of groups and scaled operands."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.e2e.ops.library_calls import EIGHT, D, assert_near, definition, drawn, run
from tritonfuser.errors import DefinitionError, IndexRangeError

# --- sorting -------------------------------------------------------------------------------------

SHAPES = [(4, 9), (9,), (3, 1, 5), (2, 0, 4)]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_topk(shape: tuple[int, ...], largest: bool, device: str) -> None:
    x = drawn(*shape, device=device)
    for dim in range(-1, len(shape)):
        k = min(3, x.shape[dim])
        found = run(lambda fd, x, d=dim, k=k: fd.ops.topk(x, k, d, largest, True), [x])
        wanted = x.topk(k, dim, largest, True)
        assert torch.equal(found[0], wanted.values)
        assert torch.equal(found[1], wanted.indices)


def test_topk_of_a_size_known_at_run_time(device: str) -> None:
    """The size is part of the signature; kernels around it know it."""
    x = drawn(4, 9, device=device)

    def record(fd: Any, x: Any, k: Any) -> Any:
        values, places = fd.ops.topk(fd.ops.mul(x, 2.0), k, 1, sorted=True)
        return fd.ops.sum(values, [1]), places, fd.ops.gather(x, places, 1)

    fd = definition(record, [x, 1])
    for k in (1, 4, 9, 4):
        total, places, picked = fd.run([x, k])
        values, indices = x.topk(k, 1, sorted=True)
        assert_near(total, values.sum(1) * 2)
        assert torch.equal(places, indices)
        assert torch.equal(picked, values)
    with pytest.raises(DefinitionError, match="topk: expected a k from 0 to 9"):
        fd.run([x, 10])


def test_topk_of_a_0_dim_tensor(device: str) -> None:
    x = torch.tensor(3.0, device=device)
    values, places = run(lambda fd, x: fd.ops.topk(fd.ops.mul(x, 1.0), 1, 0), [x])
    assert torch.equal(values, x)
    assert torch.equal(places.cpu(), torch.tensor(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_argsort(dtype: torch.dtype, device: str) -> None:
    x = (drawn(5, 33) * 2).to(dtype).to(device)
    for dim in (0, 1, -1):
        for down in (False, True):
            (found,) = run(lambda fd, x, d=dim, w=down: fd.ops.argsort(x, d, w, True), [x])
            assert torch.equal(found, torch.argsort(x, dim=dim, descending=down, stable=True))
    (plain,) = run(lambda fd, x: fd.ops.argsort(x, 1), [x])
    assert torch.equal(x.gather(1, plain), x.sort(1).values)


def test_argsort_of_a_0_dim_tensor(device: str) -> None:
    x = torch.tensor(3.0, device=device)
    (found,) = run(lambda fd, x: fd.ops.argsort(fd.ops.mul(x, 1.0), 0), [x])
    assert torch.equal(found.cpu(), torch.tensor(0))


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32]


@pytest.mark.parametrize("index_dtype", [torch.int64, torch.int32, torch.float32], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_are_added_where_an_index_says(
    dtype: torch.dtype, index_dtype: torch.dtype, device: str
) -> None:
    """Many into one: a gradient of an embedding. 16-bit sums are rounded once."""
    acc, value = ((drawn(4, 5, device=device) * 3).to(dtype), drawn(64, 5, device=device))
    index = torch.tensor([2, 0] * 32, device=device)
    inputs = [acc, index.to(index_dtype), (value * 3).to(dtype)]
    record = lambda fd, *xs: fd.ops.neg(fd.ops.index_put_accumulate(*xs))  # noqa: E731
    (found,) = run(record, inputs)
    wide = acc.double().index_put((index,), inputs[2].double(), accumulate=True)
    assert_near(found, -wide.to(dtype))


def test_layouts_and_sizes_of_what_is_added(device: str) -> None:
    """Transposed operands, none, one dim, three; one definition for all sizes."""
    acc, value = drawn(5, 4, device=device).t(), drawn(5, 3, device=device).t()
    where = index_of(3).to(device)
    fd = definition(lambda fd, *xs: fd.ops.index_put_accumulate(*xs), [acc, where, value])
    for rows, count in ((4, 3), (9, 1), (4, 0), (1, 7)):
        inputs = [drawn(5, rows, device=device).t(), index_of(count).to(device) % rows]
        inputs.append(drawn(5, count, device=device).t())
        (found,) = fd.run(inputs)
        assert_near(found, inputs[0].index_put((inputs[1],), inputs[2], accumulate=True), 10)
        assert found.is_contiguous()
    for shape in ((6,), (6, 2, 3)):
        x, y = drawn(*shape, device=device), drawn(3, *shape[1:], device=device)
        where = index_of(3).to(device)
        (found,) = run(lambda fd, *xs: fd.ops.index_put_accumulate(*xs), [x, where, y])
        assert_near(found, x.index_put((where,), y, accumulate=True), 10)


def index_of(count: int) -> torch.Tensor:
    return torch.arange(count) // 2


def test_what_cannot_be_added_is_refused() -> None:
    x, i = drawn(4, 5), index_of(3)
    for inputs, text in (
        ([x, i, drawn(2, 5)], "a value of 3 in dim 0, got 2"),
        ([x, i, drawn(3, 4)], "a value of 5 in dim 1, got 4"),
        ([x, i, drawn(3)], "a value of rank 2 as acc's, got 1"),
        ([x, i, drawn(3, 5).double()], "a value of DataType.Float, as acc"),
        ([x, i[:, None], drawn(3, 5)], "an acc with dims and an index of one, got 2 and 2"),
        ([x > 0, i, drawn(3, 5) > 0], "numbers that torch adds"),
        ([x, i > 0, drawn(3, 5)], "an Int or Int32 tensor for 'index'"),
    ):
        with pytest.raises(DefinitionError, match=f"index_put_accumulate: expected {text}"):
            fd = definition(lambda fd, *xs: fd.ops.index_put_accumulate(*xs), inputs)
            fd.run(inputs)
    with pytest.raises(IndexError, match="index_put_accumulate: index 4 is out of range"):
        run(lambda fd, *xs: fd.ops.index_put_accumulate(*xs), [x, i + 3, drawn(3, 5)])


def test_sorting_is_refused() -> None:
    x, z = drawn(4, 5), torch.zeros(3, dtype=torch.complex64)
    with pytest.raises(DefinitionError, match="a k from 0 to 5"):
        definition(lambda fd: fd.ops.topk(fd.define_tensor([4, 5]), 6), [])
    with pytest.raises(DefinitionError, match="a dim from -2 to 1"):
        definition(lambda fd, x: fd.ops.argsort(x, 2), [x])
    for name, more in (("topk", (1,)), ("argsort", (0,))):
        with pytest.raises(DefinitionError, match=f"{name}: complex numbers"):
            definition(lambda fd, z, n=name, m=more: getattr(fd.ops, n)(z, *m), [z])


# --- products ------------------------------------------------------------------------------------

OFFSETS = [2, 2, 7]
GROUPED = {
    "rows": ((7, 16), (3, 16, 8)),
    "columns": ((3, 8, 16), (16, 7)),
    "inner": ((8, 7), (7, 16)),
}


def by_group(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The products in float64."""
    a, b, start, found = a.double().cpu(), b.double().cpu(), 0, []
    for group, end in enumerate(OFFSETS):
        left = a[:, start:end] if a.dim() == b.dim() else a[start:end] if a.dim() == 2 else a[group]
        right = (
            b[start:end] if a.dim() == b.dim() else b[:, start:end] if b.dim() == 2 else b[group]
        )
        found.append(left @ right)
        start = end
    if a.dim() == b.dim():
        return torch.stack(found)
    return torch.cat(found, 0 if a.dim() == 2 else 1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("kind", GROUPED)
def test_grouped_mm(kind: str, dtype: torch.dtype, device: str) -> None:
    a, b = (drawn(*shape, dtype=dtype, device=device) for shape in GROUPED[kind])
    offsets = torch.tensor(OFFSETS, dtype=torch.int32, device=device)
    (found,) = run(lambda fd, a, b, o: fd.ops.grouped_mm(a, b, o), [a, b, offsets])
    assert found.dtype is dtype
    assert_near(found, by_group(a, b))


@pytest.mark.parametrize("wrong", [[7, 7, 2**30], [-1, 7, 7], [7, 4, 7]])
@pytest.mark.parametrize("kind", GROUPED)
def test_groups_end_in_order_and_inside(kind: str, wrong: list[int]) -> None:
    """A slice would take any: a negative end from the back, one that is too large as the last."""
    a, b = (drawn(*shape, device="cpu") for shape in GROUPED[kind])
    offsets = torch.tensor(wrong, dtype=torch.int32)
    with pytest.raises(IndexRangeError, match=r"grouped_mm: a group from .* is out of range") as e:
        run(lambda fd, a, b, o: fd.ops.grouped_mm(a, b, o), [a, b, offsets])
    assert "test_torch_library.py" in str(e.value)


def test_grouped_mm_of_aligned_groups(device: str) -> None:
    """What torch's own kernel takes."""
    a = drawn(64, 32, dtype=torch.bfloat16, device=device)
    b = drawn(2, 16, 32, dtype=torch.bfloat16, device=device).transpose(1, 2)
    offsets = torch.tensor([16, 64], dtype=torch.int32, device=device)
    (found,) = run(lambda fd, a, b, o: fd.ops.grouped_mm(a, b, o), [a, b, offsets])
    wanted = torch.cat([a[:16].float() @ b[0].float(), a[16:].float() @ b[1].float()])
    assert_near(found, wanted)


def test_scaled_mm(device: str) -> None:
    a = drawn(32, 64, device=device).to(EIGHT)
    b = drawn(48, 64, device=device, seed=1).to(EIGHT).t()
    one, two = torch.tensor(0.5, device=device), torch.tensor(2.0, device=device)
    rows = drawn(32, 1, device=device).abs() + 0.1
    columns = drawn(1, 48, device=device).abs() + 0.1
    for scales in ((one, two), (rows, columns)):
        found = run(lambda fd, *xs: fd.ops.scaled_mm(*xs)[0], [a, b, *scales])
        assert found[0].dtype is torch.bfloat16
        assert_near(found[0], (a.double() * scales[0]) @ (b.double() * scales[1]), 2)


def test_scaled_mm_with_a_bias(device: str) -> None:
    a, b = drawn(8, 16, device=device).to(EIGHT), drawn(16, 4, device=device).to(EIGHT)
    scales = [torch.tensor(0.5, device=device), drawn(1, 4, device=device)]
    alpha, beta = torch.tensor([2.0], device=device), torch.tensor(0.5, device=device)
    bias = drawn(4, device=device, dtype=torch.bfloat16)

    def record(fd: Any, a: Any, b: Any, s: Any, t: Any, p: Any, bias: Any, q: Any) -> Any:
        out, blocks, gamma = fd.ops.scaled_mm(a, b, s, t, p, bias, q, D.Float)
        assert blocks is None
        assert gamma is None
        return out

    (found,) = run(record, [a, b, *scales, alpha, bias, beta])
    wanted = 2 * (a.float() * scales[0]) @ (b.float() * scales[1]) + 0.5 * bias.float()
    assert found.dtype is torch.float32
    assert_near(found, wanted)


def test_scaled_grouped_mm(device: str) -> None:
    """Rows and columns of groups with a scale each; groups of the inner extent with their own."""
    offsets = torch.tensor([16, 64], dtype=torch.int32, device=device)
    a = drawn(64, 32, device=device).to(EIGHT)
    b = drawn(2, 16, 32, device=device, seed=1).to(EIGHT).transpose(1, 2)
    scales = [drawn(64, 1, device=device).abs(), drawn(2, 1, 16, device=device).abs()]
    inputs = [a, b, offsets, *scales]
    (found,) = run(lambda fd, *xs: fd.ops.grouped_mm(*xs)[0], inputs)
    left, right = a.float() * scales[0], b.float() * scales[1]
    assert_near(found, torch.cat([left[:16] @ right[0], left[16:] @ right[1]]), 2)

    c = drawn(8, 64, device=device).to(EIGHT)
    scales = [drawn(2, 8, 1, device=device), drawn(2, 1, 32, device=device)]
    inputs = [c, a, offsets, *scales]
    (found,) = run(lambda fd, *xs: fd.ops.grouped_mm(*xs, dtype=D.Float)[0], inputs)
    parts = ((0, 16), (16, 64))
    wanted = [
        (c[:, i:j].float() * scales[0][g]) @ (a[i:j].float() * scales[1][g])
        for g, (i, j) in enumerate(parts)
    ]
    assert_near(found, torch.stack(wanted), 10)


def test_products_that_do_not_fit() -> None:
    a, b = drawn(4, 8), drawn(3, 9, 5)
    offsets = torch.tensor([1, 2, 4], dtype=torch.int32)
    with pytest.raises(DefinitionError, match="grouped_mm: the operands' inner extents differ"):
        run(lambda fd, *xs: fd.ops.grouped_mm(*xs), [a, b, offsets])
    with pytest.raises(DefinitionError, match="scale1 and scale2, or neither"):
        definition(lambda fd, a, b, o: fd.ops.grouped_mm(a, b, o, a), [a, drawn(3, 8, 5), offsets])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"output_block_scale_size": 16}, "Float4_e2m1fn or Float8_e4m3fn as dtype"),
        (
            {"output_block_scale_size": 16, "dtype": D.Float8_e4m3fn},
            "output_block_scale_size=32 for DataType.Float8_e4m3fn, got 16",
        ),
        (
            {"output_block_scale_size": 16, "dtype": D.Float4_e2m1fn},
            "output_block_scale_dtype=DataType.Float8_e4m3fn",
        ),
        ({"output_gamma": True}, "an output_block_scale_size beside output_gamma"),
    ],
)
def test_quantized_results_that_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(DefinitionError, match=f"scaled_mm: expected .*{text}"):
        definition(
            lambda fd, a, b: fd.ops.scaled_mm(a, b, a, b, **options)[0], [drawn(4, 8), drawn(8, 64)]
        )
