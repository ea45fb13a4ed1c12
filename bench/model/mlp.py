"""A gated MLP after a layer norm, forward and backward, as recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .writer import Writer


@dataclass(frozen=True)
class Mlp:
    """The forward's result ``act``, and the values that the backward reads."""

    normed: Any
    unscaled: Any
    scale: Any
    raised_slope: Any
    raised: Any
    gated_slope: Any
    gated: Any
    act: Any


def mlp(w: Writer, x: Any, p: Mapping[str, Any]) -> Mlp:
    """Record the forward of rows in Float, up to what ``down`` projects."""
    ops = w.ops
    normed, unscaled, scale = w.layer_norm(x, p["norm2"], p["norm2_bias"])
    raised, raised_slope = w.gelu(w.wide(ops.linear(normed, p["up"], p["up_bias"])))
    gated, gated_slope = w.silu(w.wide(ops.linear(normed, p["gate"])))
    act = w.narrow(ops.mul(raised, gated))
    return Mlp(normed, unscaled, scale, raised_slope, raised, gated_slope, gated, act)


def mlp_backward(
    w: Writer, grad: Any, kept: Mlp, p: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The gradients of the rows and of all weights; ``grad`` is that of the projection of ``act``,
    in Float."""
    ops = w.ops
    d_down = w.narrow(grad)
    grads = {"down": w.weight_grad(d_down, kept.act), "down_bias": w.over_rows(grad)}
    d_act = w.wide(ops.matmul(d_down, p["down"]))
    d_up = ops.mul(ops.mul(d_act, kept.gated), kept.raised_slope)
    d_gate = w.narrow(ops.mul(ops.mul(d_act, kept.raised), kept.gated_slope))
    grads["up_bias"] = w.over_rows(d_up)
    d_up = w.narrow(d_up)
    grads["up"] = w.weight_grad(d_up, kept.normed)
    grads["gate"] = w.weight_grad(d_gate, kept.normed)
    d_normed = ops.add(ops.matmul(d_up, p["up"]), ops.matmul(d_gate, p["gate"]))
    d_rows, grads["norm2"], grads["norm2_bias"] = w.layer_norm_backward(
        w.wide(d_normed), kept.unscaled, kept.scale, p["norm2"]
    )
    return d_rows, grads
