"""Vision transformers: ViT, CLIP, Swin, and the diffusion transformer DiT."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .family import Family, Step, table_of
from .layers import MLP, SelfAttention, merge_heads, split_heads


class ViTBlock(nn.Module):
    """Layer norm, attention, layer norm, MLP; residuals scaled by a learned vector."""

    def __init__(self, width: int, heads: int, scaled: bool, causal: bool = False) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for _ in range(2))
        self.attention, self.mlp = SelfAttention(width, heads, causal), MLP(width, 4 * width)
        self.scales = nn.Parameter(torch.empty(2, width)) if scaled else None

    def forward(self, x: Tensor) -> Tensor:
        if self.scales is None:
            x = x + self.attention(self.norms[0](x))
            return x + self.mlp(self.norms[1](x))
        x = x + self.scales[0] * self.attention(self.norms[0](x))
        return x + self.scales[1] * self.mlp(self.norms[1](x))


class ViT(nn.Module):
    """Patches by a convolution, a class token, positions, blocks, and a classifier."""

    def __init__(
        self, image: int, patch: int, width: int, heads: int, classes: int, scaled: bool
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.empty(1, 1, width))
        self.places = nn.Parameter(torch.empty(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(ViTBlock(width, heads, scaled) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, image: Tensor, labels: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        first = self.first.expand(x.shape[0], 1, x.shape[2])
        x = torch.cat([first, x], dim=1) + self.places
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)[:, 0]).float(), labels, label_smoothing=0.1)


def _vit(batch: int, image: int, patch: int, width: int, heads: int, classes: int) -> Step:
    model = ViT(image, patch, width, heads, classes, scaled=True).to(torch.bfloat16)
    images = torch.empty(batch, 3, image, image, dtype=torch.bfloat16)
    labels = torch.empty(batch, dtype=torch.int64)
    return Step(model, (images, labels), limits=(2, classes))


_VIT = "batch image patch width heads classes"
VIT = Family(
    "vit",
    _vit,
    {
        "filling": table_of(_VIT, 64, 224, 16, 1024, 16, 1000),
        "small": table_of(_VIT, 8, 224, 16, 384, 6, 1000),
    },
    {
        "filling": table_of(_VIT, 2, 32, 8, 64, 4, 10),
        "small": table_of(_VIT, 2, 32, 8, 64, 4, 10),
    },
)


# --- CLIP ----------------------------------------------------------------------------------------


class Clip(nn.Module):
    """An image tower and a text tower with quick GELU, and the symmetric loss of both."""

    def __init__(
        self,
        tokens: int,
        vocabulary: int,
        width: int,
        heads: int,
        text_width: int,
        text_heads: int,
        joint: int,
    ) -> None:
        super().__init__()
        self.image = nn.ModuleList(QuickBlock(width, heads, False) for _ in range(1))
        self.text = nn.ModuleList(QuickBlock(text_width, text_heads, True) for _ in range(1))
        self.embedding = nn.Embedding(vocabulary, text_width)
        self.places = nn.Parameter(torch.empty(tokens, text_width))
        self.norms = nn.ModuleList(nn.LayerNorm(n) for n in (width, width, text_width))
        self.to_joint = nn.Linear(width, joint, bias=False)
        self.text_to_joint = nn.Linear(text_width, joint, bias=False)
        self.scale = nn.Parameter(torch.empty(()))

    def forward(self, patches: Tensor, tokens: Tensor) -> Tensor:
        x = self.norms[0](patches)
        for block in self.image:
            x = block(x)
        seen = self.to_joint(self.norms[1](x[:, 0]))
        y = self.embedding(tokens) + self.places
        for block in self.text:
            y = block(y)
        read = self.text_to_joint(self.norms[2](y)[:, -1])
        seen, read = unit(seen), unit(read)
        logits = (self.scale.exp() * (seen @ read.t())).float()
        labels = torch.arange(logits.shape[0], device=logits.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


def unit(x: Tensor) -> Tensor:
    """Rows of length 1."""
    return x * torch.rsqrt(x.float().pow(2).sum(-1, keepdim=True)).to(x.dtype)


class QuickBlock(nn.Module):
    """A transformer's block with ``x * sigmoid(1.702 * x)`` for GELU."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = SelfAttention(width, heads, causal)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        raised = self.up(self.norms[1](x))
        return x + self.down(raised * torch.sigmoid(1.702 * raised))


_CLIP = "batch patches tokens vocabulary width heads text_width text_heads joint"


def _clip(batch: int, patches: int, **extents: int) -> Step:
    model = Clip(**extents).to(torch.bfloat16)
    image = torch.empty(batch, patches, extents["width"], dtype=torch.bfloat16)
    tokens = torch.empty(batch, extents["tokens"], dtype=torch.int64)
    return Step(model, (image.requires_grad_(), tokens), limits=(2, extents["vocabulary"]))


CLIP = Family(
    "clip",
    _clip,
    {
        "filling": table_of(_CLIP, 64, 197, 77, 49408, 768, 12, 512, 8, 512),
        "small": table_of(_CLIP, 8, 50, 77, 49408, 384, 6, 256, 4, 256),
    },
    {
        "filling": table_of(_CLIP, 4, 17, 11, 200, 64, 4, 48, 3, 32),
        "small": table_of(_CLIP, 4, 17, 11, 200, 64, 4, 48, 3, 32),
    },
)


# --- Swin ----------------------------------------------------------------------------------------


