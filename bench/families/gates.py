"""Gated recurrences: a layer-normed LSTM, and RetNet's retention in its parallel form."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of
from .layers import GatedMLP, RMSNorm, merge_heads, split_heads


class Lstm(nn.Module):
    """Four steps of an LSTM whose gates and cell are normed."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.into = nn.Linear(width, 4 * hidden, bias=False)
        self.again = nn.Linear(hidden, 4 * hidden, bias=False)
        self.norms = nn.ModuleList(nn.LayerNorm(n * hidden) for n in (4, 4, 1))

    def forward(self, x: Tensor, state: Tensor, cell: Tensor) -> Tensor:
        found = []
        for step in range(x.shape[1]):
            gates = self.norms[0](self.into(x[:, step])) + self.norms[1](self.again(state))
            i, f, g, o = gates.chunk(4, dim=-1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            state = torch.sigmoid(o) * torch.tanh(self.norms[2](cell))
            found.append(state)
        return torch.stack(found, dim=1)


def _lstm(batch: int, width: int, hidden: int, steps: int = 4) -> Step:
    model = Lstm(width, hidden).to(torch.bfloat16)
    x = torch.empty(batch, steps, width, dtype=torch.bfloat16)
    state, cell = (torch.empty(batch, hidden, dtype=torch.bfloat16) for _ in range(2))
    return Step(model, (x.requires_grad_(), state, cell))


_LSTM = "batch width hidden"
LSTM = Family(
    "lstm",
    _lstm,
    {"filling": table_of(_LSTM, 4096, 512, 1024), "small": table_of(_LSTM, 128, 128, 256)},
    {"filling": table_of(_LSTM, 6, 10, 12), "small": table_of(_LSTM, 6, 10, 8)},
)


# --- RetNet --------------------------------------------------------------------------------------


def turned(x: Tensor) -> Tensor:
    """Each pair of neighbouring features (a, b) as (-b, a)."""
    first, second = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return torch.stack([-second, first], dim=-1).flatten(-2)


class RetNetBlock(nn.Module):
    """Retention with a decay for each head, normed by head and gated, and a gated MLP."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.v, self.gate = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.out = nn.Linear(2 * width, width, bias=False)
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(2))
        self.mlp = GatedMLP(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        q, k, v = (split_heads(layer(y), self.heads) for layer in (self.q, self.k, self.v))
        wide = self._retained(q, k * q.shape[-1] ** -0.5, v).float()
        mean, spread = wide.mean(-1, keepdim=True), wide.var(-1, keepdim=True, correction=0)
        normed = ((wide - mean) * torch.rsqrt(spread + 1e-5)).to(x.dtype)
        x = x + self.out(F.silu(self.gate(y)) * merge_heads(normed))
        return x + self.mlp(self.norms[1](x))

    def _retained(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        tokens, width = q.shape[2:]
        places = torch.arange(tokens, device=q.device)
        steps = torch.arange(width // 2, device=q.device).float() / (width // 2 - 1)
        rates = (1.0 / 10000.0**steps)[:, None].expand(-1, 2).flatten()
        angles = places.float()[:, None] * rates
        sin, cos = torch.sin(angles).to(q.dtype), torch.cos(angles).to(q.dtype)
        q, k = (x * cos + turned(x) * sin for x in (q, k))
        decay = torch.log(1 - 2.0 ** (-5 - torch.arange(self.heads, device=q.device).float()))
        apart = (places[:, None] - places[None, :]).float()
        mask = torch.exp(torch.where(apart >= 0, apart, 0.0) * decay[:, None, None])
        mask = torch.where(apart >= 0, mask, 0.0)
        mask = (mask / mask.sum(-1, keepdim=True).sqrt()).to(q.dtype)
        scores = (q @ k.transpose(2, 3)) * mask
        scores = scores / scores.abs().sum(-1, keepdim=True).clamp(min=1.0)
        return scores @ v


def _retnet(batch: int, tokens: int, width: int, heads: int, hidden: int) -> Step:
    block = RetNetBlock(width, heads, hidden).to(torch.bfloat16)
    x = torch.empty(batch, tokens, width, dtype=torch.bfloat16)
    return Step(block, (x.requires_grad_(),))


_RETNET = "batch tokens width heads hidden"
RETNET = Family(
    "retnet",
    _retnet,
    {
        "filling": table_of(_RETNET, 8, 512, 2048, 8, 4096),
        "small": table_of(_RETNET, 2, 128, 512, 4, 1024),
    },
    {
        "filling": table_of(_RETNET, 2, 24, 40, 4, 48),
        "small": table_of(_RETNET, 2, 24, 24, 3, 40),
    },
)

FAMILIES = (LSTM, RETNET)
