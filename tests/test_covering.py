"""Which of a test's cases stay in the fast run."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from tests.covering import covering


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("axes", [("abc", "xy"), ("abcd", "wxyz", "01"), ("a",), ("ab", "x", "0")])
def test_each_value_stays(axes, times):
    """As often as was asked for or as there is, in no more cases than the longest axis needs."""
    cases = [set(case) for case in product(*axes)]
    fast = covering(cases, times)
    had = Counter(value for case in cases for value in case)
    found = Counter(value for place in fast for value in cases[place])
    assert all(found[value] >= min(times, count) for value, count in had.items())
    assert len(fast) == len({*fast}) == min(times * max(map(len, axes)), len(cases))


def test_values_meet_those_of_other_axes():
    cases = [set(case) for case in product("abcd", "wxyz", "01")]
    assert [sorted(cases[n]) for n in covering(cases)] == [
        ["0", "a", "w"],
        ["1", "b", "x"],
        ["0", "c", "y"],
        ["1", "d", "z"],
    ]


def test_cases_of_a_list_have_each_value():
    cases = [{"a", "x"}, {"a", "y"}, {"b", "y"}, {"b", "x"}, {"c", "x"}]
    assert covering(cases) == [0, 2, 4]


def test_nothing_covers_nothing():
    assert covering([]) == []