class SwinBlock(nn.Module):
    """Attention within windows of an image that is rolled by half of one."""

    def __init__(self, side: int, window: int, width: int, heads: int, rolled: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = MLP(width, 4 * width)
        self.bias = nn.Parameter(torch.empty(heads, window**2, window**2))
        self.side, self.window, self.heads, self.rolled = side, window, heads, rolled

    def forward(self, x: Tensor) -> Tensor:
        batch, width = x.shape[0], x.shape[-1]
        side, window, half = self.side, self.window, self.window // 2
        count, y = side // window, self.norms[0](x).view(batch, side, side, width)
        if self.rolled:
            y = torch.cat([y[:, half:], y[:, :half]], dim=1)
            y = torch.cat([y[:, :, half:], y[:, :, :half]], dim=2)
        y = y.view(batch, count, window, count, window, width).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(batch * count * count, window * window, width)
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(y).chunk(3, dim=-1))
        scores = (q * (width // self.heads) ** -0.5) @ k.transpose(2, 3) + self.bias
        y = self.out(merge_heads(F.softmax(scores, dim=-1) @ v))
        y = y.view(batch, count, count, window, window, width).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(batch, side, side, width)
        if self.rolled:
            y = torch.cat([y[:, side - half :], y[:, : side - half]], dim=1)
            y = torch.cat([y[:, :, side - half :], y[:, :, : side - half]], dim=2)
        x = x + y.reshape(batch, side * side, width)
        return x + self.mlp(self.norms[1](x))


class Swin(nn.Module):
    """Two blocks, the second rolled, and the layer that merges patches by four."""

    def __init__(self, side: int, window: int, width: int, heads: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            SwinBlock(side, window, width, heads, rolled) for rolled in (False, True)
        )
        self.norm = nn.LayerNorm(4 * width)
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)
        self.side = side

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        batch, half, width = x.shape[0], self.side // 2, x.shape[-1]
        x = x.view(batch, half, 2, half, 2, width).permute(0, 1, 3, 4, 2, 5)
        return self.reduction(self.norm(x.reshape(batch, half * half, 4 * width)))


def _swin(batch: int, side: int, window: int, width: int, heads: int) -> Step:
    model = Swin(side, window, width, heads).to(torch.bfloat16)
    x = torch.empty(batch, side * side, width, dtype=torch.bfloat16)
    return Step(model, (x.requires_grad_(),))


_SWIN = "batch side window width heads"
SWIN = Family(
    "swin",
    _swin,
    {
        "filling": table_of(_SWIN, 16, 56, 7, 128, 4),
        "small": table_of(_SWIN, 2, 28, 7, 192, 6),
    },
    {"filling": table_of(_SWIN, 2, 12, 6, 32, 4), "small": table_of(_SWIN, 2, 12, 6, 32, 4)},
)


# --- DiT -----------------------------------------------------------------------------------------


class DiTBlock(nn.Module):
    """Attention and MLP between norms without weights, shifted, scaled and gated by a condition."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.mlp = MLP(width, 4 * width, approximate="tanh")
        self.condition = nn.Linear(width, 6 * width)
        self.width = width

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift, scale, gate, shift2, scale2, gate2 = (
            part[:, None] for part in self.condition(F.silu(condition)).chunk(6, dim=1)
        )
        normed = F.layer_norm(x, (self.width,), eps=1e-6) * (1 + scale) + shift
        x = x + gate * self.attention(normed)
        normed = F.layer_norm(x, (self.width,), eps=1e-6) * (1 + scale2) + shift2
        return x + gate2 * self.mlp(normed)


class DiT(nn.Module):
    """Embedding of time steps and classes, two blocks, and the last layer."""

    def __init__(self, width: int, heads: int, channels: int) -> None:
        super().__init__()
        self.embed = nn.Linear(channels, width)
        self.classes = nn.Embedding(1001, width)
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(DiTBlock(width, heads) for _ in range(2))
        self.last, self.out = nn.Linear(width, 2 * width), nn.Linear(width, channels)
        self.width = width

    def forward(self, x: Tensor, times: Tensor, classes: Tensor, noise: Tensor) -> Tensor:
        rates = torch.exp(torch.arange(128, device=x.device).float() * (-9.2103 / 128))
        angles = times.float()[:, None] * rates[None, :]
        waves = torch.cat([angles.cos(), angles.sin()], dim=-1).to(x.dtype)
        condition = self.time(waves) + self.classes(classes)
        x = self.embed(x)
        for block in self.blocks:
            x = block(x, condition)
        shift, scale = (part[:, None] for part in self.last(F.silu(condition)).chunk(2, dim=1))
        x = F.layer_norm(x, (self.width,), eps=1e-6) * (1 + scale) + shift
        return F.mse_loss(self.out(x).float(), noise.float())


def _dit(batch: int, tokens: int, width: int, heads: int, channels: int) -> Step:
    model = DiT(width, heads, channels).to(torch.bfloat16)
    x = torch.empty(batch, tokens, channels, dtype=torch.bfloat16)
    ids = torch.empty(batch, dtype=torch.int64)
    return Step(model, (x, ids, ids.clone(), x.clone()), limits=(2, 1000, 1000))


_DIT = "batch tokens width heads channels"
DIT = Family(
    "dit",
    _dit,
    {
        "filling": table_of(_DIT, 16, 1024, 1152, 16, 16),
        "small": table_of(_DIT, 4, 64, 384, 6, 16),
    },
    {"filling": table_of(_DIT, 3, 24, 64, 4, 16), "small": table_of(_DIT, 3, 24, 64, 4, 16)},
)

FAMILIES = (VIT, CLIP, SWIN, DIT)
