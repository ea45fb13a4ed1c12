"""Models with a state for attention: Mamba-2, computed by chunks, and RWKV."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of
from .layers import RMSNorm


class MambaBlock(nn.Module):
    """Mamba-2: a causal convolution, a scan over chunks as products, a gated norm."""

    def __init__(self, width: int, heads: int, state: int, chunk: int) -> None:
        super().__init__()
        inner = 2 * width
        self.inner, self.heads, self.state, self.chunk = inner, heads, state, chunk
        self.norm, self.gated_norm = RMSNorm(width), RMSNorm(inner)
        self.into = nn.Linear(width, 2 * inner + 2 * state + heads, bias=False)
        mixed = inner + 2 * state
        self.conv = nn.Conv1d(mixed, mixed, 4, padding=3, groups=mixed)
        self.out = nn.Linear(inner, width, bias=False)
        self.step_bias, self.log_decay, self.skip = (
            nn.Parameter(torch.empty(heads)) for _ in range(3)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        widths = [self.inner, self.inner + 2 * self.state, self.heads]
        gate, mixed, step = torch.split(self.into(self.norm(x)), widths, dim=-1)
        mixed = F.silu(self.conv(mixed.transpose(1, 2))[..., :tokens]).transpose(1, 2)
        values, keys, queries = torch.split(mixed, [self.inner, self.state, self.state], dim=-1)
        step = F.softplus(step.float() + self.step_bias.float())
        decay = -torch.exp(self.log_decay.float()) * step
        heads = values.reshape(batch, tokens, self.heads, self.inner // self.heads)
        y = self._scan(heads * step[..., None].to(x.dtype), decay, keys, queries)
        y = (y + heads * self.skip[:, None]).reshape(batch, tokens, self.inner)
        return x + self.out(self.gated_norm(y * F.silu(gate)))

    def _scan(self, values: Tensor, decay: Tensor, keys: Tensor, queries: Tensor) -> Tensor:
        """Within chunks by masked products, between them by the chunks' last states."""
        batch, tokens, heads, width = values.shape
        chunks = tokens // self.chunk
        v = values.view(batch, chunks, self.chunk, heads, width).permute(0, 1, 3, 2, 4)
        k = keys.reshape(batch, chunks, 1, self.chunk, self.state)
        q = queries.reshape(batch, chunks, 1, self.chunk, self.state)
        sums = torch.cumsum(decay.view(batch, chunks, self.chunk, heads), dim=2)
        sums = sums.permute(0, 1, 3, 2)
        apart = sums[..., :, None] - sums[..., None, :]
        places = torch.arange(self.chunk, device=v.device)
        earlier = places[:, None] >= places[None, :]
        weights = torch.exp(torch.where(earlier, apart, float("-inf"))).to(v.dtype)
        within = ((q @ k.transpose(3, 4)) * weights) @ v
        left = torch.exp(sums[..., -1:] - sums)[..., None].to(v.dtype)
        states = (k * left).transpose(3, 4) @ v
        whole = torch.exp(sums[..., -1]).to(v.dtype)[..., None, None]
        carried, before = torch.zeros_like(states[:, 0]), []
        for chunk in range(chunks):
            before.append(carried)
            carried = carried * whole[:, chunk] + states[:, chunk]
        earlier_states = torch.stack(before, dim=1)
        between = (q @ earlier_states) * torch.exp(sums)[..., None].to(v.dtype)
        return (within + between).permute(0, 1, 3, 2, 4).reshape(batch, tokens, heads, width)


def _mamba(
    batch: int, tokens: int, width: int, heads: int, state: int, chunk: int, infer: int = 0
) -> Step:
    block = MambaBlock(width, heads, state, chunk).to(torch.bfloat16)
    x = torch.empty(batch, tokens, width, dtype=torch.bfloat16)
    return Step(block, (x if infer else x.requires_grad_(),), training=not infer)


