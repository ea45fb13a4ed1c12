"""A right program with one call of its recording changed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.e2e.misuse.tracing import Ref, Step
from tests.e2e.misuse.wrong_values import WRONG, OfDefinition

Change = Callable[[random.Random, Step, int], tuple[str, Step]]
"""``(rng, step, handles so far) -> (what, changed step)``; ValueError where it does not apply."""


def _with_argument(step: Step, key: int | str, value: Any) -> Step:
    if isinstance(key, str):
        return replace(step, kwargs={**step.kwargs, key: value})
    args = list(step.args)
    args[key] = value
    return replace(step, args=tuple(args))


def _argument(rng: random.Random, step: Step) -> tuple[int | str, Any]:
    places = [*enumerate(step.args), *step.kwargs.items()]
    if not places:
        raise ValueError
    return rng.choice(places)


def other_value(rng: random.Random, step: Step, made: int) -> tuple[str, Step]:
    """A value of a wrong type, out of range, or of another definition."""
    key, _ = _argument(rng, step)
    what = rng.choice(sorted(WRONG))
    return f"{key!r} is {what}", _with_argument(step, key, WRONG[what])


def other_handle(rng: random.Random, step: Step, made: int) -> tuple[str, Step]:
    """Another value of the program."""
    key, _ = _argument(rng, step)
    if not made:
        raise ValueError
    number = rng.randrange(made)
    return f"{key!r} is value {number}", _with_argument(step, key, Ref(number))


def other_number(rng: random.Random, step: Step, made: int) -> tuple[str, Step]:
    """An int moved out of its range, or by one."""
    key, old = _argument(rng, step)
    if not isinstance(old, int):
        raise ValueError
    new = rng.choice((old + 1, old - 1, -old - 1, old + 4, old - 5, 2**31, -(2**31), float(old)))
    return f"{key!r} is {new}", _with_argument(step, key, new)


def other_list(rng: random.Random, step: Step, made: int) -> tuple[str, Step]:
    """A list with an item changed, repeated, left out or added."""
    key, old = _argument(rng, step)
    if not isinstance(old, list | tuple) or not old:
        raise ValueError
    place = rng.randrange(len(old))
    items = list(old)
    wrong = rng.choice(sorted(WRONG))
    new = rng.choice(
        (
            [*items, items[place]],
            items[:place] + items[place + 1 :],
            [*items[:place], WRONG[wrong], *items[place + 1 :]],
            [*items[:place], -1, *items[place + 1 :]],
            [*items[:place], items[place - 1], *items[place + 1 :]],
            items[::-1],
            [items],
            set(range(len(items))),
            items * 20,
        )
    )
    if any(isinstance(item, OfDefinition) for item in new):
        raise ValueError
    return f"{key!r} is {new!r} ({wrong})", _with_argument(step, key, new)


def missing(rng: random.Random, step: Step, made: int) -> tuple[str, Step]:
    """An argument left out."""
    if not step.args:
        raise ValueError
    return "the last argument is missing", replace(step, args=step.args[:-1])


def extra(rng: random.Random, step: Step, made: int) -> tuple[str, Step]:
    """One more argument, by place or by name."""
    if rng.random() < 0.5:
        return "an argument too many", replace(step, args=(*step.args, *[1] * 9))
    return "an unknown argument", replace(step, kwargs={**step.kwargs, "nonsense": 1})


def swapped(rng: random.Random, step: Step, made: int) -> tuple[str, Step]:
    """Two arguments the wrong way round."""
    if len(step.args) < 2:
        raise ValueError
    args = list(step.args)
    args[0], args[-1] = args[-1], args[0]
    return "arguments swapped", replace(step, args=tuple(args))


CHANGES: Sequence[Change] = (
    *(other_value,) * 4,
    *(other_handle,) * 3,
    *(other_number,) * 3,
    *(other_list,) * 3,
    missing,
    extra,
    swapped,
)


def change(rng: random.Random, step: Step, made: int) -> tuple[str, Step]:
    """Some change of a step."""
    while True:
        try:
            return rng.choice(CHANGES)(rng, step, made)
        except ValueError:
            continue
