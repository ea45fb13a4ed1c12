"""Annotated dataclasses in, JSON Schema (draft 2020-12) of their plain data out."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from .codec import encode, is_any_length, types_of
from .limits import AtMostItems, Distinct, Within

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


def schema_of(hint: Any) -> dict[str, Any]:
    """The schema of what ``codec.encode`` makes of a value of a type.

    Conditions between fields are not in it: ``codec.decode`` and the constructors check them.
    """
    if get_origin(hint) is Annotated:
        base, *limits = get_args(hint)
        found = schema_of(base)
        for limit in limits:
            found |= _limited(limit)
        return found
    if isinstance(hint, type) and is_dataclass(hint):
        return object_of(hint)
    if get_origin(hint) in (Union, UnionType):
        return {"anyOf": [schema_of(choice) for choice in get_args(hint)]}
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if get_origin(hint) is tuple:
        return _array(get_args(hint))
    return {"type": _PLAIN[hint]}


def object_of(
    kind: type[Any], also: Mapping[str, Any] | None = None, left_out: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The schema of a dataclass: its fields with descriptions and defaults, and no others.

    Parameters
    ----------
    also : mapping, optional
        Properties beside the fields, each with its schema.
    left_out : tuple of str
        Fields that are not in the plain data.
    """
    hints, texts = types_of(kind), _texts(kind)
    rows = [row for row in fields(kind) if row.name not in left_out]
    properties = {row.name: _property(row, hints[row.name], texts) for row in rows}
    return {
        "type": "object",
        "description": _summary(kind),
        "properties": {**(also or {}), **properties},
        "required": [row.name for row in rows if not _has_default(row)],
        "additionalProperties": False,
    }


def _property(row: Field[Any], hint: Any, texts: Mapping[str, str]) -> dict[str, Any]:
    found = schema_of(hint)
    if row.name in texts:
        found["description"] = texts[row.name]
    if row.default is not MISSING:
        found["default"] = encode(row.default)
    return found


def _has_default(row: Field[Any]) -> bool:
    return row.default is not MISSING or row.default_factory is not MISSING


def _array(items: tuple[Any, ...]) -> dict[str, Any]:
    if is_any_length(items):
        return {"type": "array", "items": schema_of(items[0])}
    each = [schema_of(item) for item in items]
    return {"type": "array", "prefixItems": each, "minItems": len(each), "items": False}


def _limited(limit: Any) -> dict[str, Any]:
    if isinstance(limit, AtMostItems):
        return {"maxItems": limit.count}
    if isinstance(limit, Distinct):
        return {"uniqueItems": True}
    assert isinstance(limit, Within)
    if limit.powers_of_two:
        return {"enum": limit.values}
    inside = {"minimum": limit.least, "maximum": limit.most}
    return {"anyOf": [inside, {"enum": list(limit.also)}]} if limit.also else inside


def _summary(kind: type[Any]) -> str:
    """The first sentence of its docstring; empty where Python drops docstrings (``-OO``)."""
    return (inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " ")


def _texts(kind: type[Any]) -> dict[str, str]:
    """Field -> its lines in the ``Attributes`` of the docstring of its class, or of one above."""
    found: dict[str, str] = {}
    for above in reversed(kind.__mro__):
        listed = inspect.cleandoc(above.__doc__ or "").partition("----------\n")[2]
        for names, text in re.findall(r"^([\w, ]+) : .*\n((?:    .*\n?)+)", listed, re.MULTILINE):
            found.update(dict.fromkeys(names.split(", "), " ".join(text.split())))
    return found
