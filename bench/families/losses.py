"""Losses by themselves: cross entropy, focal, contrastive."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .family import Family, Step, table_of


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """With smoothed labels, rows without a label, and a loss of the normalizer."""
    wide = logits.float()
    loss = F.cross_entropy(wide, labels, label_smoothing=0.1, ignore_index=-100)
    normalizer = torch.logsumexp(wide, dim=-1)
    return loss + 1e-4 * (normalizer * normalizer).mean()


def _cross_entropy(rows: int, classes: int) -> Step:
    logits = torch.empty(rows, classes, dtype=torch.bfloat16).requires_grad_()
    labels = torch.empty(rows, dtype=torch.int64)
    return Step(cross_entropy, (logits, labels), limits=(2, classes))


CROSS_ENTROPY = Family(
    "cross_entropy",
    _cross_entropy,
    {
        "filling": table_of("rows classes", 4096, 50257),
        "small": table_of("rows classes", 256, 8000),
    },
    {
        "filling": table_of("rows classes", 20, 90),
        "small": table_of("rows classes", 20, 90),
    },
)


def focal(logits: Tensor, targets: Tensor) -> Tensor:
    """Focal loss of sigmoids, summed over anchors and normed by the number of objects."""
    wide = logits.float()
    chance = torch.sigmoid(wide)
    losses = torch.clamp(wide, min=0.0) - wide * targets
    losses = losses + torch.log1p(torch.exp(-torch.abs(wide)))
    hit = chance * targets + (1 - chance) * (1 - targets)
    weight = 0.25 * targets + 0.75 * (1 - targets)
    total = (weight * (1 - hit) ** 2 * losses).sum((1, 2))
    objects = torch.clamp(targets.sum((1, 2)), min=1.0)
    return (total / objects).mean()


def _focal(images: int, anchors: int, classes: int) -> Step:
    logits = torch.empty(images, anchors, classes, dtype=torch.bfloat16).requires_grad_()
    return Step(focal, (logits, torch.empty(images, anchors, classes)))


_FOCAL = "images anchors classes"
FOCAL = Family(
    "focal",
    _focal,
    {"filling": table_of(_FOCAL, 8, 49104, 80), "small": table_of(_FOCAL, 4, 2000, 20)},
    {"filling": table_of(_FOCAL, 3, 50, 7), "small": table_of(_FOCAL, 3, 50, 7)},
)


def contrastive(x: Tensor, y: Tensor) -> Tensor:
    """Two views of each item against all others, both ways."""
    both = torch.cat([x, y], dim=0).float()
    both = both * torch.rsqrt((both * both).sum(-1, keepdim=True) + 1e-12)
    scores = (both @ both.t()) / 0.1
    places = torch.arange(scores.shape[0], device=x.device)
    scores = torch.where(places[:, None] == places[None, :], -1e9, scores)
    half = x.shape[0]
    partner = torch.where(places < half, places + half, places - half)
    return F.cross_entropy(scores, partner)


def _contrastive(items: int, width: int) -> Step:
    x, y = (torch.empty(items, width, dtype=torch.bfloat16).requires_grad_() for _ in range(2))
    return Step(contrastive, (x, y))


CONTRASTIVE = Family(
    "contrastive",
    _contrastive,
    {
        "filling": table_of("items width", 4096, 256),
        "small": table_of("items width", 256, 128),
    },
    {
        "filling": table_of("items width", 12, 24),
        "small": table_of("items width", 12, 24),
    },
)

FAMILIES = (CROSS_ENTROPY, FOCAL, CONTRASTIVE)
