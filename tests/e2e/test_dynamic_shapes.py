"""One definition at many sizes: extents of 1 and 0, sizes from scalars and from other tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tests.e2e.checking import Schedule, gpu, round_trip
from tritonfuser import DataType, FusionDefinition
from tritonfuser.errors import DefinitionError
from tritonfuser.frontend.record.inputs import flatten_inputs

D = DataType
SIZES = ((5, 7), (5, 1), (0, 7), (33, 17), (1, 7), (1, 1), (5, 0), (16, 64))


def filled(shape: Sequence[int], device: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(tuple(shape), generator=generator).to(device)


def assert_run(fd: FusionDefinition, inputs: list[Any], wanted: Sequence[torch.Tensor]) -> None:
    """The outputs, here and as scheduled for a GPU; the printed definition gives the same."""
    found = fd.run(inputs)
    inputs = list(flatten_inputs(inputs))
    on_cpu = not any(isinstance(x, torch.Tensor) and x.is_cuda for x in inputs)
    results = [found]
    if on_cpu:
        round_trip(fd, inputs, found)
        scheduled = Schedule(gpu()).run(fd, inputs)
        assert scheduled is not None
        results.append(scheduled)
    for outputs in results:
        for one, other in zip(outputs, wanted, strict=True):
            assert one.shape == other.shape
            torch.testing.assert_close(
                one.cpu(), other.cpu().to(one.dtype), rtol=1e-5, atol=1e-5, equal_nan=True
            )


# --- a definition, and what it means in torch ----------------------------------------------------


def _softmax(fd: FusionDefinition) -> None:
    x = fd.define_tensor(shape=[-1, -1], contiguity=True)
    top = fd.ops.max(x, dims=[1], keepdim=True)
    exps = fd.ops.exp(fd.ops.sub(x, top))
    total = fd.ops.sum(exps, dims=[1], keepdim=True)
    fd.add_output(fd.ops.truediv(exps, total))


def _both_ways(fd: FusionDefinition) -> None:
    x = fd.define_tensor(shape=[-1, -1], contiguity=True)
    fd.add_output(fd.ops.sum(x, dims=[0]))
    fd.add_output(fd.ops.sum(x, dims=[1]))
    fd.add_output(fd.ops.sum(x))


def _turned(fd: FusionDefinition) -> None:
    x = fd.define_tensor(shape=[-1, -1], contiguity=True)
    fd.add_output(fd.ops.relu(fd.ops.permute(x, [1, 0])))
    fd.add_output(fd.ops.add(fd.ops.reshape(x, [-1]), 1.0))


def _resized(fd: FusionDefinition) -> None:
    """Shapes written with another tensor's sizes."""
    x = fd.define_tensor(shape=[-1, -1], contiguity=True)
    row = fd.ops.sum(x, dims=[0])
    fd.add_output(fd.ops.mul(fd.ops.broadcast_in_dim(row, [x.size(0), x.size(1)], [1]), x))
    flat = fd.ops.reshape(x, [fd.ops.mul(x.size(0), x.size(1))])
    fd.add_output(fd.ops.neg(flat))
    fd.add_output(fd.ops.full(x.shape(), 2.0, dtype=D.Float))
    fd.add_output(fd.ops.iota(x.size(1), dtype=D.Int))


def _cut(fd: FusionDefinition) -> None:
    x = fd.define_tensor(shape=[-1, -1], contiguity=True)
    half = fd.ops.slice(x, [0, 0], [2, x.size(1)])
    fd.add_output(fd.ops.cat([half, x], 0))
    fd.add_output(fd.ops.pad(x, [1, 2], 5.0))


def _normed(fd: FusionDefinition) -> None:
    x = fd.define_tensor(shape=[-1, -1], contiguity=True)
    var, mean = fd.ops.var_mean(x, dims=[1], correction=0, keepdim=True)
    fd.add_output(fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5))))


def _normed_torch(x: torch.Tensor) -> list[torch.Tensor]:
    mean = x.mean(1, keepdim=True)
    return [(x - mean) * torch.rsqrt(x.var(1, correction=0, keepdim=True) + 1e-5)]


