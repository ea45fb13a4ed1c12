"""Errors of results against a reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

Flat = list[torch.Tensor]


def flat(result: Any) -> Flat:
    """Convert a torch result (a tensor, or a tuple of tensors and None) to a list of tensors."""
    return [result] if isinstance(result, torch.Tensor) else [t for t in result if t is not None]


def max_error(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """The largest error over all outputs.

    For floats: the largest absolute difference over the largest finite magnitude of that output.
    For integers and bools: the share of elements that differ.
    """
    if len(actual) != len(expected):
        raise ValueError(f"{len(actual)} outputs, {len(expected)} expected")
    return max((_error(a, e) for a, e in zip(actual, expected, strict=True)), default=0.0)


def _error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    if actual.shape != expected.shape:
        raise ValueError(f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}")
    if actual.numel() == 0:
        return 0.0
    if not actual.dtype.is_floating_point:
        return (actual != expected).double().mean().item()
    # nan and inf must be at the same positions.
    a, e = actual.double(), expected.double()
    same = (a == e) | (a.isnan() & e.isnan())
    difference = torch.where(same, 0.0, (a - e).abs())
    scale = torch.where(e.isfinite(), e.abs(), 0.0).max().clamp(min=torch.finfo(a.dtype).tiny)
    worst = (difference.max() / scale).item()
    return float("inf") if math.isnan(worst) else worst
