"""The inputs of repro scripts: drawn of every dtype, sharing memory where given ones do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tritonfuser import DataType, FusionDefinition


def drawn(fd: FusionDefinition, inputs: list[Any]) -> list[torch.Tensor]:
    """The inputs of the script, which is run."""
    scope: dict[str, Any] = {}
    exec(fd.repro_script_for(inputs), scope)
    found: list[torch.Tensor] = scope["inputs"]
    for made, given in zip(found, inputs, strict=True):
        assert (made.shape, made.stride(), made.dtype) == (given.shape, given.stride(), given.dtype)
    return found


def updating(count: int, dtype: torch.dtype = torch.float32) -> FusionDefinition:
    """Adds each input to the one before it."""
    with FusionDefinition() as fd:
        given = [
            fd.define_tensor(shape=[-1, -1], contiguity=False, dtype=dtype) for _ in range(count)
        ]
        for target, other in pairwise(given):
            fd.add_output(fd.ops.cast(fd.ops.add(target, other), target.dtype()), target)
    return fd


def places(inputs: list[torch.Tensor]) -> list[int]:
    """Bytes from the first of all elements."""
    starts = [x.data_ptr() for x in inputs]
    return [start - min(starts) for start in starts]


STRIDES = [((1, 5), (9, 1)), ((4, 1, 3), (3, 77, 1)), ((1, 1), (2, 5)), ((1, 7, 0), (8, 1, 1))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float4_e2m1fn_x2])
@pytest.mark.parametrize(("shape", "strides"), STRIDES)
def test_strides_of_dims_of_one_position(shape: Any, strides: Any, dtype: torch.dtype) -> None:
    """torch takes them for contiguous, and views of them show these strides."""
    memory = torch.zeros(40 * dtype.itemsize, dtype=torch.uint8).view(dtype)
    given = memory.as_strided(shape, strides)
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.broadcast(fd.from_pytorch(given), [True, *[False] * len(shape)]))
    drawn(fd, [given])


def test_strides_of_indices_that_are_written_out() -> None:
    x, index = torch.ones(5, 3), torch.tensor([4, 0]).as_strided((1, 2), (7, 1))
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.gather(fd.from_pytorch(x), fd.from_pytorch(index), 0))
    assert torch.equal(drawn(fd, [x, index])[1], index)


WINDOWS = {
    "the same": lambda m: [m[:4, :4], m[:4, :4]],
    "later first": lambda m: [m[2:6, 1:5], m[:4, :4]],
    "transposed": lambda m: [m[:4, :4], m[:4, :4].t(), m[3:7, 3:7]],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.complex64])
@pytest.mark.parametrize("name", WINDOWS)
def test_inputs_that_share_memory(name: str, dtype: torch.dtype) -> None:
    given = WINDOWS[name](torch.ones(8, 8, dtype=dtype))
    assert places(drawn(updating(len(given), dtype), given)) == places(given)


def test_two_memories_and_one_that_is_not_shared() -> None:
    one, other = torch.ones(8, 8), torch.ones(8, 8)
    given = [other[:4, :4], one[:4, :4], torch.ones(4, 4), one[1:5, :4], other[:4, 2:6]]
    made = drawn(updating(5), given)
    assert places([made[0], made[4]]) == places([given[0], given[4]])
    assert places([made[1], made[3]]) == places([given[1], given[3]])
    storages = [x.untyped_storage().data_ptr() for x in made]
    assert len(set(storages)) == 3


@pytest.mark.parametrize("dtype", [torch.float8_e8m0fnu, torch.float4_e2m1fn_x2])
@pytest.mark.parametrize("shape", [(), (3,), (0,), (4, 2)])
def test_dtypes_that_torch_draws_no_numbers_of(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    given = torch.zeros(shape, dtype=torch.uint8).view(dtype)
    for x in (given, given.permute(tuple(reversed(range(given.ndim))))):
        with FusionDefinition() as fd:
            fd.add_output(fd.from_pytorch(x))
            fd.add_output(fd.ops.full([2], 1.0, DataType.Float))
        drawn(fd, [x])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
@pytest.mark.parametrize("start", [0, 1, 3, 4, 9])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[:1].expand(3, 4)])
def test_tensors_that_are_not_aligned(view: Any, start: int, dtype: torch.dtype) -> None:
    """Vectors of a kernel, and so its text, depend on it."""
    given = view(torch.ones(30, dtype=dtype)[start : start + 12].view(3, 4))
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.set(fd.from_pytorch(given)))
    (made,) = drawn(fd, [given])
    assert made.data_ptr() % 16 == given.data_ptr() % 16


def test_shared_memory_and_indices_that_are_not_aligned() -> None:
    memory, indices = torch.ones(65)[1:].view(8, 8), torch.tensor([0, 4, 0, 2])[1:]
    given = [memory[:4, :4], memory[1:5, 1:5]]
    made = drawn(updating(2), given)
    assert places(made) == places(given)
    assert [x.data_ptr() % 16 for x in made] == [x.data_ptr() % 16 for x in given]
    with FusionDefinition() as fd:
        x, i = fd.from_pytorch(memory), fd.from_pytorch(indices)
        fd.add_output(fd.ops.index_select(x, i, 0))
    made = drawn(fd, [memory, indices])
    assert torch.equal(made[1], indices)
    assert made[1].data_ptr() % 16 == 8


def test_a_fake_tensor_that_is_not_aligned() -> None:
    with FakeTensorMode():
        given = torch.ones(13)[1:]
        with FusionDefinition() as fd:
            fd.add_output(fd.ops.neg(fd.from_pytorch(given)))
        assert "torch.randn(13," in fd.repro_script_for([given])


def test_conjugate_and_negative_bits() -> None:
    z = torch.ones(6, 2, dtype=torch.complex64)
    given = [z.conj(), z.conj().imag, torch.ones(3, dtype=torch.complex128).conj()]
    given.append(torch._neg_view(torch.ones(4)))
    with FusionDefinition() as fd:
        for x in given:
            fd.add_output(fd.ops.neg(fd.from_pytorch(x)))
    made = drawn(fd, given)
    assert [x.is_conj() for x in made] == [True, False, True, False]
    assert [x.is_neg() for x in made] == [False, True, False, True]
