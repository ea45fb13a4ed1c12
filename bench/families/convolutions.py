"""Convolutional networks: ResNet, ConvNeXt, EfficientNet, and the U-Net of diffusion models.

Sizes named ``filling`` are channels last, ``small`` ones channels first.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of
from .layers import merge_heads, split_heads


def _image(batch: int, channels: int, side: int, last: int) -> Tensor:
    x = torch.empty(batch, channels, side, side, dtype=torch.bfloat16)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    return x.requires_grad_()


def _laid_out(model: nn.Module, last: int) -> nn.Module:
    made: Any = model.to(torch.bfloat16)
    return made.to(memory_format=torch.channels_last) if last else made


class Bottleneck(nn.Module):
    """Three convolutions with batch norms; the first block of a stage halves the image."""

    def __init__(self, channels: int, hidden: int, stride: int) -> None:
        super().__init__()
        out = 4 * hidden
        self.convs = nn.ModuleList(
            [
                nn.Conv2d(channels, hidden, 1, bias=False),
                nn.Conv2d(hidden, hidden, 3, stride, 1, bias=False),
                nn.Conv2d(hidden, out, 1, bias=False),
            ]
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (hidden, hidden, out))
        self.down = nn.Conv2d(channels, out, 1, stride, bias=False) if channels != out else None
        self.down_norm = nn.BatchNorm2d(out) if channels != out else None

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norms[0](self.convs[0](x)))
        y = F.relu(self.norms[1](self.convs[1](y)))
        y = self.norms[2](self.convs[2](y))
        if self.down is not None and self.down_norm is not None:
            x = self.down_norm(self.down(x))
        return F.relu(y + x)


class ResNet(nn.Module):
    """Two blocks of a stage, the mean over the image, and a classifier."""

    def __init__(self, channels: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            [Bottleneck(channels, hidden, 2), Bottleneck(4 * hidden, hidden, 1)]
        )
        self.head = nn.Linear(4 * hidden, classes)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x.mean((2, 3))).float(), labels)


def _resnet(batch: int, channels: int, side: int, hidden: int, classes: int, last: int) -> Step:
    model = _laid_out(ResNet(channels, hidden, classes), last)
    labels = torch.empty(batch, dtype=torch.int64)
    return Step(model, (_image(batch, channels, side, last), labels), limits=(2, classes))


_RESNET = "batch channels side hidden classes last"
RESNET = Family(
    "resnet",
    _resnet,
    {
        "filling": table_of(_RESNET, 64, 256, 56, 128, 1000, 1),
        "small": table_of(_RESNET, 16, 512, 28, 256, 1000, 0),
    },
    {
        "filling": table_of(_RESNET, 3, 16, 8, 8, 10, 1),
        "small": table_of(_RESNET, 3, 16, 8, 8, 10, 0),
    },
)


class ConvNeXtBlock(nn.Module):
    """A depthwise convolution, a layer norm over channels, an MLP, scaled by a learned vector."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(F.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    """Two blocks and the layer that halves the image behind a norm over channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ConvNeXtBlock(channels) for _ in range(2))
        self.weight, self.bias = (nn.Parameter(torch.empty(channels)) for _ in range(2))
        self.down = nn.Conv2d(channels, 2 * channels, 2, 2)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        mean = x.mean(1, keepdim=True)
        spread = (x - mean).pow(2).mean(1, keepdim=True)
        x = (x - mean) / torch.sqrt(spread + 1e-6)
        return self.down(self.weight[:, None, None] * x + self.bias[:, None, None])


def _convnext(batch: int, channels: int, side: int, last: int) -> Step:
    model = _laid_out(ConvNeXt(channels), last)
    return Step(model, (_image(batch, channels, side, last),))


_CONVNEXT = "batch channels side last"
CONVNEXT = Family(
    "convnext",
    _convnext,
    {
        "filling": table_of(_CONVNEXT, 64, 192, 28, 1),
        "small": table_of(_CONVNEXT, 8, 96, 28, 0),
    },
    {"filling": table_of(_CONVNEXT, 3, 16, 8, 1), "small": table_of(_CONVNEXT, 3, 16, 8, 0)},
)


