"""Arithmetic of tiles."""

from __future__ import annotations

import pytest

from tritonfuser.heuristics.integers import halved, warps_for
from tritonfuser.heuristics.search.common import powers


@pytest.mark.parametrize(
    ("size", "least", "most", "wanted"),
    [(64, 1, 20, 16), (64, 1, 64, 64), (64, 8, 1, 8), (4, 8, 1, 4)],
)
def test_halved_until_it_fits_or_is_the_least(size, least, most, wanted):
    assert halved(size, least, lambda x: x <= most) == wanted


@pytest.mark.parametrize(
    ("elements", "wanted"), [(0, 1), (511, 1), (1024, 2), (2816, 4), (4096, 8), (1 << 20, 16)]
)
def test_warps_are_a_power_of_two(elements, wanted):
    assert warps_for(elements, 16, most=16) == wanted


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(1, 8, [1, 2, 4, 8]), (2, 9, [2, 4, 8]), (4, 4, [4]), (8, 2, [8]), (3, 13, [3, 6, 12])],
)
def test_powers_up_to_a_limit(low, high, wanted):
    assert list(powers(low, high)) == wanted
