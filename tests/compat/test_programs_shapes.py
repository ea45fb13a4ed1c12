"""Shape ops of programs written for nvFuser: -1, Vals, negative dims, sizes that become 1 or 0."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F

from tests.compat.programs import equal, noise, ran, record, run
from tritonfuser.compat.nvfuser_direct import DataType

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType
X = noise(2, 3, 4)


def both(call, wanted, *inputs):
    """A view of the inputs themselves, and one of what is computed from them."""
    equal(ran(call, *inputs), wanted)
    equal(ran(lambda ops, *given: ops.neg(call(ops, *given)), *inputs), -wanted)
    first = ran(lambda ops, t, *rest: call(ops, ops.neg(t), *rest), *inputs)
    equal(first, -wanted)


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ((3, 1), [3, 4]),
        ((3, 1), [-1, 4]),
        ((1,), [2, 5, 3]),
        ((1, 3), [2, -1, 3]),
        ((1, 1), [0, 3]),
        ((3, 1), (3, 0)),
        ((3, 4), [-1, -1]),
        ((), [2, 3]),
        ((0, 1), [0, 4]),
    ],
)
def test_expand(sizes, shape):
    x = noise(*sizes)
    both(lambda ops, t: ops.expand(t, shape), x.expand(shape), x)


@pytest.mark.parametrize(
    ("sizes", "shape", "dims"),
    [
        ((3,), [3, 4], [0]),
        ((4,), [3, 4], [-1]),
        ((3, 4), [3, 2, 4], [-3, -1]),
        ((3, 4), [3, 4], [0, 1]),
        ((), [3, 4], []),
        ((3, 1), (3, 5), (0, 1)),
        ((1,), [4, 4], [0]),
        ((0,), [0, 3], [0]),
        ((3,), [0, 3], [1]),
    ],
)
def test_broadcast_in_dim(sizes, shape, dims):
    x = noise(*sizes)
    places = [dim % len(shape) for dim in dims]
    spread = [sizes[places.index(d)] if d in places else 1 for d in range(len(shape))]
    wanted = x.reshape(spread).expand(shape)
    both(lambda ops, t: ops.broadcast_in_dim(t, shape, dims), wanted, x)


def test_broadcast_gives_the_tensor_itself_where_no_dim_is_new():
    def make(fd):
        t = fd.from_pytorch(X)
        assert fd.ops.broadcast(t, [False] * 3) is t
        fd.add_output(fd.ops.broadcast(t, (True, False, False, False, True)))

    equal(run(make, [X])[0], X[None, ..., None])


def test_squeeze():
    x, column = noise(3, 1, 4, 1), noise(3, 1).expand(3, 4)
    for dims in ([1], [-1], [3, 1], (-3,)):
        wanted = x.squeeze(tuple(dims))
        both(lambda ops, t, d=dims: ops.squeeze(t, d), wanted, x)
    equal(ran(lambda ops, t: ops.squeeze(t, [1], squeeze_expanded=True), column), column[:, 0])
    for dims in ([0], [1, 1], [4], [0, 1]):
        with pytest.raises(RuntimeError):
            ran(lambda ops, t, d=dims: ops.squeeze(t, d), x)
    with pytest.raises(RuntimeError, match="squeeze_expanded=True"):
        ran(lambda ops, t: ops.squeeze(t, [1]), column)
    fd = record(lambda fd: fd.add_output(fd.ops.squeeze(fd.define_tensor([-1, -1], True), [0])))
    equal(fd.execute([X[0, :1]])[0], X[0, 0])
    with pytest.raises(RuntimeError, match="expected size 1 in dim 0, got 3"):
        fd.execute([X[0]])


@pytest.mark.parametrize("shape", [[6, 4], [-1], [2, -1], (-1, 12), [2, 3, 2, 2], [1, 24, 1]])
def test_reshape(shape):
    both(lambda ops, t: ops.reshape(t, shape), X.reshape(shape), X)
    transposed = X.transpose(0, 2)
    both(lambda ops, t: ops.reshape(t, shape), transposed.reshape(shape), transposed)


@pytest.mark.parametrize("shape", [[0], [3, 0], [-1], [0, 5], [-1, 3], [2, 0, 7]])
def test_reshape_of_no_elements(shape):
    x = noise(0, 3)
    both(lambda ops, t: ops.reshape(t, shape), x.reshape(shape), x)


def test_shapes_that_do_not_fit():
    for shape in ([5, 5], [-1, -1], [-1, 5], [-2, 12], [0, -1], [25]):
        with pytest.raises(RuntimeError):
            ran(lambda ops, t, s=shape: ops.reshape(t, s), X)
    for shape in ([3, 5, 4], [4], [-1, 2, 3, 4], [2, 3, -2]):
        with pytest.raises(RuntimeError):
            ran(lambda ops, t, s=shape: ops.expand(t, s), X)
    for shape, dims in (
        ([2, 3, 4], [0, 1]),
        ([2, 3, 4], [0, 1, 1]),
        ([2, 3, 4], [0, 1, -2]),
        ([2, 3, 4], [0, 1, 3]),
        ([2, 3, 4], [2, 1, 0]),
        ([2, 3, 5], [0, 1, 2]),
    ):
        with pytest.raises(RuntimeError):
            ran(lambda ops, t, s=shape, d=dims: ops.broadcast_in_dim(t, s, d), X)


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        ([0, 0, 0], [2, 3, 4]),
        ([1, 0, 2], [2, 2, 4]),
        ([0, 1, 0], [100, 2, 4]),
        ([0, 2, 0], [2, 2, 4]),
        ([0, 9, 0], [2, 12, 4]),
        ((0, 1, 1), (2, 3, 3)),
    ],
)
def test_slices_are_cut_off_at_the_sizes(starts, ends):
    places = tuple(slice(low, high) for low, high in zip(starts, ends, strict=True))
    kind = type(starts)
    both(lambda ops, t: ops.slice(t, starts, ends), X[places], X)
    both(lambda ops, t: ops.slice(t, starts, ends, kind([1, 1, 1]), 0), X[places], X)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (([-1, 0, 0], [2, 3, 4]), "Slice operation start_indices must be greater than or equal to"),
        (([0, 2, 0], [2, 1, 4]), "Slice operation end_indices must be greater than or equal to"),
        (([0, 0, 0], [2, 3, 4], [1, 2, 1]), "All slice operation strides must be of const size 1"),
        (([0, 0], [2, 3], [1, 1]), "Number of tensor dimensions does not match slice dimensions!"),
        (([0, 0, 0], [2, 3, 4], [1, 1]), "Slice start_indices and strides don't match!"),
        (([0, 0, 0], [2, 3]), "Slice indexing attribute dimensions don't match!"),
        # in this order: strides, rank, ends; then a dim at a time start, end, stride
        (([0, 0], [2], [1]), "Slice start_indices and strides don't match!"),
        (([0, 0], [2], [1, 1]), "Number of tensor dimensions does not match slice dimensions!"),
        (([0, -1, 0], [-1, 3, 4], [2, 2, 2]), "end_indices must be greater than or equal to st"),
        (([0, -1, 0], [1, -2, 4], [1, 2, 2]), "start_indices must be greater than or equal to 0"),
    ],
)
def test_slices_that_are_refused(args, text):
    with pytest.raises(RuntimeError) as error:
        ran(lambda ops, t: ops.slice(t, *args), X)
    assert text in str(error.value)


def test_slices_with_ends_given_to_the_run():
    def make(fd):
        t, low, high = fd.from_pytorch(X), fd.define_scalar(D.Int), fd.define_scalar(D.Int)
        fd.add_output(fd.ops.slice(t, [0, low, 0], [2, high, t.size(2)]))
        fd.add_output(fd.ops.neg(fd.ops.slice(t, [0, 0, low], [2, 3, high])))
        empty = fd.ops.slice(t, [0, 1, 0], [2, 1, 4])
        fd.add_output(fd.ops.cat([empty, fd.ops.slice(t, [0, low, 0], [2, high, 4])], 1))

    for low, high in ((0, 2), (1, 3), (2, 2), (0, 99), (7, 9)):
        view, negative, joined = run(make, [X, low, high])
        equal(view, X[:, low:high])
        equal(negative, -X[:, :, low:high])
        equal(joined, X[:, low:high])


@pytest.mark.parametrize(
    ("widths", "value"),
    [
        ([1, 1], None),
        ([1, 2, 0, 3], None),
        ([0, 0, 1, 0, 2, 2], 1.5),
        ((-1, 0), None),
        ([1, -2], float("inf")),
        ([-2, -2], None),
        ([0, 0], None),
        ([], 2.0),
        ([0, 1], float("nan")),
    ],
)
def test_pad(widths, value):
    wanted = F.pad(X, list(widths), value=value or 0.0)
    equal(ran(lambda ops, t: ops.pad(t, widths, value), X), wanted)
    equal(ran(lambda ops, t: ops.neg(ops.pad(ops.neg(t), widths)), X), F.pad(X, list(widths)))


def test_the_value_of_a_pad_is_of_the_tensors_class():
    for x, good, bad in (
        (X, 2.0, 2),
        (torch.arange(3), 2, 2.0),
        (torch.arange(3) > 1, True, 1),
        (X.half(), 2.0, True),
        (X.to(torch.complex64), 1j, 1.0),
    ):
        found = ran(lambda ops, t, v=good: ops.pad(t, [0, 1], v), x)
        assert torch.equal(found[..., :-1], x)
        assert (found[..., -1] == good).all()
        with pytest.raises(RuntimeError, match="Tensor arg and pad value must have the same dtype"):
            ran(lambda ops, t, v=bad: ops.pad(t, [0, 1], v), x)
    for widths in ([-3, -2], [1], [1] * 8):
        with pytest.raises(RuntimeError):
            ran(lambda ops, t, w=widths: ops.pad(t, w), X)


def test_widths_given_to_the_run():
    def make(fd):
        t, n, value = fd.from_pytorch(X), fd.define_scalar(D.Int), fd.define_scalar()
        fd.add_output(fd.ops.pad(t, [n, 1, t.size(0), 0], value))

    for n in (3, 0, -1, -5):
        (found,) = run(make, [X, n, 0.5])
        kept = F.pad(X[..., max(-n, 0) :], [max(n, 0), 1, 2, 0], value=0.5)
        equal(found, kept if n > -5 else torch.empty(2, 5, 0))
    with pytest.raises(RuntimeError, match="widths that leave 0 and more"):
        record(make).execute([X, -6, 0.5])


A, B, EMPTY = noise(2, 3), noise(4, 3, seed=1), noise(0, 3)


@pytest.mark.parametrize(
    ("tensors", "dim"),
    [
        ([A, B], 0),
        ([A, B, A], -2),
        ([A, A], -1),
        ([A, EMPTY, B], 0),
        ([EMPTY, EMPTY], 0),
        ([A], 1),
    ],
)
def test_cat(tensors, dim):
    wanted = torch.cat(tensors, dim)
    equal(ran(lambda ops, *given: ops.cat(list(given), dim), *tensors), wanted)
    computed = ran(lambda ops, *given: ops.cat([ops.neg(t) for t in given], dim=dim), *tensors)
    equal(computed, -wanted)
    equal(ran(lambda ops, *given: ops.cat(list(given), dim, 0), *tensors), wanted)


def test_tensors_that_cannot_be_joined():
    for tensors, dim in (
        ([A, B], 1),
        ([A, A], 2),
        ([A, A], -3),
        ([A, A.double()], 0),
        ([A, A[0]], 0),
    ):
        with pytest.raises(RuntimeError):
            ran(lambda ops, *given, d=dim: ops.cat(list(given), d), *tensors)
    with pytest.raises(RuntimeError):
        ran(lambda ops, t: ops.cat([], 0), A)


def test_permute_by_dims_from_either_end():
    for dims in itertools.permutations(range(3)):
        both(lambda ops, t, d=dims: ops.permute(t, d), X.permute(dims), X)
        negative = [dim - 3 for dim in dims]
        equal(ran(lambda ops, t, d=negative: ops.permute(t, d), X), X.permute(dims))


# --- sizes -------------------------------------------------------------------------------------


def test_sizes_are_constants_where_they_are_static():
    x, y = noise(3, 5, 1), noise(15)

    def make(fd):
        t, u = fd.define_tensor([3, -1, 1], [True, True, None]), fd.from_pytorch(y)
        assert [v.is_symbolic() for v in fd.ops.shape(t)] == [False, True, False]
        assert isinstance(t.shape(), list)
        assert fd.ops.size(t, -2).dtype() is D.Int
        fd.add_output(fd.ops.reshape(u, t.shape()))
        fd.add_output(fd.ops.reshape(u, [t.size(1), fd.ops.size(t, 0)]))
        fd.add_output(fd.ops.add(u, t.size(1)))
        fd.add_output(fd.ops.expand(t, [-1, -1, u.size(0)]))

    found = run(make, [x, y])
    for one, wanted in zip(
        found, (y.view(3, 5, 1), y.view(5, 3), y + 5, x.expand(3, 5, 15)), strict=True
    ):
        equal(one, wanted)
    for wrong in (3, -4):
        with pytest.raises(RuntimeError):
            ran(lambda ops, t, d=wrong: ops.reshape(t, [ops.size(t, d)]), x)


def test_sizes_are_computed_with():
    def make(fd):
        ops, t = fd.ops, fd.define_tensor([-1, -1], True)
        rows, columns = ops.shape(t)
        half = ops.div(columns, 2)
        left = ops.slice(t, [0, 0], [rows, half])
        fd.add_output(ops.cat([ops.neg(ops.slice(t, [0, half], [rows, columns])), left], -1))
        fd.add_output(ops.slice(t, [0, 0], [ops.sub(rows, 1), columns]))
        fd.add_output(ops.reshape(t, [ops.mul(rows, columns)]))
        fd.add_output(ops.pad(t, [ops.sub(8, columns), 0]))
        fd.add_output(ops.full([ops.add(columns, 1), ops.maximum(rows, columns)], 1.0, D.Float))
        fd.add_output(ops.reshape(t, [ops.truediv(columns, 2), -1]))
        fd.add_output(ops.where(ops.gt(columns, 4), t, 0.0))
        fd.add_output(ops.mul(t, columns))

    for m, n in ((3, 4), (2, 6), (1, 2)):
        x = noise(m, n)
        h = n // 2
        wanted = [
            torch.cat([-x[:, h:], x[:, :h]], -1),
            x[: m - 1],
            x.reshape(-1),
            F.pad(x, [8 - n, 0]),
            torch.ones(n + 1, max(m, n)),
            x.reshape(h, -1),
            x if n > 4 else x * 0,
            x * n,
        ]
        for one, other in zip(run(make, [x]), wanted, strict=True):
            equal(one, other)


def test_one_definition_at_many_sizes():
    """Also where an extent becomes 1, or none."""

    def make(fd):
        ops = fd.ops
        t, u = fd.define_tensor([-1, -1], True), fd.define_tensor([-1, -1], True)
        fd.add_output(ops.add(t, u))
        fd.add_output(ops.sum(ops.mul(t, u), [1]))
        fd.add_output(ops.reshape(t, [-1]))
        fd.add_output(ops.broadcast_in_dim(ops.max(t, [1]), t.shape(), [0]))
        fd.add_output(ops.cat([t, u], 0))
        fd.add_output(ops.slice(t, [0, 1], [2, 3]))
        fd.add_output(ops.pad(u, [1, 1, 0, 2]))

    fd = record(make)
    for m, n in ((3, 4), (1, 4), (3, 1), (1, 1), (0, 4), (3, 0), (0, 0), (3, 4)):
        t, u = noise(m, n), noise(m, n, seed=1)
        largest = t.amax(1) if n else torch.full((m,), -torch.inf)
        wanted = [
            t + u,
            (t * u).sum(1),
            t.reshape(-1),
            largest[:, None].expand(m, n),
            torch.cat([t, u]),
            t[0:2, 1:3],
            F.pad(u, [1, 1, 0, 2]),
        ]
        for one, other in zip(fd.execute([t, u]), wanted, strict=True):
            equal(one, other, within=1e-6)
