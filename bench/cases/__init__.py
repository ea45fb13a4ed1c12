"""The benchmark cases as data: a definition, its inputs, and the same computation by its peers.

Definitions are written as tracers record them: 16-bit inputs, a cast to Float, the arithmetic, a
cast back. A backward takes the same inputs as torch's own backward, so that all contenders do the
same work. The one exception is dropout: torch loads a stored mask, the definition regenerates it.
"""

from __future__ import annotations

from . import (
    channels,
    groups,
    indexing,
    layernorm,
    layout,
    loss,
    optimizers,
    pointwise,
    reductions,
    rmsnorm,
    softmax,
)
from .case import Case, Input, Inputs, Run, Size, Sizes, doubled, size_name

CASES: tuple[Case, ...] = (
    *softmax.CASES,
    *layernorm.CASES,
    *rmsnorm.CASES,
    *channels.CASES,
    *groups.CASES,
    *pointwise.CASES,
    *reductions.CASES,
    *layout.CASES,
    *indexing.CASES,
    *loss.CASES,
    *optimizers.CASES,
)
BY_NAME = {case.name: case for case in CASES}
SUITES = tuple(dict.fromkeys(case.suite for case in CASES))

__all__ = [
    "BY_NAME",
    "CASES",
    "SUITES",
    "Case",
    "Input",
    "Inputs",
    "Run",
    "Size",
    "Sizes",
    "doubled",
    "size_name",
]
