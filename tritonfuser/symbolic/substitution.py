"""Objects that contain sizes -> the same objects with plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, cast

from .sizes import is_size, number

Atoms = Sequence[int]
"""What each atom of a shape env is."""


def varies(value: Any) -> bool:
    """Whether there are sizes that vary in an object."""
    return at(value, _Probe()) is not value


class _Probe(Sequence[int]):
    """Atoms of which any will do."""

    def __len__(self) -> int:
        return 0

    def __getitem__(self, place: Any) -> Any:
        return 2


def at(value: Any, atoms: Atoms, fixed: dict[int, Any] | None = None) -> Any:
    """An object with all sizes in it as numbers; itself where it has none.

    Parameters
    ----------
    fixed : dict, optional
        Where to remember, by their ids, objects that have none.
    """
    return _at(value, atoms, {}, {} if fixed is None else fixed)


def _at(value: Any, atoms: Atoms, made: dict[int, Any], fixed: dict[int, Any]) -> Any:
    if is_size(value):
        return number(cast(int, value), atoms)
    if isinstance(value, str | int | float | Enum | None):
        return value
    place = id(value)
    if place in fixed:
        return value
    if place not in made:
        found = _rebuilt(value, lambda item: _at(item, atoms, made, fixed))
        if found is value:
            fixed[place] = value  # which keeps its id from going to another object
            return value
        made[place] = found
    return made[place]


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple | list | frozenset):
        items = [change(item) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else type(value)(items)
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


def substitution(value: Any) -> Callable[[Atoms], Any]:
    """``at`` of one object, for many sizes: what varies in it is looked up once."""
    found = _substitution(value)
    return (lambda atoms: value) if found is None else found


def _substitution(value: Any) -> Callable[[Atoms], Any] | None:
    """None where nothing varies."""
    if is_size(value):
        return lambda atoms: number(cast(int, value), atoms)
    if isinstance(value, tuple):
        places = {n: make for n, item in enumerate(value) if (make := _substitution(item))}
        if not places:
            return None
        return lambda atoms: tuple(
            places[n](atoms) if n in places else item for n, item in enumerate(value)
        )
    if not is_dataclass(value) or isinstance(value, type):
        return None
    pairs = ((field.name, _substitution(getattr(value, field.name))) for field in fields(value))
    makers = {name: make for name, make in pairs if make is not None}
    if not makers:
        return None
    return lambda atoms: replace(value, **{name: make(atoms) for name, make in makers.items()})
