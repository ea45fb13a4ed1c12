"""The training step in torch, differentiated by autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from tritonfuser.ops.creation import philox

from .sizes import EPS, KEEP, Sizes

Drop = Callable[[torch.Tensor], torch.Tensor]
Compiler = Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]


def loss(
    sizes: Sizes, inputs: Sequence[Any], p: Mapping[str, torch.Tensor], drop: Drop | None = None
) -> torch.Tensor:
    """The forward, in the dtype of the weights.

    Without ``drop`` the dropout mask is that of the definition.
    """
    tokens, labels, cos, sin, seed, offset = inputs
    rows, width = sizes.rows, sizes.width
    cos, sin = cos.to(p["qkv"].dtype), sin.to(p["qkv"].dtype)

    def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * weight

    def rotary(x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, -1)
        found: torch.Tensor = x * cos + torch.cat([-right, left], -1) * sin
        return found

    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.view(sizes.batch, sizes.tokens, sizes.heads, sizes.head).transpose(1, 2)

    x = F.embedding(tokens, p["embedding"]).view(rows, width)
    q, k, v = map(heads, F.linear(rms_norm(x, p["norm1"]), p["qkv"]).chunk(3, -1))
    attended = F.scaled_dot_product_attention(rotary(q), rotary(k), v, is_causal=True)
    merged = attended.transpose(1, 2).reshape(rows, width)
    drop = drop or (lambda x: _dropped(x, seed, offset))
    x = x + drop(F.linear(merged, p["proj"], p["proj_bias"]))
    n = F.layer_norm(x, (width,), p["norm2"], p["norm2_bias"], EPS)
    raised = F.gelu(F.linear(n, p["up"], p["up_bias"]), approximate="tanh")
    x = x + F.linear(raised * F.silu(F.linear(n, p["gate"])), p["down"], p["down_bias"])
    return F.cross_entropy(F.linear(rms_norm(x, p["norm3"]), p["head"]), labels)


def _dropped(x: torch.Tensor, seed: int, offset: int) -> torch.Tensor:
    return x * (philox.uniform(x.shape, seed, offset, device=x.device) < KEEP) / KEEP


def reference(
    sizes: Sizes, inputs: list[Any], dtype: torch.dtype = torch.float64
) -> list[torch.Tensor]:
    """The loss and the gradients by autograd, with weights converted to ``dtype``."""
    leaves = [x.detach().to(dtype).requires_grad_() for x in inputs[6:]]
    found = loss(sizes, inputs[:6], dict(zip(sizes.weights(), leaves, strict=True)))
    return [found.detach(), *torch.autograd.grad(found, leaves)]


def training_step(
    sizes: Sizes, inputs: Sequence[Any], compiler: Compiler | None = None
) -> Callable[[], list[torch.Tensor]]:
    """The step as a torch program: the loss and the gradients, by autograd.

    Dropout draws from torch's generator. ``compiler`` compiles the loss as a function of the
    weights.
    """
    names = list(sizes.weights())
    leaves = [x.detach().requires_grad_() for x in inputs[6:]]

    def forward(*weights: torch.Tensor) -> torch.Tensor:
        return loss(sizes, inputs[:6], dict(zip(names, weights, strict=True)), _drawn)

    run = forward if compiler is None else compiler(forward)

    def step() -> list[torch.Tensor]:
        found = run(*leaves)
        return [found.detach(), *torch.autograd.grad(found, leaves)]

    return step


def _drawn(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 1 - KEEP)
