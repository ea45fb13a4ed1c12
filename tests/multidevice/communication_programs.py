"""Programs as in nvFuser's test_communication.py and test_multidevice.py: moves and reductions."""

from __future__ import annotations

import torch

from tests.multidevice.cases import case, rand
from tests.multidevice.nvfuser_style import STREAM, X, Y, Z, inner, middle, on, outer, tensor
from tritonfuser import DataType, ParallelType


@case("allgather", [rand(8)], lambda x: x, exchanges=1, shards=[((),)])
def _(fd, mesh):
    x = tensor(fd, 8)
    out = fd.ops.set(x)
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0)


@case("allgather of an expanded broadcast", [rand(2)], lambda x: x[:, None].expand(2, 3))
def _(fd, mesh):
    x = tensor(fd, 2)
    out = fd.ops.set(fd.ops.expand(fd.ops.broadcast(x, [False, True]), [2, 3]))
    fd.add_output(out)
    on(mesh, x, out)
    x.axis(0).parallelize(X)


@case("allreduce", [rand(8, 3)], lambda x: x.sum(0), exchanges=1, shards=[((),)])
def _(fd, mesh):
    x = tensor(fd, 8, 3)
    out = fd.ops.sum(x, [0])
    fd.add_output(out)
    for tv in (x, out):
        on(mesh, tv)
        outer(tv, 0)


@case("allreduce by rfactor", [rand(8, 3)], lambda x: x.sum(0), exchanges=1, shards=[((),)])
def _(fd, mesh):
    x = tensor(fd, 8, 3)
    out = fd.ops.sum(x, [0])
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0)
    out.outer_split(0, mesh.size)
    local = out.rfactor([1])
    on(mesh, local)
    local.axis(0).parallelize(X)


@case("reduce scatter of a split dim", [rand(4, 8)], lambda x: x.sum(0), shards=[((X,),)])
def _(fd, mesh):
    x = tensor(fd, 4, 8)
    out = fd.ops.sum(x, [0])
    fd.add_output(out)
    for tv in (x, out):
        on(mesh, tv)
        outer(tv, 0)
    outer(out, -1)


@case("reduce scatter, not contiguous", [rand(2, 3, 4)], lambda x: x.sum(0), shards=[((), (X,))])
def _(fd, mesh):
    x = tensor(fd, 2, 3, 4)
    out = fd.ops.sum(x, [0])
    fd.add_output(out)
    on(mesh, x, out)
    x.axis(0).parallelize(X)
    outer(out, -1)
    out.set_allocation_domain(out.get_loop_domain(), True)


@case("largest, scattered", [rand(4, 6)], lambda x: x.amax(0), shards=[((X,),)])
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    out = fd.ops.max(x, [0])
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0)
    outer(out, -1)


@case("alltoall", [rand(4, 6)], lambda x: x, exchanges=1, shards=[((), (X,))])
def _(fd, mesh):
    x = tensor(fd, 4, 6)
    out = fd.ops.set(x)
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0)
    outer(out, 1)


@case("scatter", [rand(4, 6)], lambda x: x, exchanges=0, shards=[((X,), ())])
def _(fd, mesh):
    x = tensor(fd, 4, 6)
    out = fd.ops.set(x)
    fd.add_output(out)
    on(mesh, x, out)
    outer(out, 0)


# --- inner and middle parts ----------------------------------------------------------------------


@case("inner part", [rand(8, 3)], lambda x: x * 2, exchanges=0)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    inner(x, 0)
    fd.add_output(fd.ops.mul(x, 2.0))


@case("inner part gathered", [rand(8, 3)], lambda x: x * 2, exchanges=1, shards=[((), ())])
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    out = fd.ops.mul(x, 2.0)
    fd.add_output(out)
    on(mesh, x, out)
    inner(x, 0)


@case("middle part", [rand(12, 3)], lambda x: x.exp(), exchanges=0)
def _(fd, mesh):
    x = tensor(fd, 12, -1)
    on(mesh, x)
    middle(x, 0, 3)
    fd.add_output(fd.ops.exp(x))


@case("middle part of an open dim", [rand(3, 12)], lambda x: x.exp(), exchanges=1)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    x.inner_split(1, 4)
    outer(x, 2)
    y = fd.ops.exp(x)
    fd.add_output(y)
    on(mesh, y)


@case("middle part scattered", [rand(12, 3)], lambda x: x + 1, exchanges=0)
def _(fd, mesh):
    x = tensor(fd, 12, 3)
    out = fd.ops.add(x, 1.0)
    fd.add_output(out)
    on(mesh, x, out)
    middle(out, 0, 3)


EXPANDED = [rand(12, 1).expand(12, 6) for _ in range(2)]