_MAMBA = "batch tokens width heads state chunk infer"
MAMBA = Family(
    "mamba",
    _mamba,
    {
        "filling": table_of(_MAMBA, 8, 1024, 1024, 32, 128, 256, 0),
        "small": table_of(_MAMBA, 2, 256, 512, 16, 64, 64, 0),
        "decode": table_of(_MAMBA, 4, 64, 1024, 32, 128, 64, 1),
    },
    {
        "filling": table_of(_MAMBA, 2, 24, 32, 4, 12, 6, 0),
        "small": table_of(_MAMBA, 2, 24, 32, 4, 12, 6, 0),
        "decode": table_of(_MAMBA, 2, 6, 32, 4, 12, 6, 1),
    },
)


# --- RWKV ----------------------------------------------------------------------------------------


def shifted(x: Tensor) -> Tensor:
    """Each token's predecessor; zeros before the first."""
    return F.pad(x, (0, 0, 1, 0))[:, :-1]


class RwkvBlock(nn.Module):
    """Token shift, gated linear attention with decays by channel, squared ReLU for an MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mixes = nn.Parameter(torch.empty(6, width))
        self.r, self.k, self.v, self.g, self.out = (
            nn.Linear(width, width, bias=False) for _ in range(5)
        )
        self.decay = nn.Parameter(torch.empty(heads))
        self.scale, self.shift = (nn.Parameter(torch.empty(width)) for _ in range(2))
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.gate = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        before = shifted(y) - y
        r, k, v, g = (
            layer(y + before * self.mixes[place])
            for place, layer in enumerate((self.r, self.k, self.v, self.g))
        )
        x = x + self.out(self._normed(self._mixed(r, k, v)) * F.silu(g))
        y = self.norms[1](x)
        before = shifted(y) - y
        raised = F.relu(self.up(y + before * self.mixes[4]))
        return x + torch.sigmoid(self.gate(y + before * self.mixes[5])) * self.down(raised * raised)

    def _mixed(self, r: Tensor, k: Tensor, v: Tensor) -> Tensor:
        batch, tokens, width = r.shape
        r, k, v = (
            x.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for x in (r, k, v)
        )
        places = torch.arange(tokens, device=r.device)
        apart = (places[:, None] - places[None, :]).float()
        rates = -torch.exp(self.decay.float())[:, None, None]
        weights = torch.exp(torch.where(apart >= 0, rates * apart, float("-inf")))
        return ((r @ k.transpose(2, 3)) * weights.to(r.dtype)) @ v

    def _normed(self, x: Tensor) -> Tensor:
        """Each head normed by itself, then scaled and shifted by channel."""
        batch, heads, tokens, width = x.shape
        wide = x.float()
        mean = wide.mean(-1, keepdim=True)
        spread = (wide - mean).pow(2).mean(-1, keepdim=True)
        found = ((wide - mean) * torch.rsqrt(spread + 64e-5)).to(x.dtype)
        merged = found.transpose(1, 2).reshape(batch, tokens, heads * width)
        return merged * self.scale + self.shift


def _rwkv(batch: int, tokens: int, width: int, heads: int, infer: int = 0) -> Step:
    block = RwkvBlock(width, heads).to(torch.bfloat16)
    x = torch.empty(batch, tokens, width, dtype=torch.bfloat16)
    return Step(block, (x if infer else x.requires_grad_(),), training=not infer)


_RWKV = "batch tokens width heads infer"
RWKV = Family(
    "rwkv",
    _rwkv,
    {
        "filling": table_of(_RWKV, 16, 512, 2048, 32, 0),
        "small": table_of(_RWKV, 2, 128, 768, 12, 0),
        "decode": table_of(_RWKV, 2, 16, 2048, 32, 1),
    },
    {
        "filling": table_of(_RWKV, 2, 24, 32, 4, 0),
        "small": table_of(_RWKV, 2, 24, 32, 4, 0),
        "decode": table_of(_RWKV, 2, 24, 32, 4, 1),
    },
)

FAMILIES = (MAMBA, RWKV)
