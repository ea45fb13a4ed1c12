"""Networks of sound: the Conformer of speech recognition, and WaveNet's gated convolutions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of
from .layers import SelfAttention


class FeedForward(nn.Module):
    """A layer norm and an MLP with SiLU, halved before it is added."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.5 * self.down(F.silu(self.up(self.norm(x))))


class ConvolutionModule(nn.Module):
    """A gated pointwise convolution, one along time for each channel, a batch norm, SiLU."""

    def __init__(self, width: int, taps: int) -> None:
        super().__init__()
        self.norm, self.batch_norm = nn.LayerNorm(width), nn.BatchNorm1d(width)
        self.into, self.out = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.along = nn.Conv1d(width, width, taps, padding=taps // 2, groups=width)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.into(self.norm(x).transpose(1, 2)).chunk(2, dim=1)
        y = F.silu(self.batch_norm(self.along(a * torch.sigmoid(b))))
        return x + self.out(y).transpose(1, 2)


class ConformerBlock(nn.Module):
    """Half an MLP, attention, the convolution module, half an MLP, a layer norm."""

    def __init__(self, width: int, heads: int, taps: int) -> None:
        super().__init__()
        self.first, self.last = FeedForward(width), FeedForward(width)
        self.attention = SelfAttention(width, heads)
        self.convolution = ConvolutionModule(width, taps)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = x + self.attention(self.norms[0](x))
        return self.norms[1](self.last(self.convolution(x)))


class WaveNetBlock(nn.Module):
    """Two gated dilated convolutions, conditioned on features; skips are added up."""

    def __init__(self, channels: int, features: int) -> None:
        super().__init__()
        self.dilated = nn.ModuleList(
            nn.Conv1d(channels, 2 * channels, 3, padding=n, dilation=n) for n in (1, 2)
        )
        self.conditions = nn.ModuleList(nn.Conv1d(features, 2 * channels, 1) for _ in range(2))
        self.outs = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 1) for _ in range(2))

    def forward(self, x: Tensor, features: Tensor) -> Tensor:
        skips = torch.zeros_like(x)
        for dilated, condition, out in zip(self.dilated, self.conditions, self.outs, strict=True):
            a, b = (dilated(x) + condition(features)).chunk(2, dim=1)
            residual, skip = out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, dim=1)
            x, skips = (x + residual) * 0.5**0.5, skips + skip
        return F.relu(skips * 0.5**0.5)


def _conformer(batch: int, frames: int, width: int, heads: int, taps: int) -> Step:
    block = ConformerBlock(width, heads, taps).to(torch.bfloat16)
    x = torch.empty(batch, frames, width, dtype=torch.bfloat16)
    return Step(block, (x.requires_grad_(),))


def _wavenet(batch: int, samples: int, channels: int, features: int) -> Step:
    block = WaveNetBlock(channels, features).to(torch.bfloat16)
    x = torch.empty(batch, channels, samples, dtype=torch.bfloat16)
    given = torch.empty(batch, features, samples, dtype=torch.bfloat16)
    return Step(block, (x.requires_grad_(), given))


_CONFORMER = "batch frames width heads taps"
_WAVENET = "batch samples channels features"
FAMILIES = (
    Family(
        "conformer",
        _conformer,
        {
            "filling": table_of(_CONFORMER, 16, 750, 512, 8, 31),
            "small": table_of(_CONFORMER, 2, 250, 256, 4, 31),
        },
        {
            "filling": table_of(_CONFORMER, 2, 15, 32, 4, 3),
            "small": table_of(_CONFORMER, 2, 15, 16, 4, 3),
        },
    ),
    Family(
        "wavenet",
        _wavenet,
        {
            "filling": table_of(_WAVENET, 8, 16000, 128, 80),
            "small": table_of(_WAVENET, 2, 4000, 64, 40),
        },
        {
            "filling": table_of(_WAVENET, 2, 20, 8, 5),
            "small": table_of(_WAVENET, 2, 20, 4, 3),
        },
    ),
)
