"""``@pytest.mark.covering``: of a test of many combinations, those that cover each value are fast.

The rest are marked slow. Each ``parametrize`` is an axis: of a product of axes some combinations
stay fast that together have each value of each axis, spread evenly, like a diagonal. With
``apart=True`` each argument is an axis of its own, also where one ``parametrize`` lists several;
with ``times=2`` each value stays in two cases, if it has as many.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence, Set

import pytest


def covering(cases: Sequence[Set[Hashable]], times: int = 1) -> list[int]:
    """The places of cases, each a set of values, that together have each value so many times.

    Always the case with most values that are still to come; of several, that of the rarest ones.
    """
    counts = Counter(value for case in cases for value in case)
    used: Counter[Hashable] = Counter()

    def gain(place: int) -> tuple[int, int]:
        case = cases[place]
        return sum(used[v] < min(times, counts[v]) for v in case), -sum(used[v] for v in case)

    rest, found = list(range(len(cases))), []
    while rest and gain(best := max(rest, key=gain))[0]:
        rest.remove(best)
        found.append(best)
        used.update(cases[best])
    return found


def values(item: pytest.Item, apart: bool) -> Set[Hashable]:
    """A test's value of each axis, which is one object in all tests that have it."""
    given = item.callspec.params
    names = [mark.args[0] for mark in item.iter_markers("parametrize")]
    axes = [n.replace(",", " ").split() if isinstance(n, str) else n for n in names]
    if apart:
        axes = [[name] for axis in axes for name in axis]
    return {(*axis, *(id(given[name]) for name in axis)) for axis in axes}


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Marks all but those that cover; what is slow or needs a GPU anyway is no part of it."""
    cases = defaultdict(list)
    for item in items:
        kinds = {mark.name for mark in item.iter_markers()}
        if "covering" in kinds and not kinds & {"slow", "gpu"}:
            cases[item.nodeid.partition("[")[0]].append(item)
    for same in cases.values():
        told = same[0].get_closest_marker("covering").kwargs
        axes = [values(item, told.get("apart", False)) for item in same]
        fast = covering(axes, told.get("times", 1))
        for place, item in enumerate(same):
            if place not in fast:
                item.add_marker(pytest.mark.slow)
