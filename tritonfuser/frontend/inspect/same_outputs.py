"""Whether a printed definition, recorded again, gives the outputs that are expected."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .tolerances import ValidationError


def refuse_other_outputs(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    """Raise ValidationError where the number of outputs, a stride or a value differs."""
    if len(actual) != len(expected):
        raise ValidationError(f"expected {len(expected)} outputs, got {len(actual)}")
    for place, (one, other) in enumerate(zip(actual, expected, strict=True)):
        if one.stride() != other.stride():
            raise ValidationError(
                f"output {place}: expected strides {other.stride()}, got {one.stride()}"
            )
        if not torch.equal(one.nan_to_num(), other.nan_to_num()):
            raise ValidationError(f"output {place} of the printed definition differs")
