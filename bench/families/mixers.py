"""Image networks that mix tokens without attention, and mobile ones.

Sizes named ``filling`` are channels last where images are, ``small`` ones channels first.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of
from .layers import MLP


class MixerBlock(nn.Module):
    """An MLP along the tokens of each channel, and one along the channels of each token."""

    def __init__(self, tokens: int, width: int, across: int, hidden: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.tokens, self.channels = MLP(tokens, across), MLP(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norms[1](x))


class Mixer(nn.Module):
    """Two blocks, the mean over tokens, and a classifier."""

    def __init__(self, tokens: int, width: int, across: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(MixerBlock(tokens, width, across, hidden) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x).mean(1)).float(), labels)


def around(x: Tensor) -> Tensor:
    """The sum of each point of an image and its up to eight neighbours."""
    padded = F.pad(x, (1, 1, 1, 1))
    rows = padded[:, :, :-2] + padded[:, :, 1:-1] + padded[:, :, 2:]
    return rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]


class PoolBlock(nn.Module):
    """The mean of a point's neighbourhood less the point, and an MLP; both scaled by a vector."""

    def __init__(self, channels: int, factor: int) -> None:
        super().__init__()
        wide = factor * channels
        self.norms = nn.ModuleList(nn.GroupNorm(1, channels) for _ in range(2))
        self.up, self.down = nn.Conv2d(channels, wide, 1), nn.Conv2d(wide, channels, 1)
        self.scales = nn.Parameter(torch.empty(2, channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[0](x)
        counts = around(torch.ones(1, 1, *x.shape[2:], dtype=x.dtype, device=x.device))
        x = x + self.scales[0][:, None, None] * (around(y) / counts - y)
        y = self.down(F.gelu(self.up(self.norms[1](x))))
        return x + self.scales[1][:, None, None] * y


class MobileBlock(nn.Module):
    """Wide depthwise convolutions with hard swish, and channels scaled by a hard sigmoid."""

    def __init__(self, channels: int, wide: int, kernel: int) -> None:
        super().__init__()
        self.expand = nn.Conv2d(channels, wide, 1, bias=False)
        self.deep = nn.Conv2d(wide, wide, kernel, padding=kernel // 2, groups=wide, bias=False)
        self.project = nn.Conv2d(wide, channels, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(n, eps=1e-3) for n in (wide, wide, channels))
        self.squeeze, self.excite = nn.Conv2d(wide, wide // 4, 1), nn.Conv2d(wide // 4, wide, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardswish(self.norms[0](self.expand(x)))
        y = F.hardswish(self.norms[1](self.deep(y)))
        scale = self.excite(F.relu(self.squeeze(y.mean((2, 3), keepdim=True))))
        return x + self.norms[2](self.project(F.hardsigmoid(scale) * y))


class ShuffleBlock(nn.Module):
    """Half of the channels through three convolutions; then the halves' channels alternate."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.into, self.out = (nn.Conv2d(half, half, 1, bias=False) for _ in range(2))
        self.deep = nn.Conv2d(half, half, 3, padding=1, groups=half, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(half) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        kept, y = x.chunk(2, dim=1)
        y = self.norms[1](self.deep(F.relu(self.norms[0](self.into(y)))))
        y = torch.cat([kept, F.relu(self.norms[2](self.out(y)))], dim=1)
        y = y.reshape(batch, 2, channels // 2, height, width).transpose(1, 2)
        return y.reshape(batch, channels, height, width)


class DenseLayer(nn.Module):
    """Few channels more from all earlier ones: norms and ReLU before both convolutions."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (channels, 4 * growth))
        self.first = nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.second = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, *found: Tensor) -> Tensor:
        y = self.first(F.relu(self.norms[0](torch.cat(found, dim=1))))
        return self.second(F.relu(self.norms[1](y)))


class DenseBlock(nn.Module):
    """Four layers, and the transition that halves the channels and the image."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        out = channels + 4 * growth
        self.layers = nn.ModuleList(DenseLayer(channels + n * growth, growth) for n in range(4))
        self.norm, self.conv = nn.BatchNorm2d(out), nn.Conv2d(out, out // 2, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        found = [x]
        for layer in self.layers:
            found = [*found, layer(*found)]
        y = self.conv(F.relu(self.norm(torch.cat(found, dim=1))))
        batch, channels, height, width = y.shape
        return y.reshape(batch, channels, height // 2, 2, width // 2, 2).mean((3, 5))


def _mlp_mixer(batch: int, tokens: int, width: int, **extents: int) -> Step:
    model = Mixer(tokens, width, **extents).to(torch.bfloat16)
    x = torch.empty(batch, tokens, width, dtype=torch.bfloat16).requires_grad_()
    labels = torch.empty(batch, dtype=torch.int64)
    return Step(model, (x, labels), limits=(2, extents["classes"]))


def _step(model: Any, batch: int, channels: int, side: int, last: int) -> Step:
    """A step of a module that takes an image; its weights are laid out as the image is."""
    layout = torch.channels_last if last else torch.contiguous_format
    x = torch.empty(batch, channels, side, side, dtype=torch.bfloat16).to(memory_format=layout)
    return Step(model.to(torch.bfloat16).to(memory_format=layout), (x.requires_grad_(),))


def _poolformer(batch: int, channels: int, side: int, factor: int, last: int) -> Step:
    model = nn.Sequential(*(PoolBlock(channels, factor) for _ in range(2)))
    return _step(model, batch, channels, side, last)


def _mobilenet(batch: int, channels: int, side: int, wide: int, last: int) -> Step:
    model = nn.Sequential(*(MobileBlock(channels, wide, 5) for _ in range(2)))
    return _step(model, batch, channels, side, last)


def _shufflenet(batch: int, channels: int, side: int, last: int) -> Step:
    model = nn.Sequential(*(ShuffleBlock(channels) for _ in range(2)))
    return _step(model, batch, channels, side, last)


def _densenet(batch: int, channels: int, side: int, growth: int, last: int) -> Step:
    return _step(DenseBlock(channels, growth), batch, channels, side, last)


_MIXER = "batch tokens width across hidden classes"
_POOLFORMER = "batch channels side factor last"
_MOBILENET = "batch channels side wide last"
_SHUFFLENET = "batch channels side last"
_DENSENET = "batch channels side growth last"
FAMILIES = (
    Family(
        "mlp_mixer",
        _mlp_mixer,
        {
            "filling": table_of(_MIXER, 64, 196, 512, 256, 2048, 1000),
            "small": table_of(_MIXER, 8, 196, 256, 128, 1024, 1000),
        },
        {
            "filling": table_of(_MIXER, 3, 9, 16, 8, 24, 10),
            "small": table_of(_MIXER, 3, 9, 12, 8, 20, 10),
        },
    ),
    Family(
        "poolformer",
        _poolformer,
        {
            "filling": table_of(_POOLFORMER, 64, 128, 28, 4, 1),
            "small": table_of(_POOLFORMER, 8, 320, 14, 4, 0),
        },
        {
            "filling": table_of(_POOLFORMER, 3, 8, 7, 4, 1),
            "small": table_of(_POOLFORMER, 3, 8, 7, 4, 0),
        },
    ),
    Family(
        "mobilenet",
        _mobilenet,
        {
            "filling": table_of(_MOBILENET, 128, 40, 28, 240, 1),
            "small": table_of(_MOBILENET, 16, 112, 14, 672, 0),
        },
        {
            "filling": table_of(_MOBILENET, 3, 8, 7, 24, 1),
            "small": table_of(_MOBILENET, 3, 8, 7, 24, 0),
        },
    ),
    Family(
        "shufflenet",
        _shufflenet,
        {
            "filling": table_of(_SHUFFLENET, 128, 116, 28, 1),
            "small": table_of(_SHUFFLENET, 16, 232, 14, 0),
        },
        {
            "filling": table_of(_SHUFFLENET, 3, 12, 7, 1),
            "small": table_of(_SHUFFLENET, 3, 12, 7, 0),
        },
    ),
    Family(
        "densenet",
        _densenet,
        {
            "filling": table_of(_DENSENET, 64, 128, 28, 32, 1),
            "small": table_of(_DENSENET, 16, 256, 14, 32, 0),
        },
        {
            "filling": table_of(_DENSENET, 3, 12, 8, 5, 1),
            "small": table_of(_DENSENET, 3, 12, 8, 5, 0),
        },
    ),
)
