"""What kernels count at least: no more than each of them counts, whose tiles may pass the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.heuristics.test_choice import WORKS, problems
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.least.counting import LeastCounting
from tritonfuser.heuristics.cost.least.launches import launches_of
from tritonfuser.heuristics.params import ReductionParams, ScanParams

FIELDS = (
    "elements",
    "computed",
    "lanes",
    "results",
    "row_lanes",
    "row_values",
    "reduced_steps",
    "exchange_clocks",
    "lines",
)


def powers(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most).map(lambda n: 1 << n)


@settings(deadline=None, max_examples=200)
@given(problems(), WORKS, st.booleans(), powers(7), powers(12), powers(4))
def test_counts_at_least(
    problem: Any, work: Any, scans: bool, block_x: int, block_r: int, warps: int
) -> None:
    assume(8 <= block_x * block_r <= 1 << 15)
    problem = replace(problem, reduction_depth=1, scans=scans)
    tile = {"block_x": block_x, "block_r": block_r, "num_warps": warps}
    params = ScanParams(**tile) if scans else ReductionParams(**tile, persistent=False)
    least = LeastCounting(problem, work).least_of(launches_of(problem, [params]))
    counts = Counting(problem, work).counts(params)
    for field in FIELDS:
        (found,) = np.ravel(getattr(least, field))
        assert found <= getattr(counts, field) * (1 + 1e-9), field
