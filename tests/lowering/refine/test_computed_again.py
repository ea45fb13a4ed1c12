"""What a kernel has stored is loaded by later ones that would load more to compute it again."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import lowered, planned
from tritonfuser import DataType
from tritonfuser.devices import known
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.refine import search
from tritonfuser.lowering.refine.computed_again import computed_again
from tritonfuser.lowering.refine.kernel_times import TimedKernels

H200 = known("sm_90")


def gated(fd, x, y):
    """WaveNet's activation: the sum is returned, and its halves are multiplied."""
    batch, channels, width = x.shape()
    total = fd.ops.cast(fd.ops.add(x, y), DataType.BFloat16)
    half = [batch, channels // 2, width]
    first = fd.ops.slice(total, [0, 0, 0], half)
    second = fd.ops.slice(total, [0, channels // 2, 0], [batch, channels, width])
    return total, fd.ops.mul(fd.ops.tanh(first), fd.ops.sigmoid(second))


def loads(found: Lowered) -> list[int]:
    """Tensors that each kernel loads."""
    return [sum(v.is_tensor for v in s.inputs) for s in found.segmented.segments]


def test_a_sum_is_loaded_in_place_of_its_terms(monkeypatch) -> None:
    inputs = [torch.empty(8, 256, 16000, dtype=torch.bfloat16, device="meta") for _ in range(2)]
    assert loads(lowered(gated, inputs)) == [2, 1]
    monkeypatch.setattr(search, "computed_again", lambda segmented: ())
    assert loads(lowered(gated, inputs)) == [2, 2]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_values_are_those_of_torch(monkeypatch, dtype) -> None:
    monkeypatch.setattr(search, "LEAST_S", 0.0)
    monkeypatch.setattr(TimedKernels, "is_faster", lambda self, other, share: True)
    inputs = [noise(2, 512, 1200, seed=seed).to(dtype) for seed in (1, 2)]
    found = lowered(gated, inputs)
    assert loads(found) == [2, 1]
    total, product = planned(found, inputs).run(inputs)
    expected = (inputs[0].float() + inputs[1].float()).bfloat16()
    assert torch.equal(total, expected)
    first, second = expected.double().chunk(2, 1)
    wanted = first.tanh() * second.sigmoid()
    torch.testing.assert_close(product.double(), wanted, rtol=1e-2, atol=1e-2)


def of_fewer_bytes(fd, x, y):
    """The second kernel computes its half of the sum from one tensor of half the bytes."""
    total = fd.ops.add(fd.ops.cast(x, DataType.Float), 1.0)
    return total, fd.ops.sum(total, [0])


def in_one_kernel(fd, x, y):
    total = fd.ops.add(x, y)
    return total, fd.ops.exp(total)


@pytest.mark.parametrize("body", [of_fewer_bytes, in_one_kernel])
def test_nothing_to_load(body) -> None:
    inputs = [torch.empty(8192, 4096, dtype=torch.bfloat16, device="meta") for _ in range(2)]
    found = lowered(body, inputs)
    assert computed_again(found.segmented) == ()
    assert found.segmented.rewrites.invariants == ()


def test_an_operand_that_is_used_twice_is_loaded_once() -> None:
    """The second kernel computes halves of the square from one tensor of as many bytes."""

    def squared(fd, x):
        rows, width = x.shape()
        square = fd.ops.mul(x, x)
        first = fd.ops.slice(square, [0, 0], [rows, width // 2])
        second = fd.ops.slice(square, [0, width // 2], [rows, width])
        return square, fd.ops.mul(fd.ops.tanh(first), fd.ops.sigmoid(second))

    found = lowered(squared, [torch.empty(8192, 4096, device="meta")])
    assert loads(found) == [1, 1]
    assert computed_again(found.segmented) == ()
