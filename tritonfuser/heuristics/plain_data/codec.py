"""Frozen dataclasses and named tuples to plain data (what JSON holds) and strictly back, by their
annotations.

Limits stand beside a type, ``Annotated[int, Within(1, 16)]``, and are checked with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ...errors import ParamsError


def encode(value: Any) -> Any:
    """Plain data: what has fields is a dict, a tuple a list, numbers and strings are themselves."""
    if has_fields(type(value)):
        return {name: encode(getattr(value, name)) for name in needed_of(type(value))}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ParamsError(f"{value!r} of type {type(value).__name__} cannot be written as plain data")


def decode(hint: Any, value: Any, where: str) -> Any:
    """What ``encode`` made of a value of type ``hint``; ``where`` names it in errors.

    Raises
    ------
    ParamsError
        A key is unknown, that of a field without a default is missing, a value is outside of the
        limits of its field or of the wrong type: a bool is no int, a float is no int, an int is a
        float.
    """
    limits: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *limits = get_args(hint)  # type: ignore[assignment]
    found = _of_type(hint, value, where)
    for limit in limits:
        limit.check(found, where)
    return found


def _of_type(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, type) and has_fields(hint):
        return value if isinstance(value, hint) else _with_fields(hint, value, where)
    origin = get_origin(hint)
    if origin is Union or origin is UnionType:
        return _union(get_args(hint), value, where)
    if origin is tuple:
        return _tuple(get_args(hint), value, where)
    if origin is Literal:
        return _literal(get_args(hint), value, where)
    return _plain(hint, value, where)


_TYPES: dict[type[Any], dict[str, Any]] = {}


def has_fields(kind: type[Any]) -> bool:
    """Whether it is a dataclass or a named tuple."""
    return is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def needed_of(kind: type[Any]) -> dict[str, bool]:
    """Whether each field of a dataclass or of a named tuple has to be given."""
    if not is_dataclass(kind):
        return {name: name not in kind._field_defaults for name in kind._fields}
    rows = fields(kind)
    return {r.name: r.default is MISSING and r.default_factory is MISSING for r in rows}


def types_of(kind: type[Any]) -> dict[str, Any]:
    """The annotations of a dataclass or of a named tuple by field, with their limits; read once."""
    if kind not in _TYPES:
        hints = get_type_hints(kind, include_extras=True)
        _TYPES[kind] = {name: hints[name] for name in needed_of(kind)}
    return _TYPES[kind]


def normalized(value: Any, where: str) -> None:
    """Check the fields of a dataclass that was just made, and make tuples of lists.

    Raises
    ------
    ParamsError
        As ``decode``.
    """
    kind = type(value)
    for name, hint in types_of(kind).items():
        given = getattr(value, name)
        if (type(given) in _PLAIN_TYPES or _is_ints(given)) and _is_as_read(kind, name, given):  # type: ignore[arg-type]
            continue
        found = decode(hint, given, f"{where}{name}")
        if found is not given:
            object.__setattr__(value, name, found)


_PLAIN_TYPES = frozenset((bool, int, str, NoneType))
"""A number, a word or None."""


def _is_ints(given: Any) -> bool:
    """Whether it is a tuple of ints. Equal ones are then the same, as plain values are."""
    return type(given) is tuple and all(type(item) is int for item in given)


@lru_cache(maxsize=4096, typed=True)
def _is_as_read(kind: type[Any], name: str, given: Any) -> bool:
    """Whether a field may have a value, and has it as it is. Kernels have few different ones."""
    try:
        found = decode(types_of(kind)[name], given, name)
    except ParamsError:
        return False
    if type(given) is tuple:
        return all(one is other for one, other in zip(found, given, strict=True))
    return found is given


def _wrong(where: str, expected: str, value: Any) -> ParamsError:
    return ParamsError(
        f"{where}: expected {expected}, got {value!r} of type {type(value).__name__}"
    )


def _with_fields(hint: type[Any], value: Any, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(where, f"a dict with the fields of {hint.__name__}", value)
    hints = types_of(hint)
    needed = needed_of(hint)
    refuse_unknown_keys(value, [*needed], where)
    for name, is_needed in needed.items():
        if is_needed and name not in value:
            raise ParamsError(f"{where}: missing key {name!r}, expected {type_text(hints[name])}")
    return hint(
        **{n: decode(hints[n], given, f"{where}.{n}" if where else n) for n, given in value.items()}
    )


def refuse_unknown_keys(given: Iterable[str], known: Sequence[str], where: str) -> None:
    """Raise for a key that a dict may not have.

    Raises
    ------
    ParamsError
        It names the key, the path of the dict and the keys that are known.
    """
    for key in given:
        if key not in known:
            place = f"{where}: " if where else ""
            expected = ", ".join(known) or "no keys"
            raise ParamsError(f"{place}unknown key {key!r}, expected {expected}")


def _union(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    for choice in choices:
        try:
            return decode(choice, value, where)
        except ParamsError:
            continue
    raise _wrong(where, " or ".join(type_text(choice) for choice in choices), value)


def is_any_length(items: tuple[Any, ...]) -> bool:
    """Whether the arguments of ``tuple[...]`` are one type and an ellipsis."""
    return items[1:] == (Ellipsis,)


def _tuple(items: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(where, "a list", value)
    if is_any_length(items):
        items = (items[0],) * len(value)
    if len(value) != len(items):
        raise _wrong(where, f"a list of {len(items)} items", value)
    return tuple(
        decode(hint, item, f"{where}[{place}]")
        for place, (hint, item) in enumerate(zip(items, value, strict=True))
    )


def _literal(choices: tuple[Any, ...], value: Any, where: str) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return value
    raise _wrong(where, "one of " + ", ".join(map(repr, choices)), value)


def _plain(hint: Any, value: Any, where: str) -> Any:
    if hint is float and type(value) is int:
        return float(value)
    if hint not in (bool, int, float, str, NoneType):
        raise TypeError(f"{where}: the codec does not know fields of type {hint!r}")
    if type(value) is not hint:
        raise _wrong(where, type_text(hint), value)
    return value


def type_text(hint: Any) -> str:
    """A type as an error names it: ``int``, ``None``, ``tuple[int, ...]``."""
    if get_origin(hint) is Annotated:
        return type_text(get_args(hint)[0])
    if hint is NoneType:
        return "None"
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
