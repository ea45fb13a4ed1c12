"""Random ops through a run: repeatable, in range, new at each call, and like the given tensor."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

from tests.e2e.checking import again
from tests.e2e.ops.samples import DRAWN
from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import compute_dtype
from tritonfuser.ops.creation import philox

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


@pytest.mark.parametrize("dtype", KINDS, ids=lambda x: x.name)
def test_what_is_read_at_run_time_picks_from_a_draw(dtype: DataType, device: str) -> None:
    """Neighbours then want elements from anywhere, not four that share random words."""
    rows = torch.arange(4096, dtype=torch.int32, device=device).reshape(1, 4096) * 7 % 2
    columns = torch.arange(4096, device=device) * 5 % 4096

    def draw(ops):
        return ops.uniform(0.0, 1.0, [2, 4096], rng_seed=56, rng_offset=5, dtype=dtype)

    with FusionDefinition() as fd:
        fd.add_output(draw(fd.ops))
    (whole,) = fd.run([], device=device)
    for given, dim in ((rows, 0), (columns[None].expand(2, -1).contiguous(), 1)):
        with FusionDefinition() as fd:
            index = fd.from_pytorch(given)
            fd.add_output(fd.ops.take_along_axis(draw(fd.ops), index, dim))
        assert torch.equal(fd.run([given])[0], whole.take_along_dim(given.long(), dim))
        for arch in ("sm_90", "gfx942"):
            assert fd.compile_for(arch, [given])


def numbers_between(
    low: float, high: float, dtype: DataType, device: str, *, given: bool, count: int = 257
) -> torch.Tensor:
    """``uniform(low, high)`` of a seed, its bounds written out or given to the run."""
    with FusionDefinition() as fd:
        scalars = [fd.define_scalar(None, dtype=D.Double) for _ in range(2)] if given else []
        ends = scalars or (low, high)
        fd.add_output(fd.ops.uniform(*ends, [count], rng_seed=7, rng_offset=3, dtype=dtype))
    (found,) = fd.run([low, high] if given else [], device=device)
    return found


def test_the_largest_half_of_a_range(device: str) -> None:
    """3.7 is 3.69921875 as a Half, and what is drawn lies below that."""
    for given in (False, True):
        found = numbers_between(-1.5, 3.7, D.Half, device, given=given, count=1 << 16)
        assert found.max().item() == 3.697265625 and found.min().item() == -1.5


@pytest.mark.parametrize("given", [False, True], ids=["constants", "scalars"])
@pytest.mark.parametrize("dtype", KINDS, ids=lambda x: x.name)
def test_a_range_the_other_way_round(dtype: DataType, given: bool, device: str) -> None:
    """Is spread as by nvFuser's formula, ``low + unit * (high - low)``."""
    unit = numbers_between(0.0, 1.0, dtype, device, given=False)
    found = numbers_between(3.0, -2.0, dtype, device, given=given)
    eps = torch.finfo(dtype.info.torch).eps
    torch.testing.assert_close(found.double(), 3.0 - 5.0 * unit.double(), rtol=0.0, atol=8 * eps)
    with FusionDefinition() as fd:
        scalars = [fd.define_scalar(None, dtype=D.Double) for _ in range(2)] if given else []
        fd.add_output(fd.ops.uniform(*(scalars or (3.0, -2.0)), [257], dtype=dtype))
    fd.validate([3.0, -2.0] if given else [], device=device)


@pytest.mark.covering
@pytest.mark.parametrize("given", [False, True], ids=["constants", "scalars"])
@pytest.mark.parametrize("dtype", KINDS, ids=lambda x: x.name)
def test_numbers_lie_in_the_rounded_range(dtype: DataType, given: bool, device: str) -> None:
    kind = dtype.info.torch
    largest = torch.finfo(kind).max
    finite = st.floats(-largest, largest) | st.floats(-4, 4) | st.floats(-(2.0**-20), 2.0**-20)

    @hypothesis.settings(max_examples=10, derandomize=True, database=None, deadline=None)
    @hypothesis.example((-largest, largest))
    @hypothesis.example((1.0, 1.0 + 1e-17))
    @hypothesis.example((-(2.0**-1074), 2.0**-1074))
    @hypothesis.example((0.0, 70000.0))
    @hypothesis.example((0.69999999, 0.7))
    @hypothesis.given(st.tuples(finite, finite))
    def check(ends: tuple[float, float]) -> None:
        low, high = sorted(ends)
        found = numbers_between(low, high, dtype, device, given=given).cpu()
        low, high = (
            torch.tensor(x, dtype=torch.float64).to(kind).double().clamp(-largest, largest)
            for x in (low, high)
        )
        if low == high:
            assert (found.double() == low).all()
            return
        assert (found.double() >= low).all() and (found.double() < high).all()
        unit = philox.uniform((257,), 7, 3, compute_dtype(dtype).info.torch).double()
        exact = low * (1 - unit) + high * unit
        size = torch.maximum(low.abs(), high.abs())
        near = 4 * torch.finfo(kind).eps * torch.clamp(size, min=torch.finfo(kind).tiny)
        assert ((found.double() - exact).abs() <= near).all()

    check()


@pytest.mark.parametrize("dtype", KINDS, ids=lambda x: x.name)
def test_ranges_compile(dtype: DataType) -> None:
    with FusionDefinition() as fd:
        low, high = (fd.define_scalar(None, dtype=D.Double) for _ in range(2))
        for ends in ((low, high), (0.25, high), (low, 3.7), (-1.5, 3.7), (-1e308, 1e308)):
            fd.add_output(fd.ops.uniform(*ends, [4096], rng_seed=7, rng_offset=3, dtype=dtype))
    for arch in ("sm_90", "gfx942"):
        assert fd.compile_for(arch, [0.5, 2.0])
