"""How much faster other params must be predicted to be, before they replace given ones."""

from __future__ import annotations

from ..cost.constants import constants_of
from ..problem import Problem

GAIN = 0.94
"""Other params are predicted to take at most this share of the time of the rules' params, launch
included. H200, kernels of random definitions, models and the suite for which the model's params are
not the rules': the 24 that are predicted to take 0.90 to 0.94 of the time took 0.92 times as long,
with what is beside them (geometric mean; 0.50 to 1.22), the 19 of 0.94 to 0.96 0.995 times."""

LEAST_SAVED_S = 6e-7
"""Other params are predicted to save at least so many seconds: less is hardly measurable. H200,
definitions of models at small sizes and large: the 75 whose kernels are predicted to save 0.3 to
0.6 us took 0.97 times as long (geometric mean; 0.78 to 1.70), the 55 that are predicted to save
more 0.91 times (0.48 to 1.13)."""


def seconds_to_beat(problem: Problem, seconds: float, gain: float = GAIN) -> float:
    """The most seconds that a kernel may be predicted to take to replace one of ``seconds``.

    Parameters
    ----------
    gain : float
        Share of the time, launch included, that it may take.
    """
    launch = constants_of(problem.device).launch_s
    with_launch = seconds + launch
    return min(gain * with_launch, with_launch - LEAST_SAVED_S) - launch
