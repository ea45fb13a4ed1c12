"""Mixtures of experts: Mixtral, and DeepSeek with compressed keys and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .decoder_sizes import Sizes
from .decoders import Attention, Traits
from .family import Family, Step
from .layers import GatedMLP, RMSNorm, merge_heads, rotary_tables, rotated, split_heads


class DenseExperts(nn.Module):
    """All experts see all tokens; the weights of a token's best ``top`` experts are not zero."""

    def __init__(self, width: int, hidden: int, experts: int, top: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(GatedMLP(width, hidden) for _ in range(experts))
        self.top = top

    def forward(self, x: Tensor) -> Tensor:
        chances = F.softmax(self.router(x).float(), dim=-1)
        best, _ = torch.topk(chances, self.top, dim=-1)
        kept = torch.where(chances >= best[..., -1:], chances, 0.0)
        weights = (kept / kept.sum(-1, keepdim=True)).to(x.dtype)
        found = torch.zeros_like(x)
        for place, expert in enumerate(self.experts):
            found = found + expert(x) * weights[..., place : place + 1]
        return found


class RoutedExperts(nn.Module):
    """Rows are sorted by expert, each expert takes as many, and results are added back."""

    def __init__(self, width: int, hidden: int, experts: int, top: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.gate_up = nn.Parameter(torch.empty(experts, width, 2 * hidden))
        self.down = nn.Parameter(torch.empty(experts, hidden, width))
        self.experts, self.top = experts, top

    def forward(self, x: Tensor) -> Tensor:
        width = x.shape[-1]
        chances = F.softmax(self.router(x).float(), dim=-1)
        best, chosen = torch.topk(chances, self.top, dim=-1)
        best = best / best.sum(-1, keepdim=True)
        order = torch.argsort(chosen.flatten(), dim=0)
        sources = torch.div(order, self.top, rounding_mode="floor")
        given = x.index_select(0, sources).view(self.experts, -1, width)
        gate, up = torch.bmm(given, self.gate_up).chunk(2, dim=-1)
        found = torch.bmm(F.silu(gate) * up, self.down).view(-1, width)
        scale = best.flatten().index_select(0, order)[:, None]
        weighted = (found.float() * scale).to(x.dtype)
        places = sources[:, None].expand(weighted.shape)
        return torch.scatter_add(torch.zeros_like(x), 0, places, weighted)


class MixtralBlock(nn.Module):
    """A decoder's block with experts for its MLP."""

    def __init__(self, sizes: Sizes, experts: int, routed: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(RMSNorm(sizes.width) for _ in range(2))
        self.attention = Attention(sizes, Traits())
        kind = RoutedExperts if routed else DenseExperts
        self.mlp = kind(sizes.width, sizes.hidden, experts, 2)

    def forward(self, x: Tensor, positions: Tensor, *cache: Tensor) -> tuple[Tensor, ...]:
        cos, sin = rotary_tables(positions, self.attention.sizes.head)
        attended, k, v = self.attention(self.norms[0](x), cos, sin, None, cache or None)
        x = x + attended
        flat = self.norms[1](x).flatten(0, 1)
        return x + self.mlp(flat).view(x.shape), k, v


def _mixtral(experts: int, routed: int = 0, **extents: int) -> Step:
    sizes = Sizes(**extents)
    block = MixtralBlock(sizes, experts, bool(routed)).to(torch.bfloat16)
    x = torch.empty(sizes.batch, sizes.tokens, sizes.width, dtype=torch.bfloat16)
    positions = torch.empty(sizes.tokens, dtype=torch.int64)
    if not sizes.cached:
        return Step(block, (x.requires_grad_(), positions))
    shape = (sizes.batch, sizes.groups, sizes.cached, sizes.head)
    caches = [torch.empty(shape, dtype=torch.bfloat16) for _ in range(2)]
    return Step(block, (x, positions, *caches), training=False)


def _mixtral_table(
    batch: int, tokens: int, width: int, hidden: int, experts: int, **more: int
) -> dict[str, int]:
    return {
        "batch": batch,
        "tokens": tokens,
        "width": width,
        "heads": width // (16 if width < 256 else 128),
        "groups": 2,
        "hidden": hidden,
        "vocabulary": 0,
        "experts": experts,
        **more,
    }


MIXTRAL = Family(
    "mixtral",
    _mixtral,
    {
        "filling": _mixtral_table(4, 1024, 4096, 7168, 8),
        "small": _mixtral_table(2, 256, 1024, 1792, 4),
        "decode": _mixtral_table(16, 1, 4096, 7168, 8, cached=511),
    },
    {
        "filling": _mixtral_table(2, 24, 64, 96, 8),
        "small": _mixtral_table(2, 24, 64, 96, 4),
        "decode": _mixtral_table(3, 1, 64, 96, 8, cached=20),
    },
)


# --- DeepSeek ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Latent:
    """Extents of attention with compressed keys and values.

    ``plain`` and ``rotary`` are the parts of a head without and with positions; ``latent`` is the
    width that keys and values are computed from.
    """

    heads: int
    plain: int
    rotary: int
    latent: int


class LatentAttention(nn.Module):
    """Keys and values from one narrow row; one rotated part of the keys for all heads."""

    def __init__(self, width: int, sizes: Latent) -> None:
        super().__init__()
        self.sizes, heads = sizes, sizes.heads
        self.q = nn.Linear(width, heads * (sizes.plain + sizes.rotary), bias=False)
        self.down = nn.Linear(width, sizes.latent + sizes.rotary, bias=False)
        self.norm = RMSNorm(sizes.latent)
        self.up = nn.Linear(sizes.latent, heads * 2 * sizes.plain, bias=False)
        self.out = nn.Linear(heads * sizes.plain, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        sizes = self.sizes
        q = split_heads(self.q(x), sizes.heads)
        q_plain, q_turned = torch.split(q, [sizes.plain, sizes.rotary], dim=-1)
        latent, k_turned = torch.split(self.down(x), [sizes.latent, sizes.rotary], dim=-1)
        both = split_heads(self.up(self.norm(latent)), sizes.heads)
        k_plain, v = torch.split(both, [sizes.plain, sizes.plain], dim=-1)
        k_turned = rotated(k_turned[:, None], cos, sin).expand(*k_plain.shape[:3], sizes.rotary)
        q = torch.cat([q_plain, rotated(q_turned, cos, sin)], dim=-1)
        k = torch.cat([k_plain, k_turned], dim=-1)
        v = F.pad(v, (0, sizes.rotary))
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(merge_heads(torch.split(found, [sizes.plain, sizes.rotary], dim=-1)[0]))


class DeepSeekBlock(nn.Module):
    """Latent attention, routed experts beside a shared one."""

    def __init__(self, width: int, hidden: int, experts: int, sizes: Latent) -> None:
        super().__init__()
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(2))
        self.attention = LatentAttention(width, sizes)
        self.shared = GatedMLP(width, 2 * hidden)
        self.mlp = RoutedExperts(width, hidden, experts, 4)
        self.rotary = sizes.rotary

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        cos, sin = rotary_tables(positions, self.rotary)
        x = x + self.attention(self.norms[0](x), cos, sin)
        normed = self.norms[1](x)
        routed = self.mlp(normed.flatten(0, 1)).view(x.shape)
        return x + self.shared(normed) + routed


def _deepseek(
    batch: int, tokens: int, width: int, hidden: int, experts: int, latent: Any, infer: int = 0
) -> Step:
    block = DeepSeekBlock(width, hidden, experts, Latent(*latent)).to(torch.bfloat16)
    x = torch.empty(batch, tokens, width, dtype=torch.bfloat16)
    positions = torch.empty(tokens, dtype=torch.int64)
    return Step(block, (x if infer else x.requires_grad_(), positions), training=not infer)


def _deepseek_table(
    batch: int, tokens: int, width: int, hidden: int, experts: int, latent: Any, infer: int = 0
) -> dict[str, Any]:
    return {
        "batch": batch,
        "tokens": tokens,
        "width": width,
        "hidden": hidden,
        "experts": experts,
        "latent": latent,
        "infer": infer,
    }


DEEPSEEK = Family(
    "deepseek",
    _deepseek,
    {
        "filling": _deepseek_table(4, 1024, 2048, 1408, 16, (16, 128, 64, 512)),
        "small": _deepseek_table(2, 128, 1024, 704, 8, (8, 64, 32, 256)),
        "decode": _deepseek_table(2, 32, 2048, 1408, 16, (16, 128, 64, 512), 1),
    },
    {
        "filling": _deepseek_table(2, 24, 64, 48, 8, (4, 16, 8, 40)),
        "small": _deepseek_table(2, 24, 64, 48, 8, (4, 16, 8, 40)),
        "decode": _deepseek_table(2, 24, 64, 48, 8, (4, 16, 8, 40), 1),
    },
)

FAMILIES = (MIXTRAL, DEEPSEEK)
