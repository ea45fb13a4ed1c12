"""Networks of sound: the Conformer of speech recognition, WaveNet, and HiFi-GAN's vocoder."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of
from .layers import SelfAttention

BF16 = torch.bfloat16


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


class NormedConvolution(nn.Module):
    """A convolution along time whose weights are directions and lengths."""

    def __init__(self, channels: int, out: int, kernel: int, dilation: int = 1) -> None:
        super().__init__()
        self.direction = nn.Parameter(torch.empty(out, channels, kernel))
        self.length, self.bias = (
            nn.Parameter(torch.empty(out, 1, 1)),
            nn.Parameter(torch.empty(out)),
        )
        self.dilation, self.padding = dilation, dilation * (kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        norm = self.direction.float().square().sum((1, 2), keepdim=True).sqrt()
        weight = (self.direction * (self.length / norm)).to(x.dtype)
        return F.conv1d(x, weight, self.bias, padding=self.padding, dilation=self.dilation)


class ResidualBlock(nn.Module):
    """Pairs of convolutions of a kernel, the first of each dilated, with leaky ReLUs before."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.first, self.second = (
            nn.ModuleList(NormedConvolution(channels, channels, kernel, n) for n in dilations)
            for dilations in ((1, 3, 5), (1, 1, 1))
        )

    def forward(self, x: Tensor) -> Tensor:
        for first, second in zip(self.first, self.second, strict=True):
            x = x + second(F.leaky_relu(first(F.leaky_relu(x, 0.1)), 0.1))
        return x


class HifiGan(nn.Module):
    """Residual blocks of three receptive fields, their mean, and the waveform."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ResidualBlock(channels, kernel) for kernel in (3, 7, 11))
        self.last = NormedConvolution(channels, 1, 7)

    def forward(self, x: Tensor) -> Tensor:
        first, second, third = (block(x) for block in self.blocks)
        return torch.tanh(self.last(F.leaky_relu((first + second + third) / 3.0)))


def _conformer(batch: int, frames: int, width: int, heads: int, taps: int) -> Step:
    block = ConformerBlock(width, heads, taps).to(BF16)
    x = torch.empty(batch, frames, width, dtype=BF16)
    return Step(block, (x.requires_grad_(),))


def _wavenet(batch: int, samples: int, channels: int, features: int) -> Step:
    block = WaveNetBlock(channels, features).to(BF16)
    x = torch.empty(batch, channels, samples, dtype=BF16)
    given = torch.empty(batch, features, samples, dtype=BF16)
    return Step(block, (x.requires_grad_(), given))


def _hifigan(batch: int, channels: int, samples: int) -> Step:
    x = torch.empty(batch, channels, samples, dtype=BF16)
    return Step(HifiGan(channels).to(BF16), (x.requires_grad_(),))


_CONFORMER = "batch frames width heads taps"
_WAVENET = "batch samples channels features"
_HIFIGAN = "batch channels samples"
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
    Family(
        "hifigan",
        _hifigan,
        {"filling": table_of(_HIFIGAN, 16, 64, 8192), "small": table_of(_HIFIGAN, 4, 128, 1024)},
        {"filling": table_of(_HIFIGAN, 2, 6, 40), "small": table_of(_HIFIGAN, 2, 5, 32)},
    ),
)
