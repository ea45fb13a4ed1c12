"""Generative models: VQ-VAE's codebook, Glow's flows and StyleGAN's generator."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of

BF16 = torch.bfloat16


class VectorQuantizer(nn.Module):
    """The nearest code of each row [rows, width], with losses that draw both together."""

    def __init__(self, codes: int, width: int, commitment: float = 0.25) -> None:
        super().__init__()
        self.codebook, self.commitment = nn.Embedding(codes, width), commitment

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        wide, table = z.float(), self.codebook.weight.float()
        with torch.no_grad():
            square = wide.pow(2).sum(1, keepdim=True) + table.pow(2).sum(1)
            nearest = torch.argmin(square - 2.0 * (wide @ table.t()), dim=1)
        found = self.codebook(nearest)
        loss = F.mse_loss(found.float(), wide.detach())
        loss = loss + self.commitment * F.mse_loss(found.detach().float(), wide)
        share = F.one_hot(nearest, table.shape[0]).float().mean(0)
        perplexity = torch.exp(-(share * torch.log(share + 1e-10)).sum())
        return z + (found - z).detach(), loss, perplexity


class VqVae(nn.Module):
    """An encoder and a decoder of two layers, with codes between them."""

    def __init__(self, width: int, hidden: int, codes: int, code: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.quantizer = VectorQuantizer(codes, code)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        codes, loss, perplexity = self.quantizer(self.encoder(x))
        return loss + F.mse_loss(self.decoder(codes).float(), x.float()), perplexity


class FlowStep(nn.Module):
    """Scaled channels, an invertible convolution as a product of triangles, affine coupling."""

    permutation: Tensor
    signs: Tensor

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.bias, self.logs = (nn.Parameter(torch.empty(1, channels, 1, 1)) for _ in range(2))
        self.lower, self.upper = (nn.Parameter(torch.empty(channels, channels)) for _ in range(2))
        self.diagonal = nn.Parameter(torch.empty(channels))
        self.register_buffer("permutation", torch.empty(channels, channels))
        self.register_buffer("signs", torch.empty(channels))
        self.net = nn.Sequential(
            nn.Conv2d(channels // 2, hidden, 3, padding=1), nn.ReLU(), nn.Conv2d(hidden, hidden, 1)
        )
        self.last = nn.Conv2d(hidden, channels, 3)
        self.gain = nn.Parameter(torch.empty(1, channels, 1, 1))

    def mixing(self) -> Tensor:
        """The weights [channels, channels] of the invertible convolution."""
        places = torch.arange(self.diagonal.shape[0], device=self.diagonal.device)
        on = places[:, None] == places[None, :]
        lower = torch.where(on, 1.0, torch.tril(self.lower, -1))
        upper = torch.where(on, self.signs * self.diagonal.exp(), torch.triu(self.upper, 1))
        return self.permutation @ (lower @ upper)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        batch, _, height, width = x.shape
        x = (x + self.bias) * torch.exp(self.logs)
        a, b = F.conv2d(x, self.mixing()[:, :, None, None]).chunk(2, dim=1)
        padded = F.pad(F.relu(self.net(a)), (1, 1, 1, 1), value=1.0)
        scale, shift = (self.last(padded) * torch.exp(3.0 * self.gain)).chunk(2, dim=1)
        scale = torch.sigmoid(scale.float() + 2.0)
        logdet = torch.log(scale).reshape(batch, -1).sum(1)
        logdet = logdet + height * width * (self.logs.float().sum() + self.diagonal.float().sum())
        return torch.cat([a, (b + shift) * scale.to(x.dtype)], dim=1), logdet


class Glow(nn.Module):
    """Squares of four points become channels; flow steps; bits a number under a normal prior."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.steps = nn.ModuleList(FlowStep(4 * channels, hidden) for _ in range(2))
        self.prior = nn.Parameter(torch.empty(2, 4 * channels, 1, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        batch, channels, height, width = x.shape
        x = x.reshape(batch, channels, height // 2, 2, width // 2, 2).permute(0, 1, 3, 5, 2, 4)
        x = x.reshape(batch, 4 * channels, height // 2, width // 2)
        total = torch.zeros(batch, device=x.device)
        for step in self.steps:
            x, logdet = step(x)
            total = total + logdet
        mean, logs = self.prior[0].float(), self.prior[1].float()
        chance = -0.5 * math.log(2 * math.pi) - logs
        chance = chance - 0.5 * (x.float() - mean).pow(2) * torch.exp(-2.0 * logs)
        total = total + chance.reshape(batch, -1).sum(1)
        return x, -(total / (math.log(2.0) * channels * height * width)).mean()


class StyledConvolution(nn.Module):
    """A convolution of channels scaled by a style, its results scaled back; noise; leaky ReLU."""

    def __init__(self, channels: int, out: int, style: int, kernel: int, back: bool) -> None:
        super().__init__()
        self.affine, self.bias = nn.Linear(style, channels), nn.Parameter(torch.empty(out))
        self.weight = nn.Parameter(torch.empty(out, channels, kernel, kernel))
        self.strength = nn.Parameter(torch.empty(())) if back else None

    def forward(self, x: Tensor, style: Tensor, noise: Tensor) -> Tensor:
        scale = self.affine(style)
        padding = self.weight.shape[-1] // 2
        y = F.conv2d(x * scale[:, :, None, None], self.weight, padding=padding)
        if self.strength is None:
            return torch.clamp(y + self.bias[:, None, None], -256.0, 256.0)
        weights = self.weight[None].float() * scale.float()[:, None, :, None, None]
        back = torch.rsqrt(weights.square().sum((2, 3, 4)) + 1e-8).to(x.dtype)
        y = y * back[:, :, None, None] + noise * self.strength + self.bias[:, None, None]
        return torch.clamp(F.leaky_relu(y, 0.2) * math.sqrt(2.0), -256.0, 256.0)


class StyleGan(nn.Module):
    """Two convolutions of a resolution, and a third one that adds to the image."""

    def __init__(self, channels: int, out: int, style: int) -> None:
        super().__init__()
        self.first = StyledConvolution(channels, out, style, 3, True)
        self.second = StyledConvolution(out, out, style, 3, True)
        self.colors = StyledConvolution(out, 3, style, 1, False)

    def forward(
        self, x: Tensor, image: Tensor, style: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        x = self.second(self.first(x, style, noise[0]), style, noise[1])
        return x, image + self.colors(x, style, noise[0])


def _vqvae(rows: int, **extents: int) -> Step:
    x = torch.empty(rows, extents["width"], dtype=BF16)
    return Step(VqVae(**extents).to(BF16), (x,))


def _glow(batch: int, channels: int, side: int, hidden: int) -> Step:
    x = torch.empty(batch, channels, side, side, dtype=BF16)
    return Step(Glow(channels, hidden).to(BF16), (x.requires_grad_(),))


def _stylegan(batch: int, channels: int, out: int, side: int, style: int) -> Step:
    x, image = (torch.empty(batch, n, side, side, dtype=BF16) for n in (channels, 3))
    styles = torch.empty(batch, style, dtype=BF16)
    noise = torch.empty(2, batch, 1, side, side, dtype=BF16)
    asked = (one.requires_grad_() for one in (x, image, styles))
    return Step(StyleGan(channels, out, style).to(BF16), (*asked, noise))


_VQVAE = "rows width hidden codes code"
_GLOW = "batch channels side hidden"
_STYLEGAN = "batch channels out side style"
FAMILIES = (
    Family(
        "vqvae",
        _vqvae,
        {
            "filling": table_of(_VQVAE, 16384, 768, 256, 1024, 64),
            "small": table_of(_VQVAE, 1024, 256, 128, 512, 32),
        },
        {
            "filling": table_of(_VQVAE, 20, 24, 16, 10, 8),
            "small": table_of(_VQVAE, 18, 20, 12, 10, 6),
        },
    ),
    Family(
        "glow",
        _glow,
        {"filling": table_of(_GLOW, 32, 12, 128, 256), "small": table_of(_GLOW, 8, 6, 32, 128)},
        {"filling": table_of(_GLOW, 3, 2, 10, 6), "small": table_of(_GLOW, 3, 2, 10, 6)},
    ),
    Family(
        "stylegan",
        _stylegan,
        {
            "filling": table_of(_STYLEGAN, 16, 256, 128, 64, 512),
            "small": table_of(_STYLEGAN, 4, 128, 64, 32, 256),
        },
        {
            "filling": table_of(_STYLEGAN, 2, 8, 6, 7, 10),
            "small": table_of(_STYLEGAN, 2, 6, 4, 5, 8),
        },
    ),
)
