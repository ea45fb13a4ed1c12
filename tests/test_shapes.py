"""Memory of views against torch.as_strided, strides, guards, and when indices need 64 bits."""

from __future__ import annotations

from math import prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tritonfuser.dtypes import DataType
from tritonfuser.ir import Dim
from tritonfuser.shapes.broadcasting import broadcast_dims
from tritonfuser.shapes.index_map import Guard
from tritonfuser.shapes.memory import Memory, contiguous_strides, index_dtype, strides_for_order
from tritonfuser.shapes.view_maps import (
    broadcast_alias,
    expand_alias,
    permute_alias,
    reshape_alias,
    slice_alias,
    slice_bounds,
    squeeze_alias,
)
from tritonfuser.symbolic.index_expr import Axis, constant, digit
from tritonfuser.symbolic.loaded_index import LoadedIndex

SIZES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


@st.composite
def strided(draw: st.DrawFn) -> torch.Tensor:
    """A tensor that is permuted, cut and stretched: any strides a view can have."""
    sizes = draw(SIZES)
    tensor = torch.arange(prod(sizes), dtype=torch.int64).reshape(sizes)
    tensor = tensor.permute(tuple(draw(st.permutations(range(len(sizes))))))
    for dim, size in enumerate(tensor.shape):
        start = draw(st.integers(0, size - 1))
        tensor = tensor.narrow(dim, start, size - start)
    stretch = [draw(st.integers(1, 3)) if n == 1 else n for n in tensor.shape]
    return tensor.expand(stretch)


def _memory(tensor: torch.Tensor) -> Memory:
    return Memory(tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def _seen(tensor: torch.Tensor, memory: Memory) -> torch.Tensor:
    return torch.as_strided(tensor, memory.sizes, memory.strides, memory.offset)


def _factors(numel: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of ``numel`` elements."""

    def shape(cuts: list[int]) -> tuple[int, ...]:
        left, sizes = numel, []
        for cut in cuts:
            size = cut if left % cut == 0 else 1
            sizes.append(size)
            left //= size
        return (*sizes, left)

    return st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=4).map(shape)


@given(strided(), st.data())
def test_reshape_is_a_view_where_torch_makes_one(tensor: torch.Tensor, data: st.DataObject) -> None:
    shape = data.draw(_factors(tensor.numel()))
    found = reshape_alias(_memory(tensor), shape)
    try:
        expected = tensor.view(shape)
    except RuntimeError:
        assert found is None
        return
    assert found is not None and found.sizes == shape
    assert torch.equal(_seen(tensor, found), expected)


@given(strided(), st.data())
def test_strided_views_lie_where_torch_has_them(tensor: torch.Tensor, data: st.DataObject) -> None:
    rank, memory = tensor.dim(), _memory(tensor)
    dims = tuple(data.draw(st.permutations(range(rank))))
    assert permute_alias(memory, dims) == _memory(tensor.permute(dims))
    starts = tuple(data.draw(st.integers(0, n)) for n in tensor.shape)
    sizes = tuple(n - s for n, s in zip(tensor.shape, starts, strict=True))
    cut = tensor[tuple(slice(s, None) for s in starts)] if rank else tensor
    assert torch.equal(_seen(tensor, slice_alias(memory, starts, sizes)), cut)
    ones = [d for d in range(rank) if tensor.shape[d] == 1]
    assert squeeze_alias(memory, ones) == _memory(tensor.squeeze())
    wider = (2, *(3 if n == 1 else n for n in tensor.shape))
    stretched = _seen(tensor, expand_alias(memory, wider))
    assert torch.equal(stretched, tensor.expand(wider))


@given(strided(), st.lists(st.booleans(), max_size=3))
def test_new_dims_have_torchs_strides(tensor: torch.Tensor, new: list[bool]) -> None:
    flags = [*new, *[False] * (tensor.dim() - new.count(False)), True]
    if flags.count(False) != tensor.dim():
        return
    expected = tensor
    for place in reversed(range(len(flags))):
        if flags[place]:
            expected = expected.unsqueeze(place - flags[:place].count(True))
    assert broadcast_alias(_memory(tensor), flags) == _memory(expected)


@given(st.lists(st.integers(0, 4), max_size=4).map(tuple))
def test_contiguous_strides(sizes: tuple[int, ...]) -> None:
    assert contiguous_strides(sizes) == torch.empty(sizes).stride()


def test_strides_for_a_memory_order() -> None:
    assert strides_for_order((2, 3, 4), (2, 1, 0)) == (12, 4, 1)
    assert strides_for_order((2, 3, 4), (0, 2, 1)) == (1, 8, 2)


@given(st.integers(0, 6), st.integers(-9, 9), st.integers(-9, 9))
def test_slice_bounds_are_pythons(size: int, start: int, end: int) -> None:
    low, high = slice_bounds(size, start, end)
    assert 0 <= low <= high <= size
    assert list(range(size))[low:high] == list(range(size))[start:end]


def test_guards_that_always_or_never_hold() -> None:
    x = digit(Axis("x", 10))
    assert Guard(x, 0, 10).always and not Guard(x, 0, 9).always
    assert Guard(x, 10, 20).never and not Guard(x, 9, 20).never
    assert Guard(x - 3, -3, 7).always and Guard(x + 20, 0, 20).never
    unknown = Guard(digit(LoadedIndex("k")), 0, 10**9)
    assert not unknown.always and not unknown.never
    assert Guard(constant(2), 2, 3).always


def test_broadcast_dims() -> None:
    stretched = Dim(3, expanded=True)
    assert broadcast_dims([(Dim(3),), (Dim(2), Dim(1))]) == (Dim(2), Dim(3))
    assert broadcast_dims([(stretched,), (Dim(1),)]) == (stretched,)
    assert broadcast_dims([(stretched,), (Dim(3),)]) == (Dim(3),)
    assert broadcast_dims([(Dim(3),), (Dim(2),)]) == (0, 1)
    assert broadcast_dims([(), ()]) == ()


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (Memory((2**31 - 1,), (1,)), DataType.Int32),
        (Memory((2**31,), (1,)), DataType.Int),
        (Memory((2, 2), (2**31, 1)), DataType.Int),
        (Memory((2**40, 2), (0, 1)), DataType.Int32),
        (Memory((2**40, 0), (1, 1)), DataType.Int32),
        (Memory((4,), (1,), 2**31), DataType.Int),
    ],
)
def test_index_width(memory: Memory, expected: DataType) -> None:
    assert index_dtype([Memory((1,), (1,)), memory]) is expected
