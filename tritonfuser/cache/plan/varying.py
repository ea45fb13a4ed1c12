"""What of a plan varies with the sizes: objects with sizes in them, and what they are at some.

The text of a plan is the same at all sizes of a variant. Where a number varies it has a name
there, ``size0`` or ``dims0``, whose value is put into the scope of the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar, cast

from ...symbolic.shape_env import ShapeEnv
from ...symbolic.sizes import is_size, made, number

T = TypeVar("T")
Atoms = Sequence[int]
"""What each atom of a shape env is."""


class Varying:
    """Names for what varies, each with how it is made from the objects at some sizes."""

    def __init__(self, env: ShapeEnv | None) -> None:
        self.env = env
        self._makers: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        self._fixed: dict[int, Any] = {}
        self._names: dict[str, str] = {}

    def text(self, value: int | tuple[int, ...]) -> str:
        """A number, or some, as an expression: a name where it varies."""
        text = repr(value)
        if not varies(value):
            return text
        if text not in self._names:
            name = text if text.isidentifier() else f"dims{len(self._names)}"
            self._names[text] = name
            self.make(name, _itself, value)
        return self._names[text]

    def atom(self, name: str) -> str:
        """An atom of the env by its name."""
        assert self.env is not None
        places = {atom.name: place for place, atom in enumerate(self.env.atoms)}
        found = made(self.env, {(places[name],): self.env.atoms[places[name]].multiple})
        self.make(name, _itself, found)
        return name

    def make(self, name: str, maker: Callable[..., Any], *given: Any) -> Any:
        """``maker(*given)`` under a name; what it is in this run."""
        if not any(varies(item) for item in given):
            return maker(*given)
        self._makers[name] = (maker, given)
        assert self.env is not None
        return maker(*at(given, [atom.hint for atom in self.env.atoms]))

    def scope(self, atoms: Atoms) -> dict[str, Any]:
        """All that varies, by name."""
        return {
            name: maker(*at(given, atoms, self._fixed))
            for name, (maker, given) in self._makers.items()
        }

    def at(self, value: T, atoms: Atoms) -> T:
        """An object that lives as long as this, with all sizes in it as numbers."""
        return value if self.env is None else at(value, atoms, self._fixed)


def _itself(value: Any) -> Any:
    return value


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
