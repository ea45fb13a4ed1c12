"""Decoder language models with layer norms: GPT-2, Phi, Falcon."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .decoder_sizes import ONE, REDUCED, TINY, Sizes, decoder_table
from .family import Family, Step
from .layers import (
    MLP,
    SelfAttention,
    merge_heads,
    next_token_loss,
    repeated,
    rotary_tables,
    rotated,
    split_heads,
)


class GptBlock(nn.Module):
    """Layer norm, attention, layer norm, MLP, with dropouts."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = SelfAttention(width, heads, causal=True, dropout=dropout)
        self.mlp = MLP(width, hidden, dropout, "tanh")

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Gpt(nn.Module):
    """Learned positions; the head shares the weights of the embedding."""

    def __init__(self, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions = nn.Embedding(sizes.tokens, sizes.width)
        self.blocks = nn.ModuleList(
            GptBlock(sizes.width, sizes.heads, sizes.hidden, dropout) for _ in range(sizes.layers)
        )
        self.norm, self.dropout = nn.LayerNorm(sizes.width), dropout

    def forward(self, tokens: Tensor, labels: Any) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        x = F.dropout(x, self.dropout) if self.dropout else x
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return logits if labels is None else next_token_loss(logits, labels)


def _gpt2(infer: int = 0, **extents: int) -> Step:
    sizes = Sizes(**extents)
    model = Gpt(sizes, 0.0 if infer else 0.1).to(torch.bfloat16)
    tokens = torch.empty(sizes.batch, sizes.tokens, dtype=torch.int64)
    labels = None if infer else tokens.clone()
    limits = (sizes.vocabulary, sizes.vocabulary)
    return Step(model, (tokens, labels), training=not infer, limits=limits)


GPT2 = Family(
    "gpt2",
    _gpt2,
    {
        "filling": decoder_table(16, 1024, 768, 12, 12, 3072, 50304),
        "small": decoder_table(4, 128, 768, 12, 12, 3072, 50304),
        "decode": decoder_table(1, 64, 1600, 25, 25, 6400, 50304, infer=1),
    },
    {"filling": TINY, "small": TINY, "decode": {**TINY, "batch": 1, "infer": 1}},
)


class ParallelBlock(nn.Module):
    """Attention and MLP of one norm's result, both added; part of a head is rotated.

    ``shared`` keys and values, one head for all queries, are Falcon's.
    """

    def __init__(self, sizes: Sizes, rotary: int, shared: bool) -> None:
        super().__init__()
        self.sizes, self.rotary, self.shared = sizes, rotary, shared
        groups = 1 if shared else sizes.heads
        self.norm = nn.LayerNorm(sizes.width)
        self.qkv = nn.Linear(sizes.width, (sizes.heads + 2 * groups) * sizes.head, not shared)
        self.out = nn.Linear(sizes.width, sizes.width, not shared)
        self.mlp = MLP(sizes.width, sizes.hidden, approximate="none" if shared else "tanh")

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: Any) -> tuple[Tensor, ...]:
        sizes = self.sizes
        groups = 1 if self.shared else sizes.heads
        normed = self.norm(x)
        widths = [sizes.width, groups * sizes.head, groups * sizes.head]
        q, k, v = torch.split(self.qkv(normed), widths, dim=-1)
        q = self._rotated(split_heads(q, sizes.heads), cos, sin)
        k, v = self._rotated(split_heads(k, groups), cos, sin), split_heads(v, groups)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        times = sizes.heads // groups
        found = F.scaled_dot_product_attention(
            q, repeated(k, times), repeated(v, times), is_causal=cache is None
        )
        return x + self.out(merge_heads(found)) + self.mlp(normed), k, v

    def _rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        if self.rotary == self.sizes.head:
            return rotated(x, cos, sin)
        turned, rest = x[..., : self.rotary], x[..., self.rotary :]
        return torch.cat([rotated(turned, cos, sin), rest], dim=-1)


class ParallelDecoder(nn.Module):
    """A stack of parallel blocks."""

    def __init__(self, sizes: Sizes, rotary: int, shared: bool) -> None:
        super().__init__()
        self.rotary = rotary
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.blocks = nn.ModuleList(
            ParallelBlock(sizes, rotary, shared) for _ in range(sizes.layers)
        )
        self.norm = nn.LayerNorm(sizes.width)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, not shared)

    def forward(self, tokens: Tensor, positions: Tensor, labels: Any, *caches: Tensor) -> Any:
        x, kept = self.embedding(tokens), []
        cos, sin = rotary_tables(positions, self.rotary)
        for place, block in enumerate(self.blocks):
            x, k, v = block(x, cos, sin, caches[2 * place : 2 * place + 2] or None)
            kept += [k, v]
        logits = self.head(self.norm(x))
        return (logits, *kept) if labels is None else next_token_loss(logits, labels)


def _parallel(shared: bool, rotated_part: float, **extents: int) -> Step:
    sizes = Sizes(**extents)
    model = ParallelDecoder(sizes, int(sizes.head * rotated_part), shared).to(torch.bfloat16)
    tokens = torch.empty(sizes.batch, sizes.tokens, dtype=torch.int64)
    positions = torch.empty(sizes.tokens, dtype=torch.int64)
    if not sizes.cached:
        limits = (sizes.vocabulary, sizes.tokens, sizes.vocabulary)
        return Step(model, (tokens, positions, tokens.clone()), limits=limits)
    groups = 1 if shared else sizes.heads
    shape = (sizes.batch, groups, sizes.cached, sizes.head)
    caches = [torch.empty(shape, dtype=torch.bfloat16) for _ in range(2 * sizes.layers)]
    return Step(model, (tokens, positions, None, *caches), training=False)


def _phi(**table: int) -> Step:
    return _parallel(False, 0.5, **table)


def _falcon(**table: int) -> Step:
    return _parallel(True, 1.0, **table)


PHI = Family(
    "phi",
    _phi,
    {
        "filling": decoder_table(4, 2048, 2560, 32, 32, 10240, 51200),
        "small": decoder_table(1, 300, 1024, 16, 16, 4096, 20000),
        "decode": decoder_table(8, 1, 2560, 32, 32, 10240, 51200, cached=1023),
    },
    {**REDUCED, "small": ONE},
)
FALCON = Family(
    "falcon",
    _falcon,
    {
        "filling": decoder_table(2, 2048, 4544, 71, 1, 18176, 65024),
        "small": decoder_table(4, 100, 1216, 19, 1, 4864, 16256),
        "decode": decoder_table(64, 1, 4544, 71, 1, 18176, 65024, cached=255),
    },
    REDUCED,
)

FAMILIES = (PHI, GPT2, FALCON)
