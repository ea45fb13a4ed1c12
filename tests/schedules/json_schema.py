"""Values against a JSON Schema: the keywords that schedules' schemas have, and no others.

As draft 2020-12 says it, but for one thing: 4.0 is no integer, as in JSON that Python writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}
SILENT = {"$schema", "$defs", "title", "description", "default", "deprecated"}
"""Keywords that refuse nothing."""


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


class Validator:
    """Whether values are those of a schema."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def is_valid(self, value: Any) -> bool:
        return self._has(self.schema, value)

    def _has(self, schema: Any, value: Any) -> bool:
        if isinstance(schema, bool):
            return schema
        return all(self._keyword(k, schema, value) for k in schema if k not in SILENT)

    def _keyword(self, name: str, schema: Any, value: Any) -> bool:
        wanted = schema[name]
        of_objects: dict[str, Callable[[], bool]] = {
            "properties": lambda: all(self._has(wanted[k], value[k]) for k in wanted if k in value),
            "required": lambda: all(key in value for key in wanted),
            "additionalProperties": lambda: (
                wanted or not value.keys() - schema["properties"].keys()
            ),
        }
        of_arrays: dict[str, Callable[[], bool]] = {
            "items": lambda: all(self._has(wanted, item) for item in value),
            "maxItems": lambda: len(value) <= wanted,
            "uniqueItems": lambda: all(item not in value[:at] for at, item in enumerate(value)),
        }
        of_numbers: dict[str, Callable[[], bool]] = {
            "minimum": lambda: value >= wanted,
            "maximum": lambda: value <= wanted,
        }
        of_all: dict[str, Callable[[], bool]] = {
            "type": lambda: type(value) is TYPES[wanted],
            "const": lambda: same(value, wanted),
            "enum": lambda: any(same(value, one) for one in wanted),
            "anyOf": lambda: any(self._has(one, value) for one in wanted),
            "oneOf": lambda: sum(self._has(one, value) for one in wanted) == 1,
            "$ref": lambda: self._has(self.schema["$defs"][wanted.removeprefix("#/$defs/")], value),
        }
        for kind, table in ((dict, of_objects), (list, of_arrays), (int, of_numbers)):
            if name in table:
                return type(value) is not kind or table[name]()
        return of_all[name]()
