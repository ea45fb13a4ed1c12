"""Search over the order of a kernel's axes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..problem import Problem
from .space import Alternative, Choice


def with_orders(problem: Problem, alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
    """Alternatives as they are, with the axes in the order of the rules, and in others."""
    found = tuple(alternatives)
    orders = near_orders(problem)
    if not orders:
        return found
    choice = Choice.of("axes", orders)
    ordered = (Alternative(a.fixed, (*a.choices, choice), a.conditions) for a in found)
    return (*found, *ordered)


def near_orders(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Orders that differ from that of the rules by one axis moved inside its group."""
    return tuple(dict.fromkeys(_near_orders(problem)))


def _near_orders(problem: Problem) -> Iterator[tuple[int, ...]]:
    own = tuple(number for group in problem.order for number in group)
    start = 0
    for group in problem.order:
        for place, number in enumerate(group):
            rest = (*group[:place], *group[place + 1 :])
            for to in range(len(group)):
                moved = (*rest[:to], number, *rest[to:])
                made = (*own[:start], *moved, *own[start + len(group) :])
                if made != own:
                    yield made
        start += len(group)
