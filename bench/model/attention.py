"""Rotary attention after an RMS norm, forward and backward, as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .writer import Writer


@dataclass(frozen=True)
class Attention:
    """The forward's result ``merged``, and the values that the backward reads."""

    x: Any
    normed: Any
    scale: Any
    heads: tuple[Any, Any, Any]
    attended: Any
    total: Any
    seed: Any
    offset: Any
    merged: Any


def attention(w: Writer, x: Any, p: Mapping[str, Any], cos: Any, sin: Any) -> Attention:
    """Record the forward of rows in Float; ``p`` holds the weights ``norm1`` and ``qkv``."""
    ops, rows, width = w.ops, w.sizes.rows, w.sizes.width
    normed, scale = w.rms_norm(x, p["norm1"])
    qkv = ops.linear(normed, p["qkv"])
    parts = [ops.slice(qkv, [0, i * width], [rows, (i + 1) * width]) for i in range(3)]
    q, k, v = (w.to_heads(part) for part in parts)
    q, k = w.rotary(q, cos, sin), w.rotary(k, cos, sin)
    attended, total, seed, offset = ops.sdpfa_fwd(q, k, v, dropout_p=0.0, is_causal=True)
    merged = w.from_heads(attended)
    return Attention(x, normed, scale, (q, k, v), attended, total, seed, offset, merged)


def attention_backward(
    w: Writer, grad: Any, kept: Attention, p: Mapping[str, Any], cos: Any, sin: Any
) -> tuple[Any, dict[str, Any]]:
    """The gradients of the rows and of ``proj``, ``qkv`` and ``norm1``.

    ``grad`` is the gradient of the projection of ``merged``, in the 16-bit dtype.
    """
    ops = w.ops
    grads = {"proj": w.weight_grad(grad, kept.merged)}
    d_attended = w.to_heads(ops.matmul(grad, p["proj"]))
    saved = (d_attended, *kept.heads, kept.attended, kept.total)
    d_q, d_k, d_v = ops.sdpfa_bwd(*saved, 0.0, True, kept.seed, kept.offset, None)
    d_q, d_k = w.rotary_backward(d_q, cos, sin), w.rotary_backward(d_k, cos, sin)
    d_qkv = ops.cat([w.from_heads(d) for d in (d_q, d_k, d_v)], dim=1)
    grads["qkv"] = w.weight_grad(d_qkv, kept.normed)
    d_normed = w.wide(ops.matmul(d_qkv, p["qkv"]))
    d_rows, grads["norm1"] = w.rms_norm_backward(d_normed, kept.x, kept.scale, p["norm1"])
    return d_rows, grads
