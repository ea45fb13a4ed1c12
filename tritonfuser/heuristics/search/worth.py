"""How much less other params have to be predicted to take than the ones that there are."""

from __future__ import annotations

from ..cost.constants import constants_of
from ..problem import Problem

GAIN = 0.94
"""Share of the time of the rules' params, with a launch, that others have to be predicted to take
at most. H200, kernels of random definitions, models and the suite for which the model's params are
not the rules': the 24 that are predicted to take 0.90 to 0.94 of the time took 0.92 times as long,
with what is beside them (geometric mean; 0.50 to 1.22), the 19 of 0.94 to 0.96 0.995 times."""

WORTH_S = 6e-7
"""Seconds that others have to save at least: less is hardly seen, and not worth a search. H200,
definitions of models at small sizes and large: the 75 whose kernels are predicted to save 0.3 to
0.6 us took 0.97 times as long (geometric mean; 0.78 to 1.70), the 55 that are predicted to save
more 0.91 times (0.48 to 1.13)."""


def worth_seconds(problem: Problem, seconds: float, gain: float = GAIN) -> float:
    """Seconds of a kernel that others have to take at most in the place of one."""
    launch = constants_of(problem.device).launch_s
    whole = seconds + launch
    return min(gain * whole, whole - WORTH_S) - launch
