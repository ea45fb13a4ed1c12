"""Programs as in nvFuser's test_overlap.py and test_stream.py: loops over streams."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.multidevice.cases import case, rand
from tests.multidevice.nvfuser_style import STREAM, X, on, outer, tensor
from tritonfuser import MemoryType


@case("pipelined allgather and linear", [rand(3, 2, 2, 8), rand(6, 8), rand(6)], F.linear)
def _(fd, mesh):
    x, w, b = tensor(fd, 3, 2, 2, 8), tensor(fd, 6, 8), tensor(fd, 6)
    out = fd.ops.linear(x, w, b)
    fd.add_output(out)
    on(mesh, x, w, b, out)
    x.axis(1).parallelize(X)
    out.axis(0).parallelize(STREAM)


@case("ring allgather and linear", [rand(2, 4, 8), rand(6, 8), rand(6)], F.linear)
def _(fd, mesh):
    x, w, b = tensor(fd, 2, 4, 8), tensor(fd, 6, 8), tensor(fd, 6)
    out = fd.ops.linear(x, w, b)
    fd.add_output(out)
    on(mesh, x, w, b, out)
    x.axis(0).parallelize(X)
    out.axis(0).parallelize(STREAM)


@case("column parallel linear, streams", [rand(4, 8), rand(6, 8)], F.linear, shards=[((), (X,))])
def _(fd, mesh):
    x, w = tensor(fd, -1, 8), tensor(fd, 6, 8)
    gathered = fd.ops.set(x)
    out = fd.ops.linear(gathered, w)
    fd.add_output(out)
    on(mesh, x, w, gathered, out)
    for tv in (x, w):
        outer(tv, 0)
    outer(gathered, 0, STREAM, mesh.size)
    outer(out, 1)
    outer(out, 0, STREAM, mesh.size)


@case("column parallel linear, ring", [rand(4, 8), rand(6, 8)], F.linear, shards=[((), (X,))])
def _(fd, mesh):
    x, w = tensor(fd, -1, 8), tensor(fd, 6, 8)
    gathered = fd.ops.set(x)
    out = fd.ops.linear(gathered, w)
    fd.add_output(out)
    on(mesh, x, w, gathered, out)
    for tv in (x, w):
        outer(tv, 0)
    outer(out, 1)
    gathered.set_memory_type(MemoryType.symmetric)
    for tv in (gathered, out):
        tv.outer_split(0, mesh.size)
        tv.swizzle1d(0, X)
        tv.axis(0).parallelize(STREAM)


@case("row parallel linear, streams", [rand(6, 8), rand(4, 8)], F.linear, exchanges=1)
def _(fd, mesh):
    x, w = tensor(fd, -1, 8), tensor(fd, 4, 8)
    out = fd.ops.linear(x, w)
    fd.add_output(out)
    for tv in (x, w, out):
        on(mesh, tv)
        outer(tv, -1)
    outer(x, 0, STREAM, 3)
    outer(out, 0, STREAM, 3)


@case("row parallel linear, scattered in streams", [rand(12, 8), rand(4, 8)], F.linear)
def _(fd, mesh):
    x, w = tensor(fd, 12, 8), tensor(fd, 4, 8)
    out = fd.ops.linear(x, w)
    fd.add_output(out)
    for tv in (x, w, out):
        on(mesh, tv)
        outer(tv, -1)
    outer(out, 0, STREAM, 3)
    outer(out, 1)


@case("linear, reduce scatter, ring", [rand(4, 8), rand(6, 8)], F.linear, shards=[((X,), ())])
def _(fd, mesh):
    x, w = tensor(fd, -1, 8), tensor(fd, 6, 8)
    out = fd.ops.linear(x, w)
    fd.add_output(out)
    on(mesh, x, w, out)
    for tv in (x, w):
        outer(tv, -1)
    out.outer_split(-1, mesh.size)
    local = out.rfactor([-1])
    on(mesh, local)
    local.axis(-2).parallelize(X)
    local.outer_split(0, mesh.size)
    local.swizzle1d(0, X)
    local.axis(0).parallelize(STREAM)
    out.outer_split(0, mesh.size)
    out.axis(0).parallelize(X)


@case("two products in streams", [rand(4, 8), rand(8, 6), rand(6, 6)], lambda x, w, v: x @ w @ v)
def _(fd, mesh):
    x, w, v = tensor(fd, -1, -1), tensor(fd, -1, -1), tensor(fd, -1, -1)
    mid = fd.ops.matmul(x, w)
    out = fd.ops.matmul(mid, v)
    fd.add_output(out)
    on(mesh, x, w, v, mid, out)
    for tv in (x, mid, out):
        outer(tv, 0, STREAM, 2)
    outer(v, 1)


@case("symmetric memory", [rand(4, 3)], lambda x: x.sum(0) * 2, exchanges=1)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    total = fd.ops.sum(x, [0])
    fd.add_output(fd.ops.mul(total, 2.0))
    on(mesh, x, total)
    outer(x, 0)
    for tv in (x, total):
        tv.set_memory_type(MemoryType.symmetric)


@case("streams of a split by neighbours", [rand(8, 3)], lambda x: torch.tanh(x), exchanges=0)
def _(fd, mesh):
    x = tensor(fd, -1, -1)
    on(mesh, x)
    outer(x, 0)
    x.inner_split(1, 2)
    x.axis(1).parallelize(STREAM)
    fd.add_output(fd.ops.tanh(x))
