"""A stack of transformer blocks as one definition, forward alone or with the backward.

Each block is RMS norm, rotary attention and a gated MLP, both with a residual add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch

from . import REAL, Attention, Sizes, Writer, attention, attention_backward

WEIGHTS = ("norm1", "qkv", "proj", "norm2", "gate", "up", "down")
"""The weights of the model that belong to a block."""


def weights(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The shape of each weight of a block."""
    shapes = sizes.weights()
    return {name: shapes[name] for name in WEIGHTS}


def make_inputs(sizes: Sizes, count: int, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
    """Inputs: tokens, rotary tables, the embedding, the blocks' weights, the output gradient."""
    tokens = torch.zeros(sizes.batch, sizes.tokens, dtype=torch.int64, device=device)
    tables = [torch.ones(sizes.tokens, sizes.head, device=device) for _ in range(2)]
    shapes = [(sizes.vocabulary, sizes.width), *list(weights(sizes).values()) * count]
    shapes.append((sizes.rows, sizes.width))
    return [tokens, *tables, *(torch.ones(s, dtype=dtype, device=device) for s in shapes)]


@dataclass(frozen=True)
class Saved:
    """The values that a block's backward reads from its forward."""

    attended: Attention
    x: Any
    normed: Any
    scale: Any
    raised: Any
    gated: tuple[Any, Any]
    act: Any


def forward(w: Writer, x0: Any, p: dict[str, Any], cos: Any, sin: Any) -> tuple[Any, Saved]:
    """Record a block; returns its output rows in Float."""
    ops = w.ops
    attended = attention(w, x0, p, cos, sin)
    x1 = ops.add(x0, w.wide(ops.linear(attended.merged, p["proj"])))
    normed, scale = w.rms_norm(x1, p["norm2"])
    gated = w.silu(w.wide(ops.linear(normed, p["gate"])))
    raised = w.wide(ops.linear(normed, p["up"]))
    act = w.narrow(ops.mul(gated[0], raised))
    x2 = ops.add(x1, w.wide(ops.linear(act, p["down"])))
    return x2, Saved(attended, x1, normed, scale, raised, gated, act)


def backward(
    w: Writer, grad: Any, s: Saved, p: dict[str, Any], cos: Any, sin: Any
) -> tuple[Any, dict[str, Any]]:
    """Record a block's backward: gradients of its rows and weights."""
    ops = w.ops
    grads: dict[str, Any] = {}
    d_down = w.narrow(grad)
    grads["down"] = w.weight_grad(d_down, s.act)
    d_act = w.wide(ops.matmul(d_down, p["down"]))
    d_up = w.narrow(ops.mul(d_act, s.gated[0]))
    d_gate = w.narrow(ops.mul(ops.mul(d_act, s.raised), s.gated[1]))
    grads["up"], grads["gate"] = w.weight_grad(d_up, s.normed), w.weight_grad(d_gate, s.normed)
    d_normed = w.wide(ops.add(ops.matmul(d_up, p["up"]), ops.matmul(d_gate, p["gate"])))
    d_rows, grads["norm2"] = w.rms_norm_backward(d_normed, s.x, s.scale, p["norm2"])
    d_x = ops.add(grad, d_rows)
    d_rows, found = attention_backward(w, w.narrow(d_x), s.attended, p, cos, sin)
    return ops.add(d_x, d_rows), {**grads, **found}


def define(
    fd: FusionDefinition, sizes: Sizes, count: int, dtype: torch.dtype, backwards: bool
) -> None:
    """Record the stack; with ``backwards`` the gradients of all weights are outputs too."""
    w = Writer(fd, sizes, from_torch(dtype))
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
    sizes: Sizes = REAL,
    dtype: torch.dtype = torch.bfloat16,
) -> FusionDefinition:
    """A stack of ``count`` blocks."""
    with FusionDefinition() as fd:
        define(fd, sizes, count, dtype, backwards)
    return fd
