"""Definitions over a mesh: how they are recorded, what they are given, what must come out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser import DataType, FusionDefinition, ParallelType, multidevice

DeviceMesh = multidevice.DeviceMesh
X, Y = ParallelType.mesh_x, ParallelType.mesh_y


@dataclass(frozen=True)
class Case:
    """One definition.

    ``record(fd, mesh)`` records it and cuts tensors; ``inputs`` are the whole tensors;
    ``reference`` computes the whole outputs of them; ``exchanges`` is how often parts are sent.
    """

    name: str
    record: Callable[[Any, DeviceMesh], None]
    inputs: list[Any]
    reference: Callable[..., Any]
    shape: tuple[int, ...] = (2,)
    exchanges: int | None = None
    shards: list[tuple[tuple[ParallelType, ...], ...]] | None = field(default=None)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def mesh(self) -> DeviceMesh:
        return DeviceMesh(torch.arange(self.size).reshape(self.shape))

    def definition(self) -> FusionDefinition:
        with FusionDefinition() as fd:
            self.record(fd, self.mesh)
        return fd


def cut(tensor: Any, mesh: DeviceMesh, dim: int | None = None, kind: ParallelType = X) -> Any:
    """A tensor put on a mesh, one dim of it cut."""
    tensor.set_device_mesh(mesh)
    if dim is not None:
        tensor.outer_split(dim, mesh.size_of(kind))
        tensor.axis(dim).parallelize(kind)
    return tensor


def _matrix(fd: Any, dtype: DataType = DataType.Float) -> Any:
    return fd.define_tensor([-1, -1], contiguity=True, dtype=dtype)


CASES: list[Case] = []


def case(name: str, inputs: list[Any], reference: Callable[..., Any], **more: Any) -> Any:
    """Add a definition to the table."""

    def add(record: Callable[[Any, DeviceMesh], None]) -> None:
        CASES.append(Case(name, record, inputs, reference, **more))

    return add


_generator = torch.Generator().manual_seed(0)


def rand(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=_generator)


# --- pointwise -----------------------------------------------------------------------------------


@case("pointwise", [rand(4, 6)], lambda x: F.relu(x) * 2, exchanges=0, shards=[((X,), ())])
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0)
    fd.add_output(fd.ops.mul(fd.ops.relu(x), 2.0))


@case("whole bias", [rand(4, 6), rand(6)], lambda x, b: x + b, exchanges=0, shards=[((), (X,))])
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 1)
    b = fd.define_tensor([-1], contiguity=True)
    fd.add_output(fd.ops.add(x, fd.ops.broadcast(b, [True, False])))


@case("cut differently", [rand(4, 6), rand(4, 6)], torch.mul, exchanges=1, shards=[((X,), ())])
def _(fd, mesh):
    fd.add_output(fd.ops.mul(cut(_matrix(fd), mesh, 0), cut(_matrix(fd), mesh, 1)))


@case("whole output", [rand(4, 6)], lambda x: -x, exchanges=1, shards=[((), ())])
def _(fd, mesh):
    out = fd.ops.neg(cut(_matrix(fd), mesh, 0))
    cut(out, mesh)
    fd.add_output(out)


@case("other output", [rand(4, 6)], lambda x: -x, exchanges=1, shards=[((), (X,))])
def _(fd, mesh):
    out = fd.ops.neg(cut(_matrix(fd), mesh, 0))
    fd.add_output(cut(out, mesh, 1))


@case("cut output", [rand(4, 6)], lambda x: -x, exchanges=0, shards=[((), (X,))])
def _(fd, mesh):
    fd.add_output(cut(fd.ops.neg(_matrix(fd)), mesh, 1))


@case("one step a device", [rand(2, 6)], lambda x: x + x, exchanges=0)
def _(fd, mesh):
    x = _matrix(fd)
    x.set_device_mesh(mesh)
    x.axis(0).parallelize(X)
    fd.add_output(fd.ops.add(x, x))


@case("inner split", [rand(8, 6)], lambda x: x + 1, exchanges=0, shards=[((X,), ())])
def _(fd, mesh):
    x = fd.define_tensor([8, 6], contiguity=True)
    x.set_device_mesh(mesh)
    x.inner_split(0, 4)
    x.axis(0).parallelize(X)
    x.set_allocation_domain(x.get_loop_domain(), True)
    fd.add_output(fd.ops.add(x, 1.0))


@case("factories", [rand(4, 6)], lambda x: torch.triu(x) + torch.arange(6) + 3, exchanges=0)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 1)
    row = fd.ops.broadcast(fd.ops.iota(x.size(1)), [True, False])
    full = fd.ops.full(x.shape(), 3.0, DataType.Float)
    fd.add_output(fd.ops.add(fd.ops.add(fd.ops.triu(x), row), full))


@case("scalars", [rand(4, 6), 3.0, 2], lambda x, s, n: x * (s + 1) / n, exchanges=0)
def _(fd, mesh):
    x, s, n = _matrix(fd), fd.define_scalar(), fd.define_scalar(dtype=DataType.Int)
    cut(x, mesh, 0)
    top = fd.ops.mul(x, fd.ops.add(s, 1.0))
    fd.add_output(fd.ops.div(top, fd.ops.cast(n, dtype=DataType.Float)))


@case("sizes are whole", [rand(4, 6)], lambda x: x * 24, exchanges=0)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0)
    fd.add_output(fd.ops.mul(x, fd.ops.cast(fd.ops.mul(*x.shape()), dtype=DataType.Float)))


# --- reductions ----------------------------------------------------------------------------------


@case("sum of kept", [rand(4, 6)], lambda x: x.sum(1), exchanges=0, shards=[((X,),)])
def _(fd, mesh):
    fd.add_output(fd.ops.sum(cut(_matrix(fd), mesh, 0), [1]))


@case("sum across", [rand(4, 6)], lambda x: x.sum(0), exchanges=1, shards=[((),)])
def _(fd, mesh):
    fd.add_output(fd.ops.sum(cut(_matrix(fd), mesh, 0), [0]))


@case("sum of all", [rand(4, 6)], lambda x: x.sum() * 2, exchanges=1, shards=[()])
def _(fd, mesh):
    fd.add_output(fd.ops.mul(fd.ops.sum(cut(_matrix(fd), mesh, 1)), 2.0))


@case("reduce scatter", [rand(2, 8)], lambda x: x.sum(0), exchanges=1, shards=[((X,),)])
def _(fd, mesh):
    x = _matrix(fd)
    x.set_device_mesh(mesh)
    x.axis(0).parallelize(X)
    out = fd.ops.sum(x, [0])
    out.set_device_mesh(mesh)
    out.outer_split(-1, 2)
    out.axis(-2).parallelize(X)
    fd.add_output(out)


_special = torch.tensor([[1.0, float("nan")], [2.0, 3.0], [-1.0, -5.0], [4.0, -0.0]])


@case(
    "max, min, prod",
    [_special],
    lambda x: (x.amax(0), x.amin(0), x.prod(0), x.sum(0)),
    exchanges=4,
)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0)
    for made in (fd.ops.max(x, [0]), fd.ops.min(x, [0]), fd.ops.prod(x, [0]), fd.ops.sum(x, [0])):
        fd.add_output(made)


@case(
    "softmax across",
    [rand(4, 6)],
    lambda x: torch.softmax(x, 1),
    exchanges=2,
    shards=[((), (X,))],
)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 1)
    exps = fd.ops.exp(fd.ops.sub(x, fd.ops.max(x, [1], keepdim=True)))
    fd.add_output(fd.ops.div(exps, fd.ops.sum(exps, [1], keepdim=True)))


@case("variance across", [rand(4, 6)], lambda x: torch.var_mean(x, 1), exchanges=2)
def _(fd, mesh):
    for out in fd.ops.var_mean(cut(_matrix(fd), mesh, 1), [1]):
        fd.add_output(out)


@case("scan", [rand(4, 6)], lambda x: (x.cumsum(0), x.cumsum(1)), exchanges=1)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0)
    fd.add_output(fd.ops.cumsum(x, 0))
    fd.add_output(fd.ops.cumsum(x, 1))


@case("count of true", [rand(4, 6) > 0], lambda x: x.sum(0), exchanges=1)
def _(fd, mesh):
    fd.add_output(fd.ops.sum(cut(_matrix(fd, DataType.Bool), mesh, 0), [0]))


@case("largest of bools", [rand(4, 6) > 0], lambda x: x.any(0), exchanges=1)
def _(fd, mesh):
    fd.add_output(fd.ops.max(cut(_matrix(fd, DataType.Bool), mesh, 0), [0]))


@case(
    "half sums",
    [rand(4, 6).to(torch.bfloat16)],
    lambda x: x.float().sum(0).to(torch.bfloat16),
    exchanges=1,
)
def _(fd, mesh):
    x = cut(_matrix(fd, DataType.BFloat16), mesh, 0)
    total = fd.ops.sum(fd.ops.cast(x, dtype=DataType.Float), [0])
    fd.add_output(fd.ops.cast(total, dtype=DataType.BFloat16))


# --- views ---------------------------------------------------------------------------------------


@case(
    "heads apart",
    [rand(2, 3, 8)],
    lambda x: x.reshape(2, 3, 4, 2).permute(0, 2, 1, 3),
    exchanges=0,
    shards=[((), (X,), (), ())],
)
def _(fd, mesh):
    x = cut(fd.define_tensor([2, 3, 8], contiguity=True), mesh, 2)
    fd.add_output(fd.ops.permute(fd.ops.reshape(x, [2, 3, 4, 2]), [0, 2, 1, 3]))


@case(
    "heads together",
    [rand(2, 3, 4, 2)],
    lambda x: x.reshape(6, 8),
    exchanges=0,
    shards=[((), (X,))],
)
def _(fd, mesh):
    x = cut(fd.define_tensor([-1, -1, -1, -1], contiguity=True), mesh, 2)
    fd.add_output(fd.ops.reshape(x, [6, 8]))


@case("inner of a join", [rand(4, 6)], lambda x: x.reshape(24), exchanges=1, shards=[((),)])
def _(fd, mesh):
    fd.add_output(fd.ops.reshape(cut(_matrix(fd), mesh, 1), [24]))


@case("outer of a join", [rand(4, 6)], lambda x: x.reshape(24), exchanges=0, shards=[((X,),)])
def _(fd, mesh):
    fd.add_output(fd.ops.reshape(cut(_matrix(fd), mesh, 0), [24]))


@case("split too small", [rand(6)], lambda x: x.reshape(3, 2), exchanges=1, shards=[((), ())])
def _(fd, mesh):
    x = cut(fd.define_tensor([-1], contiguity=True), mesh, 0)
    fd.add_output(fd.ops.reshape(x, [3, 2]))


@case(
    "slice, pad, cat",
    [rand(4, 6)],
    lambda x: torch.cat([F.pad(x[:, 1:4], (1, 2)), x], 1),
    exchanges=0,
    shards=[((X,), ())],
)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0)
    part = fd.ops.slice(x, [0, 1], [x.size(0), 4])
    fd.add_output(fd.ops.cat([fd.ops.pad(part, [1, 2]), x], 1))


@case(
    "slice, pad, cat of what is cut",
    [rand(4, 6)],
    lambda x: torch.cat([F.pad(x[:, 1:4], (1, 2)), x], 1),
    exchanges=1,
    shards=[((), ())],
)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 1)
    part = fd.ops.slice(x, [0, 1], [x.size(0), 4])
    fd.add_output(fd.ops.cat([fd.ops.pad(part, [1, 2]), x], 1))


@case("expand", [rand(4, 1)], lambda x: x.expand(4, 6) + 1, exchanges=0, shards=[((X,), ())])
def _(fd, mesh):
    x = cut(fd.define_tensor([4, 1], contiguity=True), mesh, 0)
    fd.add_output(fd.ops.add(fd.ops.expand(x, [4, 6]), 1.0))


@case("stretched dim", [rand(1, 3).expand(4, 3)], lambda x: x * 2, exchanges=0)
def _(fd, mesh):
    x = fd.define_tensor([4, -1], contiguity=[None, True])
    fd.add_output(fd.ops.mul(cut(x, mesh, 0), 2.0))


@case("stretched row", [rand(1, 3).expand(2, 3)], lambda x: x * 2, exchanges=0)
def _(fd, mesh):
    x = fd.define_tensor([2, -1], contiguity=[None, True])
    fd.add_output(fd.ops.mul(cut(x, mesh, 0), 2.0))


_rows = torch.tensor([3, 0, 2, 1, 1, 0])


@case(
    "index of whole rows",
    [rand(4, 6), _rows],
    lambda x, i: x[i],
    exchanges=0,
    shards=[((), (X,))],
)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 1)
    i = fd.define_tensor([-1], contiguity=True, dtype=DataType.Int)
    fd.add_output(fd.ops.index_select(x, i, 0))


@case(
    "index that is cut",
    [rand(4, 6), _rows],
    lambda x, i: x[i],
    exchanges=0,
    shards=[((X,), ())],
)
def _(fd, mesh):
    x = _matrix(fd)
    i = cut(fd.define_tensor([-1], contiguity=True, dtype=DataType.Int), mesh, 0)
    fd.add_output(fd.ops.index_select(x, i, 0))


@case("index of cut rows", [rand(4, 6), _rows], lambda x, i: x[i], exchanges=1)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0)
    i = fd.define_tensor([-1], contiguity=True, dtype=DataType.Int)
    fd.add_output(fd.ops.index_select(x, i, 0))


@case(
    "gather",
    [rand(4, 6), torch.randint(0, 6, (4, 3), generator=_generator)],
    lambda x, i: x.gather(1, i),
    exchanges=0,
    shards=[((X,), ())],
)
def _(fd, mesh):
    x, i = cut(_matrix(fd), mesh, 0), cut(_matrix(fd, DataType.Int), mesh, 0)
    fd.add_output(fd.ops.gather(x, i, 1))


# --- library ops ---------------------------------------------------------------------------------


def _linear(fd: Any, bias: bool) -> list[Any]:
    x = fd.define_tensor([2, 3, 8], contiguity=True)
    w = fd.define_tensor([4, 8], contiguity=True)
    return [x, w, *([fd.define_tensor([4], contiguity=True)] if bias else [])]


_X, _W, _B = rand(2, 3, 8), rand(4, 8), rand(4)


@case("linear, columns", [_X, _W, _B], F.linear, exchanges=0, shards=[((), (), (X,))])
def _(fd, mesh):
    x, w, b = _linear(fd, True)
    cut(x, mesh)
    cut(w, mesh, 0)
    cut(b, mesh, 0)
    fd.add_output(fd.ops.linear(x, w, b))


@case("linear, rows", [_X, _W], F.linear, exchanges=1, shards=[((), (), ())])
def _(fd, mesh):
    x, w = _linear(fd, False)
    fd.add_output(fd.ops.linear(cut(x, mesh, 2), cut(w, mesh, 1)))


@case("linear, rows, bias", [_X, _W, _B], F.linear, exchanges=1, shards=[((), (), ())])
def _(fd, mesh):
    x, w, b = _linear(fd, True)
    fd.add_output(fd.ops.linear(cut(x, mesh, 2), cut(w, mesh, 1), b))


@case("linear, batch", [_X, _W, _B], F.linear, exchanges=0, shards=[((X,), (), ())])
def _(fd, mesh):
    x, w, b = _linear(fd, True)
    fd.add_output(fd.ops.linear(cut(x, mesh, 0), w, b))


@case("matmul, inner", [rand(4, 6), rand(6, 2)], torch.matmul, exchanges=1, shards=[((), ())])
def _(fd, mesh):
    fd.add_output(fd.ops.matmul(cut(_matrix(fd), mesh, 1), cut(_matrix(fd), mesh, 0)))


@case(
    "matmul, broadcast batch",
    [rand(1, 4, 6), rand(2, 6, 2)],
    torch.matmul,
    exchanges=0,
    shards=[((X,), (), ())],
)
def _(fd, mesh):
    a = fd.define_tensor([1, 4, 6], contiguity=True)
    b = cut(fd.define_tensor([2, 6, 2], contiguity=True), mesh, 0)
    fd.add_output(fd.ops.matmul(a, b))


@case("matmul with itself", [rand(4, 4)], lambda x: x @ x, exchanges=1, shards=[((X,), ())])
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0)
    fd.add_output(fd.ops.matmul(x, x))


@case(
    "perceptron",
    [rand(2, 4), rand(8, 4), rand(4, 8), rand(4)],
    lambda x, a, b, c: F.linear(F.gelu(F.linear(x, a)), b, c) + x,
    exchanges=1,
    shards=[((), ())],
)
def _(fd, mesh):
    x, a, b = _matrix(fd), cut(_matrix(fd), mesh, 0), cut(_matrix(fd), mesh, 1)
    c = fd.define_tensor([-1], contiguity=True)
    h = fd.ops.linear(x, a)
    h = fd.ops.mul(h, fd.ops.mul(fd.ops.add(fd.ops.erf(fd.ops.mul(h, 0.5**0.5)), 1.0), 0.5))
    fd.add_output(fd.ops.add(fd.ops.linear(h, b, c), x))


@case(
    "sorts",
    [rand(4, 6)],
    lambda x: (torch.topk(x, 2, 1)[0], torch.argsort(x, 1)),
    exchanges=0,
)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0)
    fd.add_output(fd.ops.topk(x, 2, 1, sorted=True)[0])
    fd.add_output(fd.ops.argsort(x, 1))


_Q, _K, _V = (rand(2, 4, 3, 8) for _ in range(3))


@case(
    "attention by heads",
    [_Q, _K, _V],
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    exchanges=0,
    shards=[((), (X,), (), ())],
)
def _(fd, mesh):
    qkv = [cut(fd.define_tensor([2, 4, 3, 8], contiguity=True), mesh, 1) for _ in range(3)]
    fd.add_output(fd.ops.sdpfa_fwd(*qkv, is_causal=True)[0])


@case(
    "attention with a bias",
    [_Q, _K, _V, rand(4, 3, 3)],
    lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, b),
    exchanges=0,
)
def _(fd, mesh):
    qkv = [cut(fd.define_tensor([2, 4, 3, 8], contiguity=True), mesh, 1) for _ in range(3)]
    bias = fd.define_tensor([4, 3, 3], contiguity=True)
    fd.add_output(fd.ops.sdpfa_fwd(*qkv, bias=bias)[0])


# --- grids ---------------------------------------------------------------------------------------


def _tile(fd: Any, mesh: DeviceMesh) -> Any:
    x = cut(_matrix(fd), mesh, 0, Y)
    x.outer_split(2, 2)
    x.axis(2).parallelize(X)
    return x


@case(
    "grid",
    [rand(4, 6)],
    lambda x: x - x.mean(1, keepdim=True),
    shape=(2, 2),
    exchanges=1,
    shards=[((Y,), (X,))],
)
def _(fd, mesh):
    x = _tile(fd, mesh)
    mean = fd.ops.div(fd.ops.sum(x, [1], keepdim=True), 6.0)
    fd.add_output(fd.ops.sub(x, mean))


@case("grid, all summed", [rand(4, 6)], lambda x: x.sum(), shape=(2, 2), exchanges=1)
def _(fd, mesh):
    fd.add_output(fd.ops.sum(_tile(fd, mesh)))


@case(
    "one dim over both",
    [rand(8, 3)],
    lambda x: (x + 1, x.sum(0)),
    shape=(2, 2),
    exchanges=1,
    shards=[((Y, X), ()), ((),)],
)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0, Y)
    x.outer_split(1, 2)
    x.axis(1).parallelize(X)
    fd.add_output(fd.ops.add(x, 1.0))
    fd.add_output(fd.ops.sum(x, [0]))


@case(
    "grid turned",
    [rand(4, 6)],
    lambda x: x.t() * 2,
    shape=(2, 3),
    exchanges=1,
    shards=[((Y,), ())],
)
def _(fd, mesh):
    x = cut(_matrix(fd), mesh, 0, Y)
    x.outer_split(2, 3)
    x.axis(2).parallelize(X)
    out = fd.ops.mul(fd.ops.permute(x, [1, 0]), 2.0)
    fd.add_output(cut(out, mesh, 0, Y))
