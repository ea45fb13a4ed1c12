"""The benchmark cases as data: a definition, its inputs, and what torch and others do instead.

Definitions are written as tracers record them: 16-bit tensors in, a cast to Float, the
arithmetic, a cast back. The inputs of a backward are what torch's own backward takes, so that all
are timed on the same work; only the mask of a dropout is drawn again here, and stored in torch.
"""

from __future__ import annotations

from . import channels, groups, layernorm, layout, loss, pointwise, reductions, rmsnorm, softmax
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
    *loss.CASES,
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
