"""What a run should give: the outputs in float64, and how far each element may be off."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...dtypes import DataType
from ...errors import ArgumentError, InputError
from ...ir import Fusion
from ...ops.arguments import shown
from .error_bound.analysis import bounds
from .oracle import Evaluation
from .tolerances import ANALYSIS, Limit, Tolerance, tolerance


@dataclass(frozen=True)
class Expected:
    """What a run should give.

    Attributes
    ----------
    wide : Evaluation
        In float64.
    limits : list of Limit
        How far each output may be off, hidden ones too.
    narrow : Evaluation, optional
        Rounded as the definition's dtypes say, op by op.
    """

    wide: Evaluation
    limits: list[Limit]
    narrow: Evaluation | None = None


def _is_tensors(given: Any) -> bool:
    listed = isinstance(given, list | tuple)
    return listed and all(isinstance(item, torch.Tensor) for item in given)


@dataclass(frozen=True)
class Check:
    """How to check a run: against which outputs, and how near; ``eager`` is for the table."""

    outputs: Sequence[torch.Tensor] | None = None
    atol: float | None = None
    rtol: float | None = None
    eager: bool = False

    def __post_init__(self) -> None:
        outputs: Any = self.outputs
        if outputs is not None and not _is_tensors(outputs):
            raise ArgumentError(
                f"validate: reference_outputs must be a list of tensors, got {shown(outputs)}"
            )
        tolerances: tuple[tuple[str, Any], ...] = (("atol", self.atol), ("rtol", self.rtol))
        for name, given in tolerances:
            if given is None:
                continue
            if isinstance(given, bool) or not isinstance(given, int | float):
                raise ArgumentError(f"validate: {name} must be a number, got {given!r}")
            if not given >= 0:
                raise InputError(f"validate: {name} must be 0 or more, got {given}")
            if isinstance(given, int) and given > sys.float_info.max:
                raise InputError(f"validate: {name} must be a number that a float can hold")


def expected(fusion: Fusion, inputs: Sequence[Any], how: Check) -> Expected:
    """What a run should give, and how far each element may be off."""
    wide = Evaluation(fusion, inputs, double=True)
    own = bounds(fusion, inputs, wide.outputs)
    if how.outputs is not None:
        wide.replace(fusion, how.outputs)
    limits = [
        _limit(fusion.outputs[place].value.dtype, wide, place, bound, how)
        for place, bound in enumerate(own)
    ]
    return Expected(wide, limits, _narrow(fusion, inputs) if how.eager else None)


def _narrow(fusion: Fusion, inputs: Sequence[Any]) -> Evaluation | None:
    """The definition op by op in its own dtypes; None where torch lacks an op for one of them."""
    try:
        return Evaluation(fusion, inputs, double=False)
    except NotImplementedError:
        return None


def _limit(dtype: DataType, wide: Evaluation, place: int, bound: torch.Tensor, how: Check) -> Limit:
    wanted = wide.outputs[place]
    if how.atol is not None or how.rtol is not None:
        asked = Tolerance(float(how.atol or 0), float(how.rtol or 0), "")
        source = f"atol={asked.atol:g} and rtol={asked.rtol:g} were given"
        return Limit(_or_undecided(asked.limit(wanted), bound), source)
    if how.outputs is None:
        return Limit(bound, ANALYSIS)
    table = tolerance(dtype, wide.lengths[place])
    if wanted.shape != bound.shape:
        return Limit(bound, ANALYSIS)
    # The outputs that were given have errors of their own.
    return Limit(torch.maximum(table.limit(wanted).to(bound.device), 2 * bound), table.source)


def _or_undecided(limit: torch.Tensor, bound: torch.Tensor) -> torch.Tensor:
    if limit.shape != bound.shape:
        return limit
    return torch.where(bound.isinf(), bound, limit.to(bound.device))
