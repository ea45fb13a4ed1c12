"""Programs as in nvFuser's test_transformer.py: attention over heads, layers of transformers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.multidevice.cases import case, rand
from tests.multidevice.nvfuser_style import X, Y, Z, inner, middle, on, outer, tensor
from tritonfuser import DataType

B, S, H, E = 2, 3, 4, 8


def _forward_backward(grad, q, k, v):
    given = [t.detach().requires_grad_() for t in (q, k, v)]
    out = F.scaled_dot_product_attention(*given, is_causal=True)
    return (out.detach(), *torch.autograd.grad(out, given, grad))


def _attention(fd: Any, tensors: list[Any]) -> None:
    grad, q, k, v = tensors
    p = fd.define_scalar(0.0, dtype=DataType.Double)
    causal = fd.define_scalar(True, dtype=DataType.Bool)
    out, log_sums, seed, offset = fd.ops.sdpfa_fwd(q, k, v, p, causal, scale=None)
    grads = fd.ops.sdpfa_bwd(grad, q, k, v, out, log_sums, p, causal, seed, offset, None)
    for made in (out, *grads):
        fd.add_output(made)


_HEADS = [rand(B, H, S, E) for _ in range(4)]
_SPREAD = [((), (X,), (), ())] * 4


@case("attention, BHSE", _HEADS, _forward_backward, exchanges=0, shards=_SPREAD)
def _(fd, mesh):
    tensors = [tensor(fd, -1, H, -1, E) for _ in range(4)]
    _attention(fd, tensors)
    for tv in tensors:
        on(mesh, tv)
        outer(tv, 1)
        tv.set_allocation_domain(tv.get_loop_domain(), True)


_ROWS = [rand(B, S, H, E).transpose(1, 2) for _ in range(4)]


@case("attention, BSHE", _ROWS, _forward_backward, exchanges=0, shards=_SPREAD)
def _(fd, mesh):
    tensors = [tensor(fd, -1, H, -1, E, stride_order=[3, 1, 2, 0]) for _ in range(4)]
    _attention(fd, tensors)
    for tv in tensors:
        on(mesh, tv)
        outer(tv, 1)
        # [b, d, h/d, s, e] lies as [d, b, s, h/d, e].
        tv.reorder({1: 0, 2: 3, 3: 2})
        tv.set_allocation_domain(tv.get_loop_domain(), True)


_STACKED = [rand(2, B, H // 2, S, E) for _ in range(4)]


@case("attention, heads of devices", _STACKED, _forward_backward, exchanges=0)
def _(fd, mesh):
    tensors = [tensor(fd, 2, -1, H // 2, -1, E) for _ in range(4)]
    _attention(fd, tensors)
    for tv in tensors:
        on(mesh, tv)
        tv.axis(0).parallelize(X)


@case("attention, inner part of the heads", _HEADS, _forward_backward, exchanges=0)
def _(fd, mesh):
    tensors = [tensor(fd, -1, H, -1, E) for _ in range(4)]
    _attention(fd, tensors)
    for tv in tensors:
        on(mesh, tv)
        inner(tv, 1)


@case("attention, batch and heads", _HEADS, _forward_backward, shape=(2, 2), exchanges=0)
def _(fd, mesh):
    tensors = [tensor(fd, -1, H, -1, E) for _ in range(4)]
    _attention(fd, tensors)
    for tv in tensors:
        on(mesh, tv)
        outer(tv, 1, X)
        outer(tv, 0, Y)


@case("attention, split rows", [rand(B, H, 4, E) for _ in range(4)], _forward_backward)
def _(fd, mesh):
    tensors = [tensor(fd, -1, H, -1, E) for _ in range(4)]
    _attention(fd, tensors)
    for tv in tensors:
        on(mesh, tv)
        outer(tv, 2)


# --- layers --------------------------------------------------------------------------------------

W = H * E
_LAYER = [rand(B, S * 2, W), rand(3 * W, W) / 6, rand(3 * W), rand(W, W) / 6, rand(W)]


def _self_attention(x, w0, b0, w1, b1):
    qkv = F.linear(x, w0, b0).unflatten(-1, (3, H, E)).unbind(2)
    heads = [t.transpose(1, 2) for t in qkv]
    out = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
    return F.linear(out, w1, b1) + x


def _mha(fd: Any) -> tuple[Any, list[Any]]:
    x, w0, b0 = tensor(fd, B, S * 2, W), tensor(fd, 3 * W, W), tensor(fd, 3 * W)
    w1, b1 = tensor(fd, W, W), tensor(fd, W)
    qkv = fd.ops.reshape(fd.ops.linear(x, w0, b0), [B, S * 2, 3, H, E])
    parts = [fd.ops.slice(qkv, [0, 0, p, 0, 0], [B, S * 2, p + 1, H, E]) for p in range(3)]
    heads = [fd.ops.permute(fd.ops.squeeze(part, [2]), [0, 2, 1, 3]) for part in parts]
    out = fd.ops.sdpfa_fwd(*heads, dropout_p=0.0, is_causal=True)[0]
    rows = fd.ops.reshape(fd.ops.permute(out, [0, 2, 1, 3]), [B, S * 2, W])
    made = fd.ops.add(fd.ops.linear(rows, w1, b1), x)
    fd.add_output(made)
    return made, [x, w0, b0, w1, b1]


@case("self attention, heads inside Q, K and V", _LAYER, _self_attention, exchanges=1)
def _(fd, mesh):
    _, (x, w0, b0, w1, b1) = _mha(fd)
    on(mesh, x, w0, b0, w1, b1)
    middle(w0, 0, 3)
    middle(b0, 0, 3)
    outer(w1, 1)


@case("self attention, sequence parallel", _LAYER, _self_attention, shards=[((), (X,), ())])
def _(fd, mesh):
    out, (x, w0, b0, w1, b1) = _mha(fd)
    on(mesh, x, w0, b0, w1, b1, out)
    outer(x, 1)
    middle(w0, 0, 3)
    middle(b0, 0, 3)
    outer(w1, 1)
    outer(out, 1)


@case("self attention, fused weights cut anywhere", _LAYER, _self_attention)
def _(fd, mesh):
    _, (x, w0, b0, w1, b1) = _mha(fd)
    on(mesh, x, w0, b0, w1, b1)
    outer(w0, 0)
    outer(b0, 0)
    outer(w1, 0)


def _triangle(z, mask, w, v):
    normal = F.layer_norm(z, z.shape[-1:])
    a, b = (F.linear(normal, t) * mask[..., None] for t in (w, v))
    return torch.einsum("bikc,bjkc->bijc", a, b)


@case(
    "triangle update",
    [rand(1, 4, 4, 6), rand(1, 4, 4), rand(6, 6), rand(6, 6)],
    _triangle,
    shape=(1, 2, 2),
    shards=[((Z,), (Y,), (X,), ())],
)
def _(fd, mesh):
    z, mask = tensor(fd, -1, -1, -1, 6), tensor(fd, -1, -1, -1)
    weights = [tensor(fd, 6, 6) for _ in range(2)]
    var, mean = fd.ops.var_mean(z, [-1], correction=0, keepdim=True)
    normal = fd.ops.mul(fd.ops.sub(z, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))
    shown = fd.ops.broadcast(mask, [False, False, False, True])
    a, b = (fd.ops.mul(fd.ops.linear(normal, w), shown) for w in weights)
    a, b = fd.ops.permute(a, [0, 3, 1, 2]), fd.ops.permute(b, [0, 3, 2, 1])
    out = fd.ops.permute(fd.ops.matmul(a, b), [0, 2, 3, 1])
    fd.add_output(out)
    on(mesh, z, mask, *weights, out)
    for tv in (z, mask, out):
        for dim, kind in ((2, X), (1, Y), (0, Z)):
            outer(tv, dim, kind)


_TOKENS = torch.tensor([[3, 0, 7], [2, 5, 1]])


@case("embedding of a split width", [_TOKENS, rand(8, 6)], F.embedding, exchanges=0)
def _(fd, mesh):
    tokens, w = tensor(fd, -1, -1, dtype=DataType.Int), tensor(fd, 8, 6)
    on(mesh, tokens, w)
    outer(w, 1)
    fd.add_output(fd.ops.embedding_fwd(tokens, w))


@case("embedding of a split vocabulary", [_TOKENS, rand(8, 6)], F.embedding, exchanges=1)
def _(fd, mesh):
    tokens, w = tensor(fd, -1, -1, dtype=DataType.Int), tensor(fd, 8, 6)
    on(mesh, tokens, w)
    outer(w, 0)
    fd.add_output(fd.ops.embedding_fwd(tokens, w))


def _grouped(x, w, offsets):
    ends = offsets.tolist()
    return torch.cat(
        [x[a:b] @ w[g] for g, (a, b) in enumerate(zip([0, *ends], ends, strict=False))]
    )


@case(
    "experts of split columns",
    [rand(6, 4).bfloat16(), rand(2, 4, 8).bfloat16(), torch.tensor([2, 6], dtype=torch.int32)],
    _grouped,
)
def _(fd, mesh):
    x, w = (tensor(fd, *shape, dtype=DataType.BFloat16) for shape in ((-1, 4), (2, 4, 8)))
    offsets = tensor(fd, 2, dtype=DataType.Int32)
    on(mesh, x, w, offsets)
    outer(w, -1)
    fd.add_output(fd.ops.grouped_mm(x, w, offsets))
