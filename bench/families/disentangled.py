"""DeBERTa: attention whose scores are of contents and of relative positions, apart."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of
from .layers import MLP, merge_heads, split_heads


def relative_places(like: Tensor, tokens: int, span: int, farthest: int) -> Tensor:
    """How far each token is behind each other one, in buckets that widen with the distance."""
    places = torch.arange(tokens, device=like.device)
    behind = places[:, None] - places[None, :]
    middle = span // 2
    near = (behind < middle) & (behind > -middle)
    distance = torch.where(near, middle - 1, behind.abs())
    scale = (middle - 1) / math.log((farthest - 1) / middle)
    far = torch.ceil(torch.log(distance.float() / middle) * scale) + middle
    return torch.where(distance <= middle, behind, far.to(torch.int64) * torch.sign(behind))


class DisentangledAttention(nn.Module):
    """Content to content, content to position, position to content; keys share the weights."""

    def __init__(self, width: int, heads: int, span: int, dropout: float) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.heads, self.span, self.dropout = heads, span, dropout

    def forward(self, x: Tensor, attended: Tensor, table: Tensor, places: Tensor) -> Tensor:
        width = x.shape[-1]
        q, k, v = (split_heads(layer(x), self.heads) for layer in (self.q, self.k, self.v))
        scale = 1.0 / math.sqrt(width // self.heads * 3)
        last = 2 * self.span - 1
        scores = q @ (k * scale).transpose(2, 3)
        place_keys = split_heads(self.k(table)[None], self.heads)
        to_place = q @ (place_keys * scale).transpose(2, 3)
        ahead = torch.clamp(places + self.span, min=0, max=last)
        scores = scores + torch.take_along_dim(to_place, ahead[None, None], dim=-1)
        place_queries = split_heads(self.q(table)[None], self.heads)
        from_place = k @ (place_queries * scale).transpose(2, 3)
        behind = torch.clamp(self.span - places, min=0, max=last)
        found = torch.take_along_dim(from_place, behind[None, None], dim=-1)
        scores = scores + found.transpose(2, 3)
        both = attended[:, None, None, :] * attended[:, None, :, None] > 0
        chances = F.softmax(torch.where(both, scores, torch.finfo(x.dtype).min), dim=-1)
        chances = F.dropout(torch.where(both, chances, 0.0), self.dropout)
        return merge_heads(chances @ v)


class DebertaLayer(nn.Module):
    """Disentangled attention and an MLP, each normed behind its residual add."""

    def __init__(self, width: int, heads: int, hidden: int, span: int, farthest: int) -> None:
        super().__init__()
        self.attention = DisentangledAttention(width, heads, span, 0.1)
        self.table, self.out = nn.Embedding(2 * span, width), nn.Linear(width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-7) for _ in range(3))
        self.mlp = MLP(width, hidden, 0.1)
        self.span, self.farthest = span, farthest

    def forward(self, x: Tensor, attended: Tensor) -> Tensor:
        places = relative_places(x, x.shape[1], self.span, self.farthest)
        table = self.norms[0](self.table.weight)
        found = self.attention(x, attended, table, places)
        x = self.norms[1](x + F.dropout(self.out(found), 0.1))
        return self.norms[2](x + self.mlp(x))


def _deberta(
    batch: int, tokens: int, width: int, heads: int, hidden: int, span: int, farthest: int
) -> Step:
    layer = DebertaLayer(width, heads, hidden, span, farthest).to(torch.bfloat16)
    x = torch.empty(batch, tokens, width, dtype=torch.bfloat16)
    attended = torch.empty(batch, tokens, dtype=torch.int64)
    return Step(layer, (x.requires_grad_(), attended), limits=(2, 2))


_DEBERTA = "batch tokens width heads hidden span farthest"
DEBERTA = Family(
    "deberta",
    _deberta,
    {
        "filling": table_of(_DEBERTA, 8, 512, 1024, 16, 4096, 256, 512),
        "small": table_of(_DEBERTA, 2, 128, 384, 6, 1536, 64, 128),
    },
    {
        "filling": table_of(_DEBERTA, 2, 24, 64, 4, 96, 8, 24),
        "small": table_of(_DEBERTA, 2, 24, 32, 4, 96, 8, 24),
    },
)

FAMILIES = (DEBERTA,)