DEFINITIONS: dict[str, tuple[Callable[[Any], None], Callable[[Any], list[torch.Tensor]]]] = {
    "softmax": (_softmax, lambda x: [torch.softmax(x, 1)]),
    "both ways": (_both_ways, lambda x: [x.sum(0), x.sum(1), x.sum()]),
    "turned": (_turned, lambda x: [x.t().relu(), x.reshape(-1) + 1]),
    "resized": (
        _resized,
        lambda x: [
            x.sum(0) * x,
            -x.reshape(-1),
            torch.full_like(x, 2),
            torch.arange(x.shape[1]),
        ],
    ),
    "cut": (
        _cut,
        lambda x: [torch.cat([x[:2], x]), torch.nn.functional.pad(x, (1, 2), value=5.0)],
    ),
    "normed": (_normed, _normed_torch),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_sizes(name: str, device: str) -> None:
    """The same definition, not another one, at each size in turn."""
    define, meaning = DEFINITIONS[name]
    with FusionDefinition() as fd:
        define(fd)
    for shape in SIZES[:4] if device == "cuda" else SIZES:
        if name == "softmax" and shape[1] == 0:
            continue  # torch has no maximum of nothing
        x = filled(shape, device)
        assert_run(fd, [x], [y.to(device) for y in meaning(x)])


def test_a_dim_of_unknown_size_that_is_one_broadcasts(device: str) -> None:
    with FusionDefinition() as fd:
        a = fd.define_tensor(shape=[-1, -1], contiguity=True)
        b = fd.define_tensor(shape=[-1, -1], contiguity=True)
        fd.add_output(fd.ops.add(a, b))
        fd.add_output(fd.ops.sum(fd.ops.mul(a, b), [1]))
    for left, right in (((4, 5), (4, 5)), ((4, 1), (4, 5)), ((4, 5), (1, 5)), ((1, 5), (4, 1))):
        x, y = filled(left, device), filled(right, device)
        assert_run(fd, [x, y], [x + y, (x * y).sum(1)])
    with pytest.raises(DefinitionError, match="do not broadcast"):
        fd.run([filled((4, 5), device), filled((3, 5), device)])


@pytest.mark.parametrize("dtype", [D.Int, D.Int32, D.Float, D.Double])
def test_sizes_from_scalars(dtype: DataType, device: str) -> None:
    """Numbers of any type are sizes, also when they were computed."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=True)
        n = fd.define_scalar(None, dtype=dtype)
        twice = fd.ops.cast(fd.ops.mul(n, 2), D.Int)
        fd.add_output(fd.ops.reshape(x, [twice, -1]))
        fd.add_output(fd.ops.full([n, 3], 1.0, dtype=D.Float))
        fd.add_output(fd.ops.add(fd.ops.broadcast_in_dim(x, [n, x.size(0)], [1]), 1.0))
        fd.add_output(fd.ops.slice(x, [0], [twice]))
        fd.add_output(fd.ops.mul(x, n))
    kind = float if dtype in (D.Float, D.Double) else int
    for size in (3, 1, 2):
        x = filled((12,), device)
        wanted = [
            x.reshape(2 * size, -1),
            torch.ones(size, 3),
            x.expand(size, 12) + 1,
            x[: 2 * size],
            x * size,
        ]
        assert_run(fd, [x, kind(size)], wanted)


def test_bounds_from_scalars(device: str) -> None:
    """Starts and ends that cut off nothing, something and all."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        start, end = fd.define_vector(2)
        part = fd.ops.slice(x, [start, 0], [end, x.size(1)])
        fd.add_output(fd.ops.add(part, 1.0))
        fd.add_output(fd.ops.sum(part, [0]))
    x = filled((6, 5), device)
    for start, end in ((0, 6), (2, 4), (3, 3), (1, 99), (5, 6)):
        part = x[start:end]
        assert_run(fd, [x, [start, end]], [part + 1, part.sum(0)])


def test_widths_from_scalars(device: str) -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=True)
        before = fd.ops.cast(fd.ops.mul(2.5, fd.define_scalar(None, dtype=D.Int)), D.Int)
        fd.add_output(fd.ops.pad(x, [before, 1], -1.0))
    x = filled((4,), device)
    for given in (0, 1, 3):
        wanted = torch.nn.functional.pad(x, (int(2.5 * given), 1), value=-1.0)
        assert_run(fd, [x, given], [wanted])


def test_a_width_is_a_power_of_a_size(device: str) -> None:
    """Where both vary, whether the exponent is one with a shorter expression is asked of none."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=True)
        exponent = fd.define_scalar(None, dtype=D.Int)
        fd.add_output(fd.ops.pad(x, [0, fd.ops.pow(x.size(0), exponent)]))
    for rows, given in ((2, 1), (3, 2), (4, 0), (5, 1), (2, 3), (3, 2)):
        x = filled((rows, 2), device)
        assert_run(fd, [x, given], [torch.nn.functional.pad(x, (0, rows**given))])


def test_size_and_shape_are_numbers_where_known(device: str) -> None:
    """Of static dims constants, of others what the run finds."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, 3], contiguity=True)
        static, dynamic = x.size(1), x.size(-2)
        assert not static.is_symbolic() and dynamic.is_symbolic()
        assert [s.is_symbolic() for s in fd.ops.shape(x)] == [True, False]
        fd.add_output(fd.ops.mul(x, fd.ops.add(fd.ops.size(x, 0), static)))
    for rows in (4, 1):
        x = filled((rows, 3), device)
        assert_run(fd, [x], [x * (rows + 3)])
