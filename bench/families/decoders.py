"""Decoder language models with RMS norms: Llama, Mistral, Gemma-2, Qwen2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .decoder_sizes import ONE, REDUCED, TINY, TINY_DECODE, Sizes, decoder_table
from .family import Family, Step
from .layers import (
    GatedMLP,
    RMSNorm,
    merge_heads,
    next_token_loss,
    repeated,
    rotary_tables,
    rotated,
    split_heads,
)


@dataclass(frozen=True)
class Traits:
    """What sets the families apart.

    Attributes
    ----------
    window : int
        Tokens that a token sees; 0 for all of them.
    cap, last_cap : float
        Soft caps of the scores of attention and of the logits; 0 for none.
    post_norms : bool
        Whether the results of attention and MLP are normed before they are added.
    bias : bool
        Whether q, k and v have biases.
    act : str
        Activation of the gated MLP.
    offset : float
        Added to the weights of norms.
    """

    window: int = 0
    cap: float = 0.0
    last_cap: float = 0.0
    post_norms: bool = False
    bias: bool = False
    act: str = "silu"
    offset: float = 0.0


class Attention(nn.Module):
    """Grouped queries with rotary positions."""

    def __init__(self, sizes: Sizes, traits: Traits) -> None:
        super().__init__()
        width, self.sizes, self.traits = sizes.width, sizes, traits
        narrow = sizes.groups * sizes.head
        self.q = nn.Linear(width, width, bias=traits.bias)
        self.k = nn.Linear(width, narrow, bias=traits.bias)
        self.v = nn.Linear(width, narrow, bias=traits.bias)
        self.out = nn.Linear(width, width, bias=False)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, seen: Tensor | None, cache: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        sizes = self.sizes
        q = rotated(split_heads(self.q(x), sizes.heads), cos, sin)
        k = rotated(split_heads(self.k(x), sizes.groups), cos, sin)
        v = split_heads(self.v(x), sizes.groups)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        times = sizes.heads // sizes.groups
        wide_k, wide_v = repeated(k, times), repeated(v, times)
        if self.traits.cap:
            found = self._capped(q, wide_k, wide_v, seen)
        elif seen is not None:
            found = F.scaled_dot_product_attention(q, wide_k, wide_v, attn_mask=seen)
        else:
            causal = cache is None
            found = F.scaled_dot_product_attention(q, wide_k, wide_v, is_causal=causal)
        return self.out(merge_heads(found)), k, v

    def _capped(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None) -> Tensor:
        scores = (q @ k.transpose(2, 3)) * self.sizes.head**-0.5
        scores = torch.tanh(scores / self.traits.cap) * self.traits.cap
        if seen is not None:
            scores = scores + seen
        return F.softmax(scores.float(), dim=-1).to(q.dtype) @ v


class Block(nn.Module):
    """Norm, attention, norm, gated MLP, with two residual adds."""

    def __init__(self, sizes: Sizes, traits: Traits) -> None:
        super().__init__()
        norms = 4 if traits.post_norms else 2
        self.norms = nn.ModuleList(RMSNorm(sizes.width, offset=traits.offset) for _ in range(norms))
        self.attention = Attention(sizes, traits)
        self.mlp = GatedMLP(sizes.width, sizes.hidden, traits.act)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, seen: Tensor | None, cache: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        attended, k, v = self.attention(self.norms[0](x), cos, sin, seen, cache)
        if len(self.norms) == 2:
            x = x + attended
            return x + self.mlp(self.norms[1](x)), k, v
        x = x + self.norms[1](attended)
        return x + self.norms[3](self.mlp(self.norms[2](x))), k, v


class Decoder(nn.Module):
    """Embedding, blocks, norm and head; a loss in training, logits and caches in decoding."""

    def __init__(self, sizes: Sizes, traits: Traits) -> None:
        super().__init__()
        self.sizes, self.traits = sizes, traits
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes, traits) for _ in range(sizes.layers))
        self.norm = RMSNorm(sizes.width, offset=traits.offset)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)

    def forward(self, tokens: Tensor, positions: Tensor, labels: Any, *caches: Tensor) -> Any:
        x, traits = self.embedding(tokens), self.traits
        if traits.offset:
            x = x * self.sizes.width**0.5
        cos, sin = rotary_tables(positions, self.sizes.head)
        seen, kept = self._seen(positions, x), []
        for place, block in enumerate(self.blocks):
            cache = caches[2 * place : 2 * place + 2] or None
            x, k, v = block(x, cos, sin, seen, cache)
            kept += [k, v]
        logits = self.head(self.norm(x))
        if traits.last_cap:
            logits = torch.tanh(logits / traits.last_cap) * traits.last_cap
        return (logits, *kept) if labels is None else next_token_loss(logits, labels)

    def _seen(self, positions: Tensor, x: Tensor) -> Tensor | None:
        """The additive mask [batch, 1, tokens, all tokens] where attention needs one."""
        if not (self.traits.window or self.traits.cap):
            return None
        past = torch.arange(self.sizes.cached + self.sizes.tokens, device=positions.device)
        behind = positions[:, None] - past[None, :]
        hidden = behind < 0
        if self.traits.window:
            hidden = hidden | (behind >= self.traits.window)
        found = torch.zeros_like(hidden, dtype=x.dtype).masked_fill(hidden, float("-inf"))
        return found[None, None].expand(x.shape[0], 1, *found.shape)


def _decoder(traits: Traits, window: int = 0, **extents: int) -> Step:
    sizes = Sizes(**extents)
    if window:
        traits = Traits(**{**vars(traits), "window": window})
    model = Decoder(sizes, traits).to(torch.bfloat16)
    tokens = torch.empty(sizes.batch, sizes.tokens, dtype=torch.int64)
    positions = torch.empty(sizes.tokens, dtype=torch.int64)
    if not sizes.cached:
        limits = (sizes.vocabulary, sizes.tokens, sizes.vocabulary)
        return Step(model, (tokens, positions, tokens.clone()), limits=limits)
    shape = (sizes.batch, sizes.groups, sizes.cached, sizes.head)
    caches = [torch.empty(shape, dtype=torch.bfloat16) for _ in range(2 * sizes.layers)]
    return Step(model, (tokens, positions, None, *caches), training=False)


def _llama(**table: Any) -> Step:
    return _decoder(Traits(), **table)


def _mistral(**table: Any) -> Step:
    return _decoder(Traits(), **table)


def _gemma2(**table: Any) -> Step:
    traits = Traits(cap=50.0, last_cap=30.0, post_norms=True, act="gelu", offset=1.0)
    return _decoder(traits, **table)


def _qwen2(**table: Any) -> Step:
    return _decoder(Traits(bias=True), **table)


_WINDOW = {name: {**table, "window": 8} for name, table in REDUCED.items()}

LLAMA = Family(
    "llama",
    _llama,
    {
        "filling": decoder_table(4, 2048, 4096, 32, 8, 14336, 32000),
        "small": decoder_table(2, 256, 1024, 16, 4, 2816, 16000),
        "decode": decoder_table(16, 1, 4096, 32, 8, 14336, 32000, cached=1023),
    },
    REDUCED,
)
MISTRAL = Family(
    "mistral",
    _mistral,
    {
        "filling": decoder_table(2, 4096, 2560, 20, 4, 8960, 32000, window=1024),
        "small": decoder_table(1, 384, 768, 12, 4, 2048, 16000, window=128),
        "decode": decoder_table(4, 1, 4096, 32, 8, 14336, 32000, cached=2047, window=1024),
    },
    {**_WINDOW, "small": {**ONE, "window": 8}},
)
GEMMA2 = Family(
    "gemma2",
    _gemma2,
    {
        "filling": decoder_table(4, 1024, 2304, 8, 4, 9216, 64000),
        "small": decoder_table(2, 200, 640, 4, 2, 2560, 12000),
        "decode": decoder_table(32, 1, 2304, 8, 4, 9216, 64000, cached=511),
    },
    REDUCED,
)
QWEN2 = Family(
    "qwen2",
    _qwen2,
    {
        "filling": decoder_table(8, 1024, 3584, 28, 4, 18944, 50000),
        "small": decoder_table(1, 512, 896, 14, 2, 4864, 20000),
        "decode": decoder_table(1, 1, 3584, 28, 4, 18944, 50000, cached=4095),
    },
    {"filling": TINY, "small": ONE, "decode": {**TINY_DECODE, "batch": 1}},
)

FAMILIES = (LLAMA, MISTRAL, GEMMA2, QWEN2)
