"""Operands in the shapes that torch's attention kernels take, and results in those of operands."""

from __future__ import annotations

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


def dense(x: Tensor) -> Tensor:
    """Four dims, and rows that lie densely: torch's kernels take others for such."""
    x = x.flatten(0, x.dim() - 4)
    return x if x.stride(-1) == 1 else x.contiguous()


def padded(x: Tensor) -> Tensor:
    """As ``dense``, with a width that is a multiple of 8, as kernels on a GPU want it."""
    missing = -x.shape[-1] % 8
    return dense(F.pad(x, [0, missing]) if missing else x)


def in_shapes_of(found: tuple[Tensor, ...], like: list[Tensor]) -> tuple[Tensor, ...]:
    """Results without padding, with as many dims as the operands that they are like."""
    cut = (g[..., : x.shape[-1]] for g, x in zip(found, like, strict=False))
    return tuple(g.reshape(x.shape) if x.dim() > 4 else g for g, x in zip(cut, like, strict=False))


def no_seed(like: Tensor) -> tuple[Tensor, Tensor]:
    """Seed and offset of a dropout of 0."""
    zeros = torch.zeros(3, dtype=torch.uint64, device=like.device)
    return zeros[:2], zeros[2]
