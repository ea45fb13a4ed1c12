"""Each view, pick and join: of an input, of what was computed, and with ops behind it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

from tests.e2e.checking import Schedule, gpu
from tests.e2e.ops import calls as many
from tests.e2e.ops.samples import CALLS, Call, misaligned, numbers, on_devices, strided, transposed
from tests.ops.pointwise_harness import ALL_DTYPES
from tritonfuser import DataType, FusionDefinition
from tritonfuser.ops.forms import Factory, Random
from tritonfuser.ops.registry import OPS

D = DataType
VIEWS = [n for n in CALLS if not isinstance(OPS[n].form, Factory | Random)]
MADE = [n for n in CALLS if isinstance(OPS[n].form, Factory | Random)]
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "misaligned": misaligned,
    "strided": strided,
    "transposed": transposed,
}


def _computed(fd: Any, x: Any) -> Any:
    """The operand as a kernel makes it; indices stay what they are."""
    return x if x.dtype() in (D.Int, D.Int32) else fd.ops.relu(x)


def _with_layouts(calls: list[Call]) -> list[Call]:
    """The calls, and the first one on a matrix again in each layout."""
    found = list(calls)
    for call in calls:
        if call.args and isinstance(call.args[0], torch.Tensor) and call.args[0].dim() == 2:
            for what, moved in LAYOUTS.items():
                args = (moved(call.args[0]), *call.args[1:])
                found.append(Call(f"{call.what}, {what}", args, call.kwargs))
            break
    return found


def _relu(calls: list[Call]) -> list[Call]:
    def of(arg: Any) -> Any:
        if isinstance(arg, list):
            return [of(item) for item in arg]
        if not isinstance(arg, torch.Tensor) or arg.dtype in (
            torch.bool,
            torch.int32,
            torch.int64,
        ):
            return arg
        return torch.relu(arg.float()).to(arg.dtype) if arg.itemsize == 1 else torch.relu(arg)

    return [Call(c.what, tuple(of(a) for a in c.args), c.kwargs) for c in calls]


@pytest.mark.covering(apart=True, times=2)
@pytest.mark.parametrize(
    ("name", "dtype", "device"), on_devices(product(VIEWS, ALL_DTYPES), (D.Half, D.Bool))
)
def test_view(name: str, dtype: DataType, device: str) -> None:
    calls = _with_layouts(CALLS[name](dtype, device))
    if not calls:
        pytest.skip(f"{name} does not take {dtype}")
    of_inputs = many.record(name, calls)
    wanted = many.reference(name, calls, double=False)
    many.assert_close(many.run(of_inputs), wanted, of_inputs)
    of_results = many.record(name, calls, after=_computed)
    wanted = many.reference(name, _relu(calls), double=False)
    many.assert_close(many.run(of_results), wanted, of_results, signs=False)
    if device == "cpu":
        found = Schedule(gpu()).run(of_results.fd, of_results.inputs)
        assert found is not None
        many.assert_close(found, wanted, of_results, signs=False)


@pytest.mark.parametrize(
    ("name", "dtype", "device"), on_devices(product(MADE, ALL_DTYPES), (D.Double, D.Half, D.Int))
)
def test_made_of_nothing(name: str, dtype: DataType, device: str) -> None:
    calls = CALLS[name](dtype, device)
    if not calls:
        pytest.skip(f"{name} does not make {dtype}")
    recorded = many.record(name, calls)
    found = [x.cpu() for x in recorded.fd.run([], device=device)]
    many.assert_close(found, many.reference(name, calls, double=False), recorded, times=8)


def test_a_count_read_at_an_index_that_a_reduction_computes(device: str) -> None:
    x = torch.tensor([3, 4], device=device)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        index = fd.ops.broadcast(fd.ops.max(t, [0]), [True])
        fd.add_output(fd.ops.gather(fd.ops.iota(16, 2, -3), index, 0))
        fd.add_output(fd.ops.sub(t, index))
    assert [y.tolist() for y in fd.run([x])] == [[-10], [-1, 0]]


def test_a_pad_that_takes_back_what_another_added(device: str) -> None:
    """What is left of a condition may hold everywhere."""
    x, y = numbers((16, 16), D.Float, device), numbers((16, 16), D.Float, device)
    with FusionDefinition() as fd:
        a, b = fd.from_pytorch(x), fd.from_pytorch(transposed(y))
        inner = fd.ops.pad(fd.ops.maximum(a, b), [0, -1, 1, -1])
        fd.add_output(fd.ops.reshape(fd.ops.pad(inner, [1, 0, -1, 1]), [256]))
    pad = torch.nn.functional.pad
    wanted = pad(pad(torch.maximum(x, y), (0, -1, 1, -1)), (1, 0, -1, 1))
    assert torch.equal(fd.run([x, transposed(y)])[0], wanted.reshape(256))


def test_an_index_that_a_reduction_computes(device: str) -> None:
    """A condition on it is a block of one, which wants a block of addresses."""
    x = torch.tensor([5], dtype=torch.int32, device=device)
    with FusionDefinition() as fd:
        t = fd.from_pytorch(x)
        total = fd.ops.sum(fd.ops.pad(t, [2, 1]), [0])
        index = fd.ops.remainder(fd.ops.broadcast(total, [True]), 2)
        padded = fd.ops.pad(fd.ops.cumsum(t, 0), [1, 0])
        fd.add_output(fd.ops.index_select(padded, index, 0))
        fd.add_output(fd.ops.signbit(total))
    found = fd.run([x])
    assert found[0].tolist() == [5] and not found[1].item()


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 0, 2], [0, 2, 1]])
def test_stride_order_is_the_memory_order(order: list[int], device: str) -> None:
    """Of an input, of what was computed, behind a reduction and behind a broadcast."""
    x = numbers((3, 4, 5), D.Float, device)
    calls = [Call("input", (x, order))]
    recorded = many.record("stride_order", calls)
    (found,) = recorded.fd.run([x])
    sizes = sorted(range(3), key=lambda d: order[d])
    strides = [0, 0, 0]
    step = 1
    for dim in sizes:
        strides[dim], step = step, step * x.shape[dim]
    assert found.stride() == tuple(strides)
    assert torch.equal(found, x)
    many.run(recorded)