class InvertedBlock(nn.Module):
    """Wide depthwise convolutions with SiLU, and channels scaled by what the image has of them."""

    def __init__(self, channels: int, factor: int, kernel: int) -> None:
        super().__init__()
        wide = channels * factor
        self.expand = nn.Conv2d(channels, wide, 1, bias=False)
        self.deep = nn.Conv2d(wide, wide, kernel, padding=kernel // 2, groups=wide, bias=False)
        self.project = nn.Conv2d(wide, channels, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(n, eps=1e-3) for n in (wide, wide, channels))
        self.squeeze = nn.Conv2d(wide, channels // 4, 1)
        self.excite = nn.Conv2d(channels // 4, wide, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = F.silu(self.norms[0](self.expand(x)))
        y = F.silu(self.norms[1](self.deep(y)))
        scale = self.excite(F.silu(self.squeeze(y.mean((2, 3), keepdim=True))))
        return x + self.norms[2](self.project(y * torch.sigmoid(scale)))


def _efficientnet(batch: int, channels: int, side: int, factor: int, last: int) -> Step:
    model = _laid_out(nn.Sequential(*(InvertedBlock(channels, factor, 5) for _ in range(2))), last)
    return Step(model, (_image(batch, channels, side, last),))


_EFFICIENTNET = "batch channels side factor last"
EFFICIENTNET = Family(
    "efficientnet",
    _efficientnet,
    {
        "filling": table_of(_EFFICIENTNET, 64, 80, 28, 6, 1),
        "small": table_of(_EFFICIENTNET, 16, 112, 14, 6, 0),
    },
    {
        "filling": table_of(_EFFICIENTNET, 3, 16, 8, 6, 1),
        "small": table_of(_EFFICIENTNET, 3, 16, 8, 6, 0),
    },
)


# --- U-Net ---------------------------------------------------------------------------------------


class ResidualBlock(nn.Module):
    """Group norms with SiLU before convolutions; a time embedding is added between them."""

    def __init__(self, channels: int, out: int, time: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, channels), nn.GroupNorm(8, out)])
        self.first = nn.Conv2d(channels, out, 3, padding=1)
        self.second = nn.Conv2d(out, out, 3, padding=1)
        self.time = nn.Linear(time, out)
        self.skip = nn.Conv2d(channels, out, 1) if channels != out else None

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.first(F.silu(self.norms[0](x)))
        y = y + self.time(F.silu(time))[:, :, None, None]
        y = self.second(F.silu(self.norms[1](y)))
        return (x if self.skip is None else self.skip(x)) + y


class ImageAttention(nn.Module):
    """Attention of an image's points to those of another sequence, and a gated MLP."""

    def __init__(self, channels: int, heads: int, text: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(2))
        self.q, self.out = nn.Linear(channels, channels, bias=False), nn.Linear(channels, channels)
        self.kv = nn.Linear(text, 2 * channels, bias=False)
        self.up, self.down = nn.Linear(channels, 8 * channels), nn.Linear(4 * channels, channels)
        self.heads = heads

    def forward(self, image: Tensor, text: Tensor) -> Tensor:
        batch, channels, height, width = image.shape
        x = self.norm(image).permute(0, 2, 3, 1).reshape(batch, height * width, channels)
        q = split_heads(self.q(self.norms[0](x)), self.heads)
        k, v = (split_heads(part, self.heads) for part in self.kv(text).chunk(2, dim=-1))
        x = x + self.out(merge_heads(F.scaled_dot_product_attention(q, k, v)))
        raised, gate = self.up(self.norms[1](x)).chunk(2, dim=-1)
        x = x + self.down(raised * F.gelu(gate))
        return image + x.view(batch, height, width, channels).permute(0, 3, 1, 2)


class UNet(nn.Module):
    """Down by a convolution, attention, up to the nearest, and a join with what was there."""

    def __init__(self, channels: int, heads: int, text: int, time: int) -> None:
        super().__init__()
        self.before = ResidualBlock(channels, channels, time)
        self.down = nn.Conv2d(channels, 2 * channels, 3, 2, 1)
        self.middle = ResidualBlock(2 * channels, 2 * channels, time)
        self.attention = ImageAttention(2 * channels, heads, text)
        self.up = nn.Conv2d(2 * channels, channels, 3, padding=1)
        self.behind = ResidualBlock(2 * channels, channels, time)

    def forward(self, x: Tensor, time: Tensor, text: Tensor) -> Tensor:
        kept = self.before(x, time)
        y = self.attention(self.middle(self.down(kept), time), text)
        batch, channels, height, width = y.shape
        wide = y[:, :, :, None, :, None].expand(batch, channels, height, 2, width, 2)
        y = self.up(wide.reshape(batch, channels, 2 * height, 2 * width))
        return self.behind(torch.cat([y, kept], dim=1), time)


def _unet(batch: int, channels: int, side: int, heads: int, text: int, last: int) -> Step:
    model = _laid_out(UNet(channels, heads, text, 4 * channels), last)
    time = torch.empty(batch, 4 * channels, dtype=torch.bfloat16)
    words = torch.empty(batch, 77, text, dtype=torch.bfloat16)
    return Step(model, (_image(batch, channels, side, last), time.requires_grad_(), words))


_UNET = "batch channels side heads text last"
UNET = Family(
    "unet",
    _unet,
    {
        "filling": table_of(_UNET, 8, 320, 64, 8, 768, 0),
        "small": table_of(_UNET, 2, 128, 32, 4, 512, 1),
    },
    {"filling": table_of(_UNET, 2, 16, 8, 4, 24, 0), "small": table_of(_UNET, 2, 16, 8, 4, 24, 1)},
)

FAMILIES = (RESNET, CONVNEXT, EFFICIENTNET, UNET)
