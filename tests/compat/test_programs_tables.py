"""Indices, factories and random numbers in programs written for nvFuser."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.compat.programs import equal, noise, ran, record, run
from tritonfuser.compat.nvfuser_direct import DataType

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType
X = noise(4, 5, 6)


def places(below, *shape, dtype=torch.int64):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, below, shape, generator=generator, device="cpu").to(dtype)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_rows_by_index(dim, dtype):
    """The order is (arg, index, dim); a 0-dim index keeps the dim, with size 1."""
    size = X.shape[dim]
    for index in (places(size, 7), places(size, 0), places(size)):
        index = index.to(dtype)
        wanted = X.index_select(dim, index)
        equal(ran(lambda ops, t, i: ops.index_select(t, i, dim), X, index), wanted)
        call = lambda ops, t, i: ops.neg(ops.index_select(arg=ops.exp(t), index=i, dim=dim))  # noqa: E731
        equal(ran(call, X, index), -wanted.exp(), within=1e-6)
    found = ran(lambda ops, t, i: [ops.select(t, i, dim), ops.select(t, 2, dim)], X, 3)
    equal(found[0], X.select(dim, 3))
    equal(found[1], X.select(dim, 2))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_elements_by_index(dim, dtype):
    """gather: the index may be smaller; take_along_axis: its other dims broadcast."""
    size = X.shape[dim]
    for shape in ((2, 3, 4), (4, 5, 6), (1, 5, 2), (0, 3, 4)):
        index = places(size, *shape)
        found = ran(lambda ops, t, i: ops.gather(t, i, dim), X, index.to(dtype))
        equal(found, X.gather(dim, index))
    for thin in (True, False):
        shape = [1 if thin else n for n in X.shape]
        shape[dim] = 3
        index = places(size, *shape)
        found = ran(lambda ops, t, i: ops.take_along_axis(t, i, dim), X, index.to(dtype))
        equal(found, torch.take_along_dim(X, index, dim))
    one = X[:1] if dim else X[:, :1]
    index = places(size, *[3 if d == dim % 3 else n for d, n in enumerate(X.shape)])
    found = ran(lambda ops, t, i: ops.take_along_axis(t, i, dim), one, index.to(dtype))
    equal(found, torch.take_along_dim(one, index, dim))


def test_an_embedding_does_not_need_the_weights_gradient():
    weight, tokens = noise(10, 4).requires_grad_(), places(10, 2, 3)

    def make(fd):
        t, w, norm = fd.from_pytorch(tokens), fd.from_pytorch(weight), fd.define_scalar()
        fd.add_output(fd.ops.embedding_fwd(t, w, None, norm, fd.define_scalar(2.0), None, None))
        fd.add_output(fd.ops.embedding_fwd(t, w))

    cut, plain = record(make).execute([tokens, weight, 1.0])
    equal(cut, F.embedding(tokens, noise(10, 4), None, 1.0), within=1e-6)
    equal(plain, noise(10, 4)[tokens])


# --- factories -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "wanted"),
    [
        ((5,), {}, torch.arange(5)),
        ((5, 2), {}, torch.arange(5) + 2),
        ((5, 2, 3), {}, torch.arange(5) * 3 + 2),
        ((5, 0.5, 0.25, D.Float), {}, torch.arange(5) * 0.25 + 0.5),
        ((5,), {"start": None, "step": None, "dtype": D.Int32}, torch.arange(5).int()),
        ((3,), {"start": -1, "step": -1}, -torch.arange(3) - 1),
        ((0,), {"dtype": D.Double}, torch.arange(0.0).double()),
    ],
)
def test_iota(args, kwargs, wanted):
    (found,) = run(lambda fd: fd.add_output(fd.ops.iota(*args, **kwargs)), [])
    equal(found, wanted)


@pytest.mark.parametrize(
    ("shape", "value", "dtype"),
    [
        ([2, 3], 1.5, D.Float),
        ((2, 3), 1, D.Int),
        ([], 2.0, D.Float),
        ([0, 3], 1.0, D.Half),
        ([2], True, D.Bool),
        ([2], 1 + 2j, D.ComplexFloat),
        ([2], 3, D.Float),
        ([2], float("-inf"), D.BFloat16),
        ([2], -0.0, D.Double),
        (torch.Size([2]), 5, D.Int32),
    ],
)
def test_full(shape, value, dtype):
    wanted = torch.full(tuple(shape), value, dtype=dtype.info.torch)
    (found,) = run(lambda fd: fd.add_output(fd.ops.full(shape, value, dtype)), [])
    equal(found, wanted)
    assert torch.equal(found.real.signbit(), wanted.real.signbit())

    def make(fd):
        size, scalar = fd.define_scalar(D.Int), fd.define_scalar(dtype)
        fd.add_output(fd.ops.full([size, *shape], fill_value=scalar, dtype=dtype))

    equal(run(make, [2, value])[0], wanted.expand(2, *shape))


def test_triu_by_any_diagonal():
    x = noise(2, 3, 4)
    for diagonal in (0, 1, -1, -10, 10):
        number, scalar = ran(
            lambda ops, t, k, d=diagonal: [ops.triu(t, d), ops.triu(t, diagonal=k)], x, diagonal
        )
        equal(number, x.triu(diagonal))
        equal(scalar, x.triu(diagonal))
    equal(ran(lambda ops, t: ops.triu(t), x), x.triu())


# --- random numbers ------------------------------------------------------------------------------


def drawing(fd):
    ops, low, high, n = (
        fd.ops,
        fd.define_scalar(-1.0),
        fd.define_scalar(2.0),
        fd.define_scalar(D.Int),
    )
    fd.add_output(ops.uniform(low, high, [n, 4]))
    fd.add_output(ops.uniform(low, high, (n, fd.define_scalar(4)), dtype=D.Double))
    fd.add_output(ops.uniform(-1.0, 2.0, [n], dtype=D.Half))
    fd.add_output(ops.normal(0.5, 2.0, [n, n], dtype=D.BFloat16))


def test_a_seed_of_torch_makes_a_run_repeatable():
    fd = record(drawing)
    torch.manual_seed(3)
    first, second = fd.execute([5]), fd.execute([5])
    torch.manual_seed(3)
    again = fd.execute([5])
    assert [x.dtype for x in first] == [torch.float32, torch.float64, torch.float16, torch.bfloat16]
    assert [list(x.shape) for x in first] == [[5, 4], [5, 4], [5], [5, 5]]
    for one, other, same in zip(first, second, again, strict=True):
        assert torch.equal(one, same)
        assert not torch.equal(one, other)
    for one in first[:3]:
        assert one.min() >= -1
        assert one.max() < 2


def test_a_seed_and_an_offset_given_say_all():
    def make(fd):
        seed, offset = fd.define_scalar(D.Int), fd.define_scalar(D.Int)
        for dtype in (D.Float, D.Double, D.Half):
            fd.add_output(
                fd.ops.uniform(0.0, 1.0, [40], rng_seed=seed, rng_offset=offset, dtype=dtype)
            )

    first = run(make, [7, 0])
    for given in ([7, 1], [8, 0]):
        for one, other in zip(first, run(make, given), strict=True):
            assert not torch.equal(one, other)
    for one, other in zip(first, record(make).execute([7, 0]), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_numbers_like_a_tensor(dtype):
    """Each element its own, also of a tensor that is one column repeated."""
    column = noise(30, 1).to(dtype)
    fd = record(
        lambda fd: [
            fd.add_output(getattr(fd.ops, name)(t))
            for t in [fd.from_pytorch(column.expand(30, 4))]
            for name in ("rand_like", "randn_like")
        ]
    )
    for found in fd.execute([column.expand(30, 4)]):
        assert (found.dtype, found.shape) == (dtype, (30, 4))
        assert not (found == found[:, :1]).all()
