"""How far a result may be off: a limit for each element, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...dtypes import REDUCED_FLOATS, Category, DataType
from ...errors import TritonFuserError

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


ANALYSIS = "a bound on the rounding errors of all ops up to it"


@dataclass(frozen=True, eq=False)
class Limit:
    """How far each element of a result may be off.

    Attributes
    ----------
    values : Tensor
        float64, of the result's shape; inf for an undecided element, which may be anything.
    source : str
        Where they come from, in words.
    """

    values: torch.Tensor
    source: str


@dataclass(frozen=True)
class Tolerance:
    """What a result may be off by: ``atol + rtol * abs(expected)``.

    ``source`` says in words where the two numbers come from.
    """

    atol: float
    rtol: float
    source: str

    def limit(self, expected: torch.Tensor) -> torch.Tensor:
        """``atol + rtol * abs(expected)`` for each element of ``expected``, in its shape."""
        size = magnitudes(expected).nan_to_num(nan=0.0, posinf=0.0)
        return self.atol + self.rtol * size


def magnitudes(x: torch.Tensor) -> torch.Tensor:
    """Absolute values in float64; 1 for packed numbers, which are compared as bytes."""
    if x.dtype is torch.float4_e2m1fn_x2:
        return torch.ones(x.shape, dtype=torch.float64, device=x.device)
    return x.abs().double() if x.is_complex() else x.double().abs()


def tolerance(dtype: DataType, length: int) -> Tolerance:
    """nvFuser's tolerance of a result behind reductions of ``length`` elements in all."""
    atol, rtol = tolerances(dtype, length)
    if not atol:
        return Tolerance(0.0, 0.0, f"{dtype} is compared exactly")
    behind = f"after {length} summands" if length > 1 else "without a reduction"
    return Tolerance(atol, rtol, f"nvFuser's table for {dtype} {behind}")


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
