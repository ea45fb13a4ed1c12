"""Programs as in nvFuser's test_matmul.py: matrix products whose rows, columns or K are split."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.multidevice.cases import case, rand
from tests.multidevice.nvfuser_style import X, Y, inner, middle, on, outer, tensor
from tritonfuser import DataType

_IN, _W, _B = rand(2, 4, 8), rand(6, 8), rand(6)


@case("column parallel linear", [_IN, _W, _B], F.linear, exchanges=0, shards=[((), (), (X,))])
def _(fd, mesh):
    x, w, b = tensor(fd, -1, -1, 8), tensor(fd, 6, 8), tensor(fd, 6)
    fd.add_output(fd.ops.linear(x, w, b))
    on(mesh, x, w, b)
    for tv in (w, b):
        outer(tv, 0)


def _stacked(x, w, b):
    return torch.einsum("bsk,dnk->dbsn", x, w) + b[:, None, None]


@case("linear of a stack of weights", [_IN, rand(2, 6, 8), rand(2, 6)], _stacked, exchanges=0)
def _(fd, mesh):
    x, w, b = tensor(fd, -1, -1, 8), tensor(fd, 2, 6, 8), tensor(fd, 2, 6)
    fd.add_output(fd.ops.linear(x, w, b))
    on(mesh, x, w, b)
    for tv in (w, b):
        tv.axis(0).parallelize(X)


@case("row parallel linear", [_IN, _W], F.linear, exchanges=1, shards=[((), (), ())])
def _(fd, mesh):
    x, w = tensor(fd, -1, -1, 8), tensor(fd, 6, 8)
    out = fd.ops.linear(x, w)
    fd.add_output(out)
    for tv in (x, w, out):
        on(mesh, tv)
        outer(tv, -1)


@case("row parallel linear with a bias", [_IN, _W, _B], F.linear, exchanges=1)
def _(fd, mesh):
    x, w, b = tensor(fd, -1, -1, 8), tensor(fd, 6, 8), tensor(fd, 6)
    out = fd.ops.linear(x, w, b)
    fd.add_output(out)
    on(mesh, b)
    for tv in (x, w, out):
        on(mesh, tv)
        outer(tv, -1)


@case("row parallel linear, the bias in parts", [_IN, _W, _B], F.linear, exchanges=2)
def _(fd, mesh):
    x, w, b = tensor(fd, -1, -1, 8), tensor(fd, 6, 8), tensor(fd, 6)
    fd.add_output(fd.ops.linear(x, w, b))
    for tv in (x, w, b):
        on(mesh, tv)
        outer(tv, -1)


@case(
    "row parallel linear, the bias in partial sums",
    [_IN, _W, rand(4, 6)],
    lambda x, w, rows: F.linear(x, w, rows.sum(0)),
    exchanges=2,
)
def _(fd, mesh):
    x, w, rows = tensor(fd, -1, -1, 8), tensor(fd, 6, 8), tensor(fd, 4, 6)
    fd.add_output(fd.ops.linear(x, w, fd.ops.sum(rows, [0])))
    on(mesh, x, w, rows)
    for tv, dim in ((x, -1), (w, -1), (rows, 0)):
        outer(tv, dim)


@case("linear, reduce scatter", [_IN, _W], F.linear, exchanges=1, shards=[((), (X,), ())])
def _(fd, mesh):
    x, w = tensor(fd, -1, -1, 8), tensor(fd, -1, 8)
    out = fd.ops.linear(x, w)
    fd.add_output(out)
    for tv in (x, w, out):
        on(mesh, tv)
        outer(tv, -1)
    outer(out, 1)


@case("linear with a bias, reduce scatter", [_IN, _W, _B], F.linear, exchanges=1)
def _(fd, mesh):
    x, w, b = tensor(fd, -1, -1, 8), tensor(fd, -1, 8), tensor(fd, -1)
    out = fd.ops.linear(x, w, b)
    fd.add_output(out)
    for tv in (x, w, out):
        on(mesh, tv)
        outer(tv, -1)
    outer(out, 1)


@case("matmul, allreduce by rfactor", [_IN, rand(8, 6)], torch.matmul, exchanges=1)
def _(fd, mesh):
    x, w = tensor(fd, 2, 4, 8), tensor(fd, 8, 6)
    out = fd.ops.matmul(x, w)
    fd.add_output(out)
    on(mesh, x, w, out)
    outer(x, -1)
    outer(w, 0)
    for tv in (x, w):
        tv.set_allocation_domain(tv.get_loop_domain(), True)
    out.split(-1, mesh.size, inner_split=False)
    local = out.rfactor([-1])
    on(mesh, local)
    local.axis(-2).parallelize(X)


@case("matmul, reduce scatter by rfactor", [_IN, rand(8, 6)], torch.matmul, exchanges=1)
def _(fd, mesh):
    x, w = tensor(fd, 2, 4, 8), tensor(fd, 8, 6)
    out = fd.ops.matmul(x, w)
    fd.add_output(out)
    on(mesh, x, w, out)
    outer(x, -1)
    outer(w, 0)
    out.outer_split(-1, mesh.size)
    local = out.rfactor([-1])
    on(mesh, local)
    local.axis(-2).parallelize(X)
    outer(out, 1)
    out.set_allocation_domain(out.get_loop_domain(), True)


@case("matmul of a stack, summed", [rand(2, 8, 4), rand(2, 4, 6)], lambda x, w: (x @ w).sum(0))
def _(fd, mesh):
    x, w = tensor(fd, 2, 8, 4), tensor(fd, 2, 4, 6)
    product = fd.ops.matmul(x, w)
    out = fd.ops.sum(product, [0])
    fd.add_output(out)
    on(mesh, x, w, product, out)
    for tv in (x, w, product):
        tv.axis(0).parallelize(X)


@case("matmul, inner part of K", [rand(4, 8), rand(8, 6)], torch.matmul, exchanges=1)
def _(fd, mesh):
    x, w = tensor(fd, -1, -1), tensor(fd, -1, -1)
    on(mesh, x, w)
    inner(x, 1)
    inner(w, 0)
    fd.add_output(fd.ops.matmul(x, w))


@case("matmul, K cut in two ways", [rand(4, 8), rand(8, 6)], torch.matmul)
def _(fd, mesh):
    x, w = tensor(fd, -1, -1), tensor(fd, -1, -1)
    on(mesh, x, w)
    inner(x, 1)
    outer(w, 0)
    fd.add_output(fd.ops.matmul(x, w))


@case("linear, middle part of the columns", [_IN, rand(12, 8)], F.linear, exchanges=0)
def _(fd, mesh):
    x, w = tensor(fd, -1, -1, 8), tensor(fd, 12, 8)
    on(mesh, x, w)
    middle(w, 0, 3)
    fd.add_output(fd.ops.linear(x, w))


@case(
    "matmul over a grid",
    [rand(4, 8), rand(8, 6)],
    torch.matmul,
    shape=(2, 2),
    exchanges=0,
    shards=[((Y,), (X,))],
)
def _(fd, mesh):
    a, b = tensor(fd, -1, -1), tensor(fd, -1, -1)
    on(mesh, a, b)
    outer(a, 0, Y)
    outer(b, 1, X)
    fd.add_output(fd.ops.matmul(a, b))


@case("matmul, K over a grid", [rand(4, 8), rand(8, 6)], torch.matmul, shape=(2, 2), exchanges=1)
def _(fd, mesh):
    a, b = tensor(fd, -1, -1), tensor(fd, -1, -1)
    on(mesh, a, b)
    for tv, dim in ((a, 1), (b, 0)):
        outer(tv, dim, Y)
        outer(tv, dim + 1, X)
    fd.add_output(fd.ops.matmul(a, b))


@case(
    "linear, rows and K over a grid",
    [rand(4, 8), _W],
    F.linear,
    shape=(2, 2),
    exchanges=1,
    shards=[((Y,), (X,))],
)
def _(fd, mesh):
    x, w = tensor(fd, -1, -1), tensor(fd, -1, -1)
    out = fd.ops.linear(x, w)
    fd.add_output(out)
    on(mesh, x, w, out)
    outer(x, 0, Y)
    outer(x, -1, X)
    outer(w, -1, X)
    outer(out, 0, Y)
    outer(out, 2, X)
    outer(out, -1, X)


def _perceptron(x, up, down):
    return F.linear(F.relu(F.linear(x, up)), down)


_MLP = [rand(2, 4, 8), rand(16, 8), rand(8, 16)]


@case("sequence parallel perceptron", _MLP, _perceptron, exchanges=2, shards=[((), (X,), ())])
def _(fd, mesh):
    x, up, down = tensor(fd, -1, -1, 8), tensor(fd, 16, 8), tensor(fd, 8, 16)
    gathered = fd.ops.set(x)
    hidden = fd.ops.relu(fd.ops.linear(gathered, up))
    out = fd.ops.linear(hidden, down)
    fd.add_output(out)
    on(mesh, x, up, down, gathered, hidden, out)
    outer(x, 1)
    outer(up, 0)
    outer(down, 1)
    outer(hidden, -1)
    outer(out, -1)
    outer(out, 1)


def _blocks(x, w, v):
    mid = x @ w
    return torch.softmax(mid, -1) @ v


@case("reduce scatter in the middle", [rand(4, 8), rand(8, 6), rand(6, 3)], _blocks, exchanges=1)
def _(fd, mesh):
    x, w, v = tensor(fd, 4, 8), tensor(fd, 8, 6), tensor(fd, 6, 3)
    mid = fd.ops.matmul(x, w)
    exps = fd.ops.exp(fd.ops.sub(mid, fd.ops.max(mid, [1], keepdim=True)))
    soft = fd.ops.div(exps, fd.ops.sum(exps, [1], keepdim=True))
    fd.add_output(fd.ops.matmul(soft, v))
    on(mesh, x, w, v, mid)
    outer(x, 1)
    outer(w, 0)
    outer(mid, 0)


@case(
    "half product, reduce scatter",
    [rand(4, 8).bfloat16(), rand(6, 8).bfloat16()],
    F.linear,
    exchanges=1,
    shards=[((X,), ())],
)
def _(fd, mesh):
    x, w = (tensor(fd, -1, -1, dtype=DataType.BFloat16) for _ in range(2))
    out = fd.ops.linear(x, w)
    fd.add_output(out)
    for tv in (x, w, out):
        on(mesh, tv)
        outer(tv, -1)
    outer(out, 0)
