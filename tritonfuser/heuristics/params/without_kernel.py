"""Params of segments that have no kernel of their own: views, and what torch runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .base import HeuristicParams

_NO_EFFECT = {"num_warps": 4, "num_stages": 1, "max_registers": 0}
"""What params of segments without a kernel were written with."""


@dataclass(frozen=True, kw_only=True)
class NoOpParams(HeuristicParams):
    """No kernel runs: every output is a view of an input, or empty."""

    scheduler: ClassVar[str] = "no_op"
    retired: ClassVar[Mapping[str, Any]] = _NO_EFFECT


@dataclass(frozen=True, kw_only=True)
class ExprEvalParams(HeuristicParams):
    """torch runs the segment: nothing to decide."""

    scheduler: ClassVar[str] = "expr_eval"
    retired: ClassVar[Mapping[str, Any]] = _NO_EFFECT
