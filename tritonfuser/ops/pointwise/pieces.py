"""``Pieces`` of the functions that repeat: sines, remainders, the fractional part, lgamma."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..accuracy import Pieces


def _between_extremes(x: Tensor) -> Tensor:
    return torch.floor(x / math.pi + 0.5)


SINE = Pieces(_between_extremes, lambda x: torch.full_like(x, 2.0))
COSINE = Pieces(lambda x: torch.floor(x / math.pi), SINE.span)
TANGENT = Pieces(_between_extremes, lambda x: torch.full_like(x, math.inf))
# Truncated towards zero the pieces on both sides of it are one.
FRACTION = Pieces(torch.trunc, SINE.span)
# Its poles are 0 and the whole numbers below.
LOG_GAMMA = Pieces(lambda x: torch.floor(x).clamp(max=0.0), TANGENT.span)
TRUNCATED = Pieces(lambda x, y: torch.trunc(x / y), lambda x, y: 2 * y.abs())
FLOORED = Pieces(lambda x, y: torch.floor(x / y), TRUNCATED.span)
