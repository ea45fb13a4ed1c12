"""Decoder language models: Llama, Mistral, Gemma-2, Qwen2, Phi, GPT-2, Falcon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step
from .layers import (
    MLP,
    GatedMLP,
    RMSNorm,
    SelfAttention,
    merge_heads,
    next_token_loss,
    repeated,
    rotary_tables,
    rotated,
    split_heads,
)


@dataclass(frozen=True)
class Sizes:
    """Extents of a decoder; ``cached`` tokens were decoded before, 0 in training."""

    batch: int
    tokens: int
    width: int
    heads: int
    groups: int
    hidden: int
    vocabulary: int
    layers: int = 2
    cached: int = 0

    @property
    def head(self) -> int:
        return self.width // self.heads


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


def _table(
    batch: int,
    tokens: int,
    width: int,
    heads: int,
    groups: int,
    hidden: int,
    vocabulary: int,
    **more: int,
) -> dict[str, int]:
    return {
        "batch": batch,
        "tokens": tokens,
        "width": width,
        "heads": heads,
        "groups": groups,
        "hidden": hidden,
        "vocabulary": vocabulary,
        **more,
    }


_TINY = _table(2, 24, 64, 4, 2, 96, 200)
_TINY_DECODE = {**_TINY, "tokens": 1, "cached": 20}
_REDUCED = {"filling": _TINY, "small": _TINY, "decode": _TINY_DECODE}
_WINDOW = {name: {**table, "window": 8} for name, table in _REDUCED.items()}
_ONE = {**_TINY, "batch": 1}

LLAMA = Family(
    "llama",
    _llama,
    {
        "filling": _table(4, 2048, 4096, 32, 8, 14336, 32000),
        "small": _table(2, 256, 1024, 16, 4, 2816, 16000),
        "decode": _table(16, 1, 4096, 32, 8, 14336, 32000, cached=1023),
    },
    _REDUCED,
)
MISTRAL = Family(
    "mistral",
    _mistral,
    {
        "filling": _table(2, 4096, 2560, 20, 4, 8960, 32000, window=1024),
        "small": _table(1, 384, 768, 12, 4, 2048, 16000, window=128),
        "decode": _table(4, 1, 4096, 32, 8, 14336, 32000, cached=2047, window=1024),
    },
    {**_WINDOW, "small": {**_ONE, "window": 8}},
)
GEMMA2 = Family(
    "gemma2",
    _gemma2,
    {
        "filling": _table(4, 1024, 2304, 8, 4, 9216, 64000),
        "small": _table(2, 200, 640, 4, 2, 2560, 12000),
        "decode": _table(32, 1, 2304, 8, 4, 9216, 64000, cached=511),
    },
    _REDUCED,
)
QWEN2 = Family(
    "qwen2",
    _qwen2,
    {
        "filling": _table(8, 1024, 3584, 28, 4, 18944, 50000),
        "small": _table(1, 512, 896, 14, 2, 4864, 20000),
        "decode": _table(1, 1, 3584, 28, 4, 18944, 50000, cached=4095),
    },
    {"filling": _TINY, "small": _ONE, "decode": {**_TINY_DECODE, "batch": 1}},
)


# --- GPT-2, Phi, Falcon: layer norms --------------------------------------------------------------


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
        "filling": _table(16, 1024, 768, 12, 12, 3072, 50304),
        "small": _table(4, 128, 768, 12, 12, 3072, 50304),
        "decode": _table(1, 64, 1600, 25, 25, 6400, 50304, infer=1),
    },
    {"filling": _TINY, "small": _TINY, "decode": {**_TINY, "batch": 1, "infer": 1}},
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
        "filling": _table(4, 2048, 2560, 32, 32, 10240, 51200),
        "small": _table(1, 300, 1024, 16, 16, 4096, 20000),
        "decode": _table(8, 1, 2560, 32, 32, 10240, 51200, cached=1023),
    },
    {**_REDUCED, "small": _ONE},
)
FALCON = Family(
    "falcon",
    _falcon,
    {
        "filling": _table(2, 2048, 4544, 71, 1, 18176, 65024),
        "small": _table(4, 100, 1216, 19, 1, 4864, 16256),
        "decode": _table(64, 1, 4544, 71, 1, 18176, 65024, cached=255),
    },
    _REDUCED,
)

FAMILIES = (LLAMA, MISTRAL, GEMMA2, QWEN2, PHI, GPT2, FALCON)
