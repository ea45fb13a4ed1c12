"""Evaluates objects that contain sizes: every ``Size`` in them becomes a plain int.

Tuples, lists, dicts, frozensets and dataclasses are searched for sizes, however deep they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, cast

from .sizes import evaluate_size, is_size

AtomValues = Sequence[int]
"""The value of each atom of a ``ShapeEnv``, in the order of ``env.atoms``."""


def has_sizes(value: Any) -> bool:
    """Whether an object contains a size that varies."""
    return evaluate(value, _AnyValues()) is not value


class _AnyValues(Sequence[int]):
    """The same value for every atom, however many there are."""

    def __len__(self) -> int:
        return 0

    def __getitem__(self, place: Any) -> Any:
        return 2


def evaluate(value: Any, atoms: AtomValues, fixed: dict[int, Any] | None = None) -> Any:
    """A copy of an object with its sizes as ints; the object itself where it contains no size.

    Parameters
    ----------
    value : object
        What to evaluate.
    atoms : sequence of int
        The value of each atom.
    fixed : dict, optional
        A cache, by ``id``, of objects that are known to contain no size. It keeps them alive.
    """
    return _at(value, atoms, {}, {} if fixed is None else fixed)


def _at(value: Any, atoms: AtomValues, made: dict[int, Any], fixed: dict[int, Any]) -> Any:
    if is_size(value):
        return evaluate_size(cast(int, value), atoms)
    if isinstance(value, str | int | float | Enum | None):
        return value
    place = id(value)
    if place in fixed:
        return value
    if place not in made:
        found = _rebuilt(value, lambda item: _at(item, atoms, made, fixed))
        if found is value:
            fixed[place] = value  # kept alive: no other object gets its id
            return value
        made[place] = found
    return made[place]


def _maker(value: Any) -> Callable[[Iterable[Any]], Any]:
    """What makes a tuple, list or set of the same type from its items."""
    return getattr(value, "_make", type(value))  # the first is that of named tuples


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple | list | frozenset):
        items = [change(item) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else _maker(value)(items)
    if isinstance(value, dict):
        pairs = [(change(key), change(item)) for key, item in value.items()]
        same = all(
            k is key and i is item for (k, i), (key, item) in zip(pairs, value.items(), strict=True)
        )
        return value if same else dict(pairs)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    new = {field.name: change(getattr(value, field.name)) for field in fields(value) if field.init}
    same = all(item is getattr(value, name) for name, item in new.items())
    return value if same else replace(value, **new)


def evaluator(value: Any) -> Callable[[AtomValues], Any]:
    """A function of atom values that evaluates ``value``, for many evaluations of one object.

    The sizes in ``value`` are searched for once, here. Only tuples and dataclasses are searched.
    """
    found = _evaluator(value)
    return (lambda atoms: value) if found is None else found


def _evaluator(value: Any) -> Callable[[AtomValues], Any] | None:
    """As ``evaluator``; None where ``value`` contains no size."""
    if is_size(value):
        return lambda atoms: evaluate_size(cast(int, value), atoms)
    if isinstance(value, tuple):
        places = {n: make for n, item in enumerate(value) if (make := _evaluator(item))}
        if not places:
            return None
        made = _maker(value)
        return lambda atoms: made(
            places[n](atoms) if n in places else item for n, item in enumerate(value)
        )
    if not is_dataclass(value) or isinstance(value, type):
        return None
    pairs = ((field.name, _evaluator(getattr(value, field.name))) for field in fields(value))
    makers = {name: make for name, make in pairs if make is not None}
    if not makers:
        return None
    return lambda atoms: replace(value, **{name: make(atoms) for name, make in makers.items()})