@case("middle part of an expanded input", EXPANDED, lambda x, y: (x - y).amax(1), exchanges=0)
def _(fd, mesh):
    x = fd.define_tensor([12, 6], contiguity=[True, None])
    y = fd.define_tensor([-1, -1], contiguity=[True, None])
    out = fd.ops.max(fd.ops.sub(x, y), [1])
    fd.add_output(out)
    on(mesh, x)
    middle(x, 0, 3)


@case("middle part of an expanded dim", EXPANDED, lambda x, y: (x.mT - y.mT).amax(0))
def _(fd, mesh):
    x = fd.define_tensor([12, 6], contiguity=[True, None])
    y = fd.define_tensor([-1, -1], contiguity=[True, None])
    out = fd.ops.max(fd.ops.permute(fd.ops.sub(x, y), [1, 0]), [0])
    fd.add_output(out)
    on(mesh, x)
    middle(x, 1, 3)


@case("middle to inner", [rand(12, 3)], lambda x: x + 1, exchanges=1)
def _(fd, mesh):
    x = tensor(fd, 12, 3)
    out = fd.ops.add(x, 1.0)
    fd.add_output(out)
    on(mesh, x, out)
    middle(x, 0, 3)
    inner(out, 0)


@case("sum of an inner part", [rand(3, 8)], lambda x: x.sum(1), exchanges=1, shards=[((),)])
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    inner(x, 1)
    fd.add_output(fd.ops.sum(x, [1]))


@case("softmax over an inner part", [rand(3, 8)], lambda x: x.softmax(1), exchanges=2)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    inner(x, 1)
    exps = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
    fd.add_output(fd.ops.div(exps, fd.ops.sum(exps, [1], keepdim=True)))


@case("running sum over an inner part", [rand(3, 8)], lambda x: x.cumsum(1))
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    inner(x, 1)
    fd.add_output(fd.ops.cumsum(x, 1))


@case("reshape of an inner part", [rand(3, 8)], lambda x: x.reshape(3, 4, 2) + 1, exchanges=0)
def _(fd, mesh):
    x = tensor(fd, 3, 8)
    on(mesh, x)
    inner(x, 1)
    fd.add_output(fd.ops.add(fd.ops.reshape(x, [3, 4, 2]), 1.0))


@case("reshape of a middle part", [rand(2, 12)], lambda x: x.reshape(2, 3, 4).mT + 1, exchanges=0)
def _(fd, mesh):
    x = tensor(fd, 2, 12)
    on(mesh, x)
    middle(x, 1, 3)
    fd.add_output(fd.ops.add(fd.ops.permute(fd.ops.reshape(x, [2, 3, 4]), [0, 2, 1]), 1.0))


@case("join onto a middle part", [rand(3, 4, 2)], lambda x: x.reshape(24) + 1, exchanges=0)
def _(fd, mesh):
    x = tensor(fd, 3, 4, 2)
    on(mesh, x)
    outer(x, 1)
    out = fd.ops.add(fd.ops.reshape(x, [24]), 1.0)
    fd.add_output(out)
    on(mesh, out)
    middle(out, 0, 3)


@case("stream around a mesh dim", [rand(12, 4)], lambda x: x.neg(), exchanges=1)
def _(fd, mesh):
    x = tensor(fd, 12, 4)
    out = fd.ops.neg(x)
    fd.add_output(out)
    on(mesh, x, out)
    x.outer_split(0, 3)
    x.axis(0).parallelize(STREAM)
    outer(x, 1)
    outer(out, 0, STREAM, 3)


@case("merged dims", [rand(2, 3, 4)], lambda x: x * 3, exchanges=0, shards=[((X,), (), ())])
def _(fd, mesh):
    x = tensor(fd, 2, 3, 4)
    on(mesh, x)
    x.merge(0)
    outer(x, 0)
    fd.add_output(fd.ops.mul(x, 3.0))


@case("halves joined again", [rand(12, 4)], lambda x: x * 3, exchanges=0, shards=[((X,), ())])
def _(fd, mesh):
    x = tensor(fd, 12, 4)
    on(mesh, x)
    x.outer_split(0, 3)
    x.merge(0, 1)
    outer(x, 0)
    fd.add_output(fd.ops.mul(x, 3.0))


# --- two mesh dims -------------------------------------------------------------------------------


@case(
    "reduction over a grid",
    [rand(4, 6)],
    lambda x: x.sum(1),
    shape=(2, 2),
    exchanges=1,
    shards=[((Y,),)],
)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    out = fd.ops.sum(x, [1])
    fd.add_output(out)
    for tv in (x, out):
        on(mesh, tv)
        outer(tv, 0, Y)
        outer(tv, -1, X)


@case("nested on one dim", [rand(8, 3)], lambda x: x * 2, shape=(2, 2), shards=[((X, Y), ())])
def _(fd, mesh):
    x = tensor(fd, 8, 3)
    on(mesh, x)
    outer(x, 0, X)
    outer(x, 1, Y)
    fd.add_output(fd.ops.mul(x, 2.0))


