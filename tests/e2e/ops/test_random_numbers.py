"""Random ops through a run: repeatable, in range, new at each call, and like the given tensor."""

from __future__ import annotations

import pytest
import torch

from tests.e2e.checking import again
from tests.e2e.ops.samples import DRAWN
from tritonfuser import DataType, FusionDefinition

D = DataType
KINDS = (D.Double, D.Float, D.Half, D.BFloat16)


@pytest.mark.parametrize("dtype", KINDS, ids=lambda x: x.name)
@pytest.mark.parametrize("name", sorted(DRAWN))
def test_like(name: str, dtype: DataType, device: str) -> None:
    x = torch.zeros(64, 33, dtype=dtype.info.torch, device=device)
    with FusionDefinition() as fd:
        fd.add_output(getattr(fd.ops, name)(fd.from_pytorch(x)))
    torch.manual_seed(5)
    (first,), (second,) = fd.run([x]), fd.run([x])
    torch.manual_seed(5)
    (again,) = fd.run([x])
    assert first.shape == x.shape and first.dtype is x.dtype
    assert torch.equal(first, again) and not torch.equal(first, second)
    mean, spread = (0.5, 12**-0.5) if name == "rand_like" else (0.0, 1.0)
    assert abs(first.double().mean().item() - mean) < 0.1
    assert abs(first.double().std().item() - spread) < 0.1
    if name == "rand_like":
        assert first.min() >= 0 and first.max() < 1


def test_two_draws_of_one_definition_differ(device: str) -> None:
    with FusionDefinition() as fd:
        a, b = (fd.ops.uniform(0.0, 1.0, [100]) for _ in range(2))
        fd.add_output(a)
        fd.add_output(b)
        fd.add_output(fd.ops.sub(a, a))
    first, second, nothing = fd.run([], device=device)
    assert not torch.equal(first, second)
    assert not nothing.any()


def test_seeds_fix_the_numbers_whatever_the_kernel(device: str) -> None:
    """A draw in a kernel of its own, behind a view and inside a reduction is the same draw."""
    x = torch.ones(16, 24, device=device)
    with FusionDefinition() as fd:
        t, seed = fd.from_pytorch(x), fd.define_scalar(None, dtype=D.Int)
        drawn = fd.ops.uniform(0.0, 1.0, [16, 24], rng_seed=seed, rng_offset=2)
        fd.add_output(drawn)
        fd.add_output(fd.ops.mul(t, drawn))
        fd.add_output(fd.ops.neg(fd.ops.permute(drawn, [1, 0])))
        fd.add_output(fd.ops.sum(drawn, [1]))
        fd.add_output(fd.ops.max(drawn, [0]))
    for seed in (3, 2**40):
        drawn, product, turned, rows, top = fd.run([x, seed])
        assert torch.equal(product, drawn)
        assert torch.equal(turned, -drawn.t())
        torch.testing.assert_close(rows, drawn.sum(1))
        assert torch.equal(top, drawn.amax(0))


@pytest.mark.parametrize("dtype", KINDS, ids=lambda x: x.name)
@pytest.mark.parametrize("draw", ["uniform", "normal"])
def test_single_elements_are_those_of_the_whole(draw: str, dtype: DataType, device: str) -> None:
    """Picked by a constant, by a slice, and by an index that is read or computed."""
    given = torch.tensor([5], device=device)
    with FusionDefinition() as fd:
        index = fd.from_pytorch(given)
        whole = getattr(fd.ops, draw)(0.0, 1.0, [32], rng_seed=3, rng_offset=1, dtype=dtype)
        total = fd.ops.broadcast(fd.ops.sum(index, [0]), [True])
        picked = [
            fd.ops.select(whole, 5, 0),
            fd.ops.slice(whole, [5], [6]),
            fd.ops.index_select(whole, index, 0),
            fd.ops.index_select(whole, fd.ops.remainder(total, 7), 0),
        ]
        for out in (whole, *picked):
            fd.add_output(fd.ops.cast(out, D.Double))
    found = fd.run([given])
    for one in found[1:]:
        torch.testing.assert_close(one.flatten()[0], found[0][5], rtol=1e-6, atol=1e-6)


def test_the_printed_definition_draws_the_same(device: str) -> None:
    """Also where ops were recorded in another order than outputs need them."""
    with FusionDefinition() as fd:
        first = fd.ops.uniform(0.0, 1.0, [40])
        second = fd.ops.normal(0.0, 1.0, [40])
        fd.add_output(second)
        fd.add_output(first)
    torch.manual_seed(3)
    wanted = fd.run([], device=device)
    torch.manual_seed(3)
    for one, other in zip(again(fd).run([], device=device), wanted, strict=True):
        assert torch.equal(one, other)
