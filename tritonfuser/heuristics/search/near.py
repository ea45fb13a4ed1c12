"""Neighbours of params in a search space: params that differ by one step of one choice."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields as fields_of
from typing import Any

from ..params import HeuristicParams
from .space import SearchSpace, params_of


def params_near(
    space: SearchSpace, params: HeuristicParams, fields: Collection[str] = ()
) -> Iterator[HeuristicParams]:
    """The params that differ in one choice, by the next lower or the next higher value.

    The given params need not be in the space: the values of the space next to theirs are taken.

    Parameters
    ----------
    fields : collection of str
        Names of fields that may change. Empty for all of them.
    """
    seen = {params}
    for each in _near(space, params, fields):
        if each not in seen:
            seen.add(each)
            yield each


def _near(
    space: SearchSpace, params: HeuristicParams, fields: Collection[str]
) -> Iterator[HeuristicParams]:
    for alternative in space.alternatives:
        now = {name: getattr(params, name) for name in alternative.fields}
        if any(getattr(params, name) != value for name, value in alternative.fixed.items()):
            # Other axes along the second side of a tile count as one step too.
            if "across" in alternative.fixed and not fields and alternative.has(now):
                yield from replaced(params, alternative.fixed)
            continue
        for choice in alternative.choices:
            if fields and choice.fields[0] not in fields:
                continue
            own = tuple(now[name] for name in choice.fields)
            for values in _adjacent(choice.values, own):
                changed = dict(zip(choice.fields, values, strict=True))
                if alternative.has({**now, **changed}):
                    yield from replaced(params, changed)


def _adjacent(values: Sequence[tuple[Any, ...]], now: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if not isinstance(now[0], int):  # orders and names: any other value is adjacent
        yield from (value for value in values if value != now)
        return
    if now in values:
        place = values.index(now)
        yield from values[max(place - 1, 0) : place]
        yield from values[place + 1 : place + 2]
        return
    below = [value for value in values if value < now]
    above = [value for value in values if value > now]
    yield from [max(below)] if below else []
    yield from [min(above)] if above else []


def replaced(params: HeuristicParams, changed: dict[str, Any]) -> Iterator[HeuristicParams]:
    """The params with changed fields; nothing if they exceed the limits of any kernel."""
    values = {row.name: getattr(params, row.name) for row in fields_of(params)} | changed
    made = params_of(params.scheduler, tuple(values.items()))
    if made is not None:
        yield made
