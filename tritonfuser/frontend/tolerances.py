"""How far a result may be off: nvFuser's table by dtype and by the length of the reductions."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..dtypes import REDUCED_FLOATS, Category, DataType
from ..errors import TritonFuserError

# Errors seen when n = 4, 8, 16, ... 2**21 random numbers are summed.
_FLOAT = (
    1.68222e-06, 2.23704e-06, 2.95788e-06, 4.4778e-06, 6.75395e-06, 8.57934e-06, 1.30594e-05,
    2.19122e-05, 3.3451e-05, 5.78476e-05, 0.000108292, 0.00012207, 0.000136882, 0.000248561,
    0.000407594, 0.000500901, 0.000923019, 0.00156909, 0.00223107, 0.00343043,
)  # fmt: skip
_HALF = (
    0.00390625, 0.0078125, 0.0078125, 0.0155334, 0.0156269, 0.0312042, 0.0312548, 0.0619979,
    0.0625103, 0.124686, 0.12501, 0.24945, 0.250049, 0.498946, 0.500071, 0.985087, 1.00006,
    1.99234, 2.00032, 3.99073,
)  # fmt: skip


class ValidationError(TritonFuserError, RuntimeError, AssertionError):
    """A result that differs from the reference by more than it may."""


def tolerances(dtype: DataType, length: int) -> tuple[float, float]:
    """(atol, rtol) for a result of ``dtype`` behind reductions of ``length`` elements in all."""
    if dtype.info.category < Category.FLOAT:
        return 0.0, 0.0
    table = _HALF if dtype in REDUCED_FLOATS else _FLOAT
    if length <= 1:
        return table[0], table[1]
    entry = 0
    while entry < len(table) and 4 << entry < length:
        entry += 1
    # The next entry up leaves a margin.
    atol = table[entry + 1] if entry + 1 < len(table) else 2 * table[-1]
    rtol = atol * 0.01
    if dtype in REDUCED_FLOATS and dtype is not DataType.Half:
        return atol * 10, rtol * 10
    return atol, rtol


def compare(
    what: str, actual: torch.Tensor, expected: torch.Tensor, dtype: DataType, length: int
) -> None:
    """Raise unless the two have one shape and the same numbers, nan being equal to itself.

    Raises
    ------
    ValidationError
        Says what (``"output 0"``) is wrong, where, and by how much.
    """
    if actual.shape != expected.shape:
        raise ValidationError(
            f"{what}: expected shape {list(expected.shape)}, got {list(actual.shape)}"
        )
    atol, rtol = tolerances(dtype, length)
    wide = expected.to(actual.device)
    got = actual.to(wide.dtype) if wide.is_floating_point() or wide.is_complex() else actual
    close = torch.isclose(got, wide.to(got.dtype), rtol=rtol, atol=atol, equal_nan=True)
    if bool(close.all()):
        return
    where = _first_wrong(close)
    raise ValidationError(
        f"{what}: {int((~close).sum())} of {close.numel()} elements differ from the "
        f"reference; at {list(where)} expected {wide[where].item()}, got {got[where].item()}",
        hint=f"Allowed are atol={atol:g}, rtol={rtol:g} for {dtype} after {length} summands.",
    )


def _first_wrong(close: torch.Tensor) -> tuple[int, ...]:
    found: Sequence[int] = (~close).nonzero()[0].tolist()
    return tuple(found)
