"""Rewrite a recorded definition so that one recording runs at many sizes.

Extents that ``shrink`` would change become -1 in the inputs. Everywhere else they are taken from an
input's ``size``, from a product of two, or, where no input has them, from a scalar input.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

from .definitions import RecordedDefinition, ScalarInput
from .shrink import SIZES, is_sized

Table = Mapping[int, int]


@dataclass(frozen=True)
class Resizable:
    """A definition whose sizes vary between runs.

    Attributes
    ----------
    entry : RecordedDefinition
        The program; its inputs are the recorded ones, followed by the extra scalars.
    extents : tuple of int
        Values of the extra scalars at the recorded sizes.
    """

    entry: RecordedDefinition
    extents: tuple[int, ...]

    def at(self, table: Table) -> list[int]:
        """The extra scalars at the sizes of a table."""
        return [table.get(extent, extent) for extent in self.extents]


def opened(entry: RecordedDefinition) -> RecordedDefinition:
    """The program with all input sizes symbolic (-1), except sizes of 1."""
    tree = ast.parse(entry.text)
    for call in _calls(tree, "define_tensor"):
        shape = _keyword(call, "shape")
        for item in getattr(shape, "elts", ()):
            if isinstance(item, ast.Constant) and item.value != 1:
                item.value = -1
    return replace(entry, text=ast.unparse(tree) + "\n")


def resizable(entry: RecordedDefinition, tables: tuple[Table, ...] = ()) -> Resizable:
    """Rewrite the program so that no extent that a table changes is a literal.

    Parameters
    ----------
    tables : tuple of mappings
        Extent to new extent; by default the model's own table.
    """
    tables = tables or (SIZES[entry.model],)
    moving = frozenset(n for table in tables for n, m in table.items() if n != m)
    sources = _Sources(entry, moving, tables)
    tree = ast.parse(entry.text)
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "define_tensor"):
            sources.rewrite(call)
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    scalars = [
        f"n{extent} = fd.define_scalar(None, dtype=DataType.Int)" for extent in sources.extra
    ]
    inputs = [line for line in function.body if _is_input(line)]
    rest = [line for line in function.body if not _is_input(line)]
    function.body = [*inputs, *ast.parse("\n".join(scalars)).body, *rest]
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    given = (*entry.inputs, *(ScalarInput(extent) for extent in sources.extra))
    made = opened(replace(entry, text=text, inputs=given))
    return Resizable(made, tuple(sources.extra))


class _Sources:
    """The expressions that give each extent at run time."""

    def __init__(
        self, entry: RecordedDefinition, moving: frozenset[int], tables: tuple[Table, ...]
    ) -> None:
        self.moving = moving
        self.tables = tables
        self.extra: list[int] = []
        self.places: dict[int, str] = {}
        function = ast.parse(entry.text).body[0]
        assert isinstance(function, ast.FunctionDef)
        for line in (made for made in function.body if isinstance(made, ast.Assign)):
            for call in _calls(line, "define_tensor"):
                shape = ast.literal_eval(_keyword(call, "shape") or ast.List([]))
                for dim, extent in enumerate(shape):
                    self.places.setdefault(extent, f"{ast.unparse(line.targets[0])}.size({dim})")

    def rewrite(self, call: ast.Call) -> None:
        """Replace the extents among a call's arguments by expressions of sizes."""
        for keyword in call.keywords:
            if is_sized(keyword.arg) and isinstance(keyword.value, ast.List):
                keyword.value.elts = [self._symbolic(item) for item in keyword.value.elts]
        call.args = [self._symbolic(item) for item in call.args]

    def _symbolic(self, item: ast.expr) -> ast.expr:
        if not isinstance(item, ast.Constant) or type(item.value) is not int:
            return item
        return _expression(self._text(item.value)) if item.value in self.moving else item

    def _text(self, extent: int) -> str:
        if extent in self.places:
            return self.places[extent]
        for a, b in combinations_with_replacement(self.places, 2):
            if a * b == extent and all(
                _of(t, a) * _of(t, b) == _of(t, extent) for t in self.tables
            ):
                return f"fd.ops.mul({self.places[a]}, {self.places[b]})"
        if extent not in self.extra:
            self.extra.append(extent)
        return f"n{extent}"


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _of(table: Table, extent: int) -> int:
    return table.get(extent, extent)


def _calls(tree: ast.AST, name: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == name]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _is_input(line: ast.stmt) -> bool:
    return bool(_calls(line, "define_tensor") or _calls(line, "define_scalar"))