@case("nested, one gathered", [rand(8, 3)], lambda x: x * 2, shape=(2, 2), shards=[((Y,), ())])
def _(fd, mesh):
    x = tensor(fd, 8, 3)
    out = fd.ops.mul(x, 2.0)
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0, Y)
    outer(x, 1, X)
    outer(out, 0, Y)


@case("nested, other one gathered", [rand(8, 3)], lambda x: x * 2, shape=(2, 2))
def _(fd, mesh):
    x = tensor(fd, 8, 3)
    out = fd.ops.mul(x, 2.0)
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0, Y)
    outer(x, 1, X)
    outer(out, 0, X)


@case("outer and inner of one dim", [rand(3, 8)], lambda x: x.sum(1), shape=(2, 2), exchanges=1)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    inner(x, 1, X)
    outer(x, 1, Y)
    fd.add_output(fd.ops.sum(x, [1]))


@case("grid scattered in two dims", [rand(4, 4, 4)], lambda x: x.sum(0), shape=(2, 2))
def _(fd, mesh):
    x = tensor(fd, 4, 4, 4)
    out = fd.ops.sum(x, [0])
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0, Y)
    outer(x, 1, X)
    outer(out, -1, X)
    outer(out, -3, Y)


@case("scattered over both", [rand(4, 8)], lambda x: x.sum(0), shape=(2, 2), shards=[((X, Y),)])
def _(fd, mesh):
    x = tensor(fd, 4, 8)
    out = fd.ops.sum(x, [0])
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0, Y)
    outer(x, 1, X)
    outer(out, 1, X)
    outer(out, 2, Y)


@case("three mesh dims", [rand(2, 4, 6)], lambda x: x.sum((0, 2)), shape=(1, 2, 2))
def _(fd, mesh):
    x = tensor(fd, -1, -1, -1)
    out = fd.ops.sum(x, [0, 2])
    fd.add_output(out)
    on(mesh, x, out)
    for dim, kind in ((2, X), (1, Y), (0, Z)):
        outer(x, dim, kind)
    outer(out, 1, Y)


# --- moments -------------------------------------------------------------------------------------


def _moments(x):
    mean = x.mean(1)
    return mean, ((x - mean[:, None]) ** 2).sum(1), torch.full(x.shape[:1], x.shape[1])


@case("welford over a split dim", [rand(4, 8)], _moments)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    outer(x, 1)
    for out in fd.ops.welford(x, [1]):
        fd.add_output(out)


@case("welford by rows", [rand(4, 8)], _moments, exchanges=0)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    outer(x, 0)
    for out in fd.ops.welford(x, [1]):
        fd.add_output(out)


@case("variance over split loops", [rand(4, 8)], lambda x: torch.var_mean(x, 1, correction=0))
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    var, mean = fd.ops.var_mean(x, [1], correction=0, keepdim=False)
    fd.add_output(var)
    fd.add_output(mean)
    for tv in (x, var, mean):
        on(mesh, tv)
        outer(tv, -1)


@case("variance over an inner part", [rand(4, 8)], lambda x: x.var((0, 1)))
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    inner(x, 1)
    fd.add_output(fd.ops.var(x, [0, 1], correction=1))


@case("variance over a grid", [rand(4, 8) + 100], lambda x: torch.var_mean(x), shape=(2, 2))
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    outer(x, 0, Y)
    outer(x, -1, X)
    for out in fd.ops.var_mean(x, [0, 1], correction=1):
        fd.add_output(out)


@case(
    "layer norm over a split width",
    [rand(4, 8), rand(8), rand(8)],
    lambda x, w, b: torch.nn.functional.layer_norm(x, (8,), w, b),
    shards=[((), (X,))],
)
def _(fd, mesh):
    x, w, b = tensor(fd, -1, 8), tensor(fd, 8), tensor(fd, 8)
    on(mesh, x, w, b)
    for tv in (x, w, b):
        outer(tv, -1)
    var, mean = fd.ops.var_mean(x, [1], correction=0, keepdim=True)
    normal = fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))
    rows = [fd.ops.broadcast(tv, [True, False]) for tv in (w, b)]
    fd.add_output(fd.ops.add(fd.ops.mul(normal, rows[0]), rows[1]))


@case("batch statistics", [rand(4, 3, 8)], lambda x: torch.var_mean(x, (0, 2), correction=0))
def _(fd, mesh):
    x = tensor(fd, -1, 3, -1)
    on(mesh, x)
    outer(x, 0)
    for out in fd.ops.var_mean(x, [0, 2], correction=0):
        fd.add_output(out)


@case("bool counts scattered", [rand(4, 6) > 0], lambda x: x.sum(0), shards=[((X,),)])
def _(fd, mesh):
    x = tensor(fd, 4, 6, dtype=DataType.Bool)
    out = fd.ops.sum(x, [0])
    fd.add_output(out)
    on(mesh, x, out)
    outer(x, 0)
    outer(out, -1, ParallelType.mesh_x)
