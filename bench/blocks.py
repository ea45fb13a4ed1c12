"""A stack of transformer blocks as one definition, forward or with its backward: how it grows.

Each block is an RMS norm, rotary attention and a gated MLP, both with a residual; the pieces are
those of ``bench.model``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition

from .model import FROM_TORCH, Sizes, Writer

SIZES = Sizes(batch=2, tokens=1024, width=1024, heads=16, hidden=4096, vocabulary=32000)


def weights(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The shape of each weight of a block."""
    d, f = sizes.width, sizes.hidden
    return {
        "norm1": (d,),
        "qkv": (3 * d, d),
        "proj": (d, d),
        "norm2": (d,),
        "gate": (f, d),
        "up": (f, d),
        "down": (d, f),
    }


def make_inputs(sizes: Sizes, count: int, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    """Tokens, rotary tables, the embedding, the blocks' weights, the gradient of the result."""
    tokens = torch.zeros(sizes.batch, sizes.tokens, dtype=torch.int64, device=device)
    tables = [torch.ones(sizes.tokens, sizes.head, device=device) for _ in range(2)]
    shapes = [(sizes.vocabulary, sizes.width), *list(weights(sizes).values()) * count]
    shapes.append((sizes.rows, sizes.width))
    return [tokens, *tables, *(torch.ones(s, dtype=dtype, device=device) for s in shapes)]


@dataclass(frozen=True)
class Saved:
    """What a block's backward takes from its forward."""

    x0: Any
    n1: Any
    scale1: Any
    attention: tuple[Any, ...]
    merged: Any
    x1: Any
    n2: Any
    scale2: Any
    raised: Any
    gated: tuple[Any, Any]
    act: Any


def forward(w: Writer, x0: Any, p: dict[str, Any], cos: Any, sin: Any) -> tuple[Any, Saved]:
    """The rows behind a block, in Float."""
    ops, rows, width = w.ops, w.sizes.rows, w.sizes.width
    n1, scale1 = w.rms_norm(x0, p["norm1"])
    qkv = ops.linear(n1, p["qkv"])
    parts = [ops.slice(qkv, [0, i * width], [rows, (i + 1) * width]) for i in range(3)]
    q, k, v = (w.to_heads(part) for part in parts)
    q, k = w.rotary(q, cos, sin), w.rotary(k, cos, sin)
    attended, total, seed, at = ops.sdpfa_fwd(q, k, v, dropout_p=0.0, is_causal=True)
    merged = w.from_heads(attended)
    x1 = ops.add(x0, w.wide(ops.linear(merged, p["proj"])))
    n2, scale2 = w.rms_norm(x1, p["norm2"])
    gated = w.silu(w.wide(ops.linear(n2, p["gate"])))
    raised = w.wide(ops.linear(n2, p["up"]))
    act = w.narrow(ops.mul(gated[0], raised))
    x2 = ops.add(x1, w.wide(ops.linear(act, p["down"])))
    attention = (q, k, v, attended, total, seed, at)
    return x2, Saved(x0, n1, scale1, attention, merged, x1, n2, scale2, raised, gated, act)


def backward(
    w: Writer, grad: Any, s: Saved, p: dict[str, Any], cos: Any, sin: Any
) -> tuple[Any, dict[str, Any]]:
    """The gradients of a block's rows and of its weights."""
    ops = w.ops
    grads: dict[str, Any] = {}
    d_down = w.narrow(grad)
    grads["down"] = w.weight_grad(d_down, s.act)
    d_act = w.wide(ops.matmul(d_down, p["down"]))
    d_up = w.narrow(ops.mul(d_act, s.gated[0]))
    d_gate = w.narrow(ops.mul(ops.mul(d_act, s.raised), s.gated[1]))
    grads["up"], grads["gate"] = w.weight_grad(d_up, s.n2), w.weight_grad(d_gate, s.n2)
    d_n2 = w.wide(ops.add(ops.matmul(d_up, p["up"]), ops.matmul(d_gate, p["gate"])))
    d_rows, grads["norm2"] = w.rms_norm_backward(d_n2, s.x1, s.scale2, p["norm2"])
    d_x1 = ops.add(grad, d_rows)
    d_proj = w.narrow(d_x1)
    grads["proj"] = w.weight_grad(d_proj, s.merged)
    d_attended = w.to_heads(ops.matmul(d_proj, p["proj"]))
    q, k, v, attended, total, seed, at = s.attention
    saved = (d_attended, q, k, v, attended, total)
    d_q, d_k, d_v = ops.sdpfa_bwd(*saved, 0.0, True, seed, at, None)
    d_q, d_k = w.rotary_backward(d_q, cos, sin), w.rotary_backward(d_k, cos, sin)
    d_qkv = ops.cat([w.from_heads(d) for d in (d_q, d_k, d_v)], dim=1)
    grads["qkv"] = w.weight_grad(d_qkv, s.n1)
    d_n1 = w.wide(ops.matmul(d_qkv, p["qkv"]))
    d_rows, grads["norm1"] = w.rms_norm_backward(d_n1, s.x0, s.scale1, p["norm1"])
    return ops.add(d_x1, d_rows), grads


def define(
    fd: FusionDefinition, sizes: Sizes, count: int, dtype: torch.dtype, backwards: bool
) -> None:
    """The rows behind the last block; with ``backwards`` the gradients of all weights too."""
    w = Writer(fd, sizes, FROM_TORCH[dtype])
    ops, rows, width = fd.ops, sizes.rows, sizes.width
    tokens = w.tensor((sizes.batch, sizes.tokens), DataType.Int)
    cos, sin = (w.tensor((sizes.tokens, sizes.head), DataType.Float) for _ in range(2))
    embedding = w.tensor((sizes.vocabulary, width), w.dtype)
    shapes = weights(sizes)
    blocks = [{name: w.tensor(s, w.dtype) for name, s in shapes.items()} for _ in range(count)]
    grad = w.wide(w.tensor((rows, width), w.dtype))
    x = w.wide(ops.reshape(ops.embedding_fwd(tokens, embedding), new_shape=[rows, width]))
    kept: list[Saved] = []
    for p in blocks:
        x, saved = forward(w, x, p, cos, sin)
        kept.append(saved)
    fd.add_output(w.narrow(x))
    if not backwards:
        return
    for p, saved in zip(reversed(blocks), reversed(kept), strict=True):
        grad, grads = backward(w, grad, saved, p, cos, sin)
        for made in grads.values():
            fd.add_output(made)
    fd.add_output(w.narrow(grad))


def record(
    count: int,
    *,
    backwards: bool = False,
    sizes: Sizes = SIZES,
    dtype: torch.dtype = torch.bfloat16,
) -> FusionDefinition:
    """A stack of ``count`` blocks."""
    with FusionDefinition() as fd:
        define(fd, sizes, count, dtype, backwards)
    return fd
