"""Encoders and encoder-decoders: BERT, T5, Whisper."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step
from .layers import MLP, RMSNorm, SelfAttention, merge_heads, next_token_loss, split_heads


def _ids(batch: int, tokens: int) -> Tensor:
    return torch.empty(batch, tokens, dtype=torch.int64)


class BertLayer(nn.Module):
    """Attention under a mask of padding, MLP, each normed behind its residual add."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-12) for _ in range(2))
        self.mlp = MLP(width, hidden, dropout)
        self.heads, self.dropout = heads, dropout

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (split_heads(layer(x), self.heads) for layer in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) / (x.shape[-1] // self.heads) ** 0.5 + mask
        chances = F.dropout(F.softmax(scores, dim=-1), self.dropout)
        attended = F.dropout(self.out(merge_heads(chances @ v)), self.dropout)
        x = self.norms[0](x + attended)
        return self.norms[1](x + self.mlp(x))


class Bert(nn.Module):
    """Three embeddings, layers, and the head that predicts masked tokens."""

    def __init__(
        self, tokens: int, width: int, heads: int, hidden: int, vocabulary: int, layers: int
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions, self.types = nn.Embedding(tokens, width), nn.Embedding(2, width)
        self.norm, self.last_norm = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, heads, hidden, 0.1) for _ in range(layers))
        self.transform = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.empty(vocabulary))

    def forward(self, tokens: Tensor, types: Tensor, attended: Tensor, labels: Any) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.types(types) + self.positions(places)
        x = F.dropout(self.norm(x), 0.1)
        mask = (1.0 - attended[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        x = self.last_norm(F.gelu(self.transform(x)))
        logits = F.linear(x, self.words.weight, self.bias)
        return next_token_loss(logits, labels)


def _bert(
    batch: int, tokens: int, width: int, heads: int, hidden: int, vocabulary: int, layers: int = 2
) -> Step:
    model = Bert(tokens, width, heads, hidden, vocabulary, layers).to(torch.bfloat16)
    inputs = tuple(_ids(batch, tokens) for _ in range(4))
    return Step(model, inputs, limits=(vocabulary, 2, 2, vocabulary))


def _table(
    batch: int, tokens: int, width: int, heads: int, hidden: int, vocabulary: int, **more: int
) -> dict[str, int]:
    return {
        "batch": batch,
        "tokens": tokens,
        "width": width,
        "heads": heads,
        "hidden": hidden,
        "vocabulary": vocabulary,
        **more,
    }


_TINY = _table(2, 24, 64, 4, 96, 200)

BERT = Family(
    "bert",
    _bert,
    {
        "filling": _table(32, 256, 1024, 16, 4096, 30522),
        "small": _table(8, 64, 768, 12, 3072, 30522),
    },
    {"filling": _TINY, "small": _TINY},
)


# --- T5 ------------------------------------------------------------------------------------------


class T5Attention(nn.Module):
    """Unscaled attention with a bias of relative positions; of a memory where one is given."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.heads = heads

    def forward(self, x: Tensor, bias: Tensor | None, memory: Tensor | None = None) -> Tensor:
        source = x if memory is None else memory
        q = split_heads(self.q(x), self.heads)
        k, v = split_heads(self.k(source), self.heads), split_heads(self.v(source), self.heads)
        scores = q @ k.transpose(2, 3)
        if bias is not None:
            scores = scores + bias
        chances = F.softmax(scores.float(), dim=-1).to(x.dtype)
        return self.out(merge_heads(F.dropout(chances, 0.1) @ v))


class T5Layer(nn.Module):
    """Attentions and a gated MLP, each behind a norm and before a dropout."""

    def __init__(self, width: int, heads: int, hidden: int, cross: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(RMSNorm(width, 1e-6) for _ in range(3 if cross else 2))
        self.attention = T5Attention(width, heads)
        self.cross = T5Attention(width, heads) if cross else None
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, bias: Tensor, memory: Tensor | None) -> Tensor:
        x = x + F.dropout(self.attention(self.norms[0](x), bias), 0.1)
        if self.cross is not None:
            x = x + F.dropout(self.cross(self.norms[1](x), None, memory), 0.1)
        normed = self.norms[-1](x)
        opened = F.gelu(self.gate(normed), approximate="tanh") * self.up(normed)
        return x + F.dropout(self.down(F.dropout(opened, 0.1)), 0.1)


class T5(nn.Module):
    """An encoder layer and a decoder layer, with buckets of relative positions."""

    def __init__(self, width: int, heads: int, hidden: int, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.buckets, self.causal = nn.Embedding(32, heads), nn.Embedding(32, heads)
        self.encoder = T5Layer(width, heads, hidden, False)
        self.decoder = T5Layer(width, heads, hidden, True)
        self.norms = nn.ModuleList(RMSNorm(width, 1e-6) for _ in range(2))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor, labels: Tensor) -> Tensor:
        bias = self._bias(tokens.shape[1], self.buckets, tokens, True)
        memory = self.encoder(F.dropout(self.embedding(tokens), 0.1), bias, None)
        memory = F.dropout(self.norms[0](memory), 0.1)
        bias = self._bias(targets.shape[1], self.causal, targets, False)
        x = self.decoder(F.dropout(self.embedding(targets), 0.1), bias, memory)
        return next_token_loss(self.head(self.norms[1](x)), labels)

    def _bias(self, tokens: int, table: nn.Embedding, like: Tensor, both: bool) -> Tensor:
        places = torch.arange(tokens, device=like.device)
        behind = places[:, None] - places[None, :]
        distance = behind.abs() if both else torch.clamp(behind, min=0)
        far = 8 + (torch.log(distance.float() / 8 + 1e-6) * 2.0).to(torch.int64)
        bucket = torch.where(distance < 8, distance, torch.clamp(far, max=15))
        if both:
            bucket = bucket + torch.where(behind < 0, 16, 0)
        found = table(bucket).permute(2, 0, 1)[None]
        if both:
            return found
        return torch.where(behind < 0, torch.finfo(found.dtype).min, found)


def _t5(
    batch: int, tokens: int, width: int, heads: int, hidden: int, vocabulary: int, targets: int
) -> Step:
    model = T5(width, heads, hidden, vocabulary).to(torch.bfloat16)
    inputs = (_ids(batch, tokens), _ids(batch, targets), _ids(batch, targets))
    return Step(model, inputs, limits=(vocabulary, vocabulary, vocabulary))


T5_FAMILY = Family(
    "t5",
    _t5,
    {
        "filling": _table(16, 512, 1024, 16, 2816, 32128, targets=256),
        "small": _table(4, 128, 512, 8, 1024, 32128, targets=64),
    },
    {
        "filling": _table(2, 24, 64, 4, 96, 200, targets=18),
        "small": _table(2, 24, 64, 4, 96, 200, targets=18),
    },
)


# --- Whisper -------------------------------------------------------------------------------------


class CrossAttention(nn.Module):
    """Attention of tokens to a memory, without a bias of the keys."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.q, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.v = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        q = split_heads(self.q(x), self.heads)
        k, v = split_heads(self.k(memory), self.heads), split_heads(self.v(memory), self.heads)
        return self.out(merge_heads(F.scaled_dot_product_attention(q, k, v)))


class Whisper(nn.Module):
    """Two convolutions over the spectrum, an encoder layer and a decoder layer."""

    def __init__(
        self, bands: int, frames: int, width: int, heads: int, tokens: int, vocabulary: int
    ) -> None:
        super().__init__()
        self.first = nn.Conv1d(bands, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.places = nn.Parameter(torch.empty(frames // 2, width))
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.empty(tokens, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(7))
        self.listen, self.write = SelfAttention(width, heads), SelfAttention(width, heads, True)
        self.cross = CrossAttention(width, heads)
        self.mlps = nn.ModuleList(MLP(width, 4 * width) for _ in range(2))

    def forward(self, spectrum: Tensor, tokens: Tensor, labels: Any) -> Tensor:
        heard = F.gelu(self.second(F.gelu(self.first(spectrum)))).transpose(1, 2) + self.places
        heard = heard + self.listen(self.norms[0](heard))
        heard = self.norms[2](heard + self.mlps[0](self.norms[1](heard)))
        x = self.embedding(tokens) + self.positions
        x = x + self.write(self.norms[3](x))
        x = x + self.cross(self.norms[4](x), heard)
        x = self.norms[6](x + self.mlps[1](self.norms[5](x)))
        return next_token_loss(F.linear(x, self.embedding.weight), labels)


def _whisper(
    batch: int, bands: int, frames: int, width: int, heads: int, tokens: int, vocabulary: int
) -> Step:
    model = Whisper(bands, frames, width, heads, tokens, vocabulary).to(torch.bfloat16)
    spectrum = torch.empty(batch, bands, frames, dtype=torch.bfloat16)
    inputs = (spectrum, _ids(batch, tokens), _ids(batch, tokens))
    return Step(model, inputs, limits=(2, vocabulary, vocabulary))


def _whisper_table(*extents: int) -> dict[str, int]:
    names = ("batch", "bands", "frames", "width", "heads", "tokens", "vocabulary")
    return dict(zip(names, extents, strict=True))


WHISPER = Family(
    "whisper",
    _whisper,
    {
        "filling": _whisper_table(8, 80, 3000, 1024, 16, 448, 51865),
        "small": _whisper_table(2, 80, 1000, 384, 6, 100, 51865),
    },
    {
        "filling": _whisper_table(2, 10, 60, 64, 4, 20, 200),
        "small": _whisper_table(2, 10, 60, 64, 4, 20, 200),
    },
)

FAMILIES = (BERT, T5_FAMILY, WHISPER)
