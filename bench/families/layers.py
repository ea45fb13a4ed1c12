"""Layers that several families share, written as their published implementations are."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """RMS norm in float32; ``offset`` 1 scales by one plus the weight, as Gemma does."""

    def __init__(self, width: int, eps: float = 1e-5, offset: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps, self.offset = eps, offset

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        if self.offset:
            return (normed * (self.offset + self.weight.float())).to(x.dtype)
        return self.weight * normed.to(x.dtype)


def rotary_tables(positions: Tensor, width: int, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines [tokens, width] of the positions of tokens."""
    steps = torch.arange(0, width, 2, device=positions.device).float() / width
    angles = positions.float()[:, None] * (1.0 / base**steps)[None, :]
    both = torch.cat([angles, angles], dim=-1)
    return both.cos(), both.sin()


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions applied to [batch, heads, tokens, width]."""
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos.to(x.dtype) + turned * sin.to(x.dtype)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[batch, tokens, heads * width] as [batch, heads, tokens, width]."""
    batch, tokens, width = x.shape
    return x.view(batch, tokens, heads, width // heads).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """[batch, heads, tokens, width] as [batch, tokens, heads * width]."""
    batch, heads, tokens, width = x.shape
    return x.transpose(1, 2).reshape(batch, tokens, heads * width)


def repeated(x: Tensor, times: int) -> Tensor:
    """Each head of keys or values for ``times`` heads of queries."""
    if times == 1:
        return x
    batch, heads, tokens, width = x.shape
    wide = x[:, :, None].expand(batch, heads, times, tokens, width)
    return wide.reshape(batch, heads * times, tokens, width)


class GatedMLP(nn.Module):
    """``down(act(gate(x)) * up(x))``."""

    def __init__(self, width: int, hidden: int, act: str = "silu") -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(x)
        opened = F.silu(gate) if self.act == "silu" else F.gelu(gate, approximate="tanh")
        return self.down(opened * self.up(x))


class MLP(nn.Module):
    """Two layers with GELU between them, and a dropout behind them where there is one."""

    def __init__(
        self, width: int, hidden: int, dropout: float = 0.0, approximate: str = "none"
    ) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.dropout, self.approximate = dropout, approximate

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(F.gelu(self.up(x), approximate=self.approximate))
        return F.dropout(x, self.dropout) if self.dropout else x


class SelfAttention(nn.Module):
    """Attention of all tokens to each other or to earlier ones, from one product for q, k, v."""

    def __init__(self, width: int, heads: int, causal: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.causal, self.dropout = heads, causal, dropout

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, dim=-1))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = self.out(merge_heads(found))
        return F.dropout(x, self.dropout) if self.dropout else x


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy of all tokens, in float32."""
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
