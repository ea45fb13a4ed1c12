"""Bounds of all integer terms of a kernel's text, read off its syntax tree alone.

It knows nothing of how the text was written. A position is followed from ``tl.program_id`` and
``tl.arange`` through sums, products, quotients and loops; where one in 32 bits can leave them, that
is a fault. Positions behind the end of an axis matter until its mask is made: what is computed from
them is then used under the mask alone. An address matters where the mask of its load or store
holds: its terms are followed once more for the positions that this lets through. Data, ``tv0`` and
its like, may wrap as the user's ops do.

Triton takes a number from 2**31 to below 2**32 for 32 bits without a sign. As the end of a loop it
is negative; negated, as where it is subtracted from an address, it wraps. Both are faults.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Union

from tritonfuser.lowering.kernel_source import KernelSource

LEAST, MOST = -(2**31), 2**31 - 1
DATA = re.compile(r"tv\d+(_|$)")
UNSIGNED = range(2**31, 2**32)


@dataclass(frozen=True)
class Bounded:
    """An integer between two numbers, both included."""

    low: int
    high: int
    is_long: bool = False

    def joined(self, other: Bounded) -> Bounded:
        ends = min(self.low, other.low), max(self.high, other.high)
        return Bounded(*ends, self.is_long or other.is_long)


Found = Union[Bounded, tuple, None]
"""What is known of an expression: None of what is no position."""


def faults(source: KernelSource, sizes: Mapping[str, int] | None = None) -> list[str]:
    """The terms of a kernel that may leave their 32 bits, each with its line.

    Parameters
    ----------
    sizes : mapping, optional
        The values of sizes that are arguments; those that the grid is made of too.
    """
    return _Kernel(source, sizes or {}).faults()


class _Kernel:
    """Evaluates the functions of one module."""

    def __init__(self, source: KernelSource, sizes: Mapping[str, int]) -> None:
        self.source = source
        tree = ast.parse(source.text)
        self.functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
        self.found: list[str] = []
        grid = next(n for n in ast.walk(self.functions["launch"]) if isinstance(n, ast.Subscript))
        text = ast.unparse(grid.slice)
        self.grid = eval(text, {"__builtins__": {}}, dict(sizes))  # our own launch line
        long = {arg.name: arg.dtype.info.bits == 64 for arg in source.sizes}
        self.start: dict[str, Found] = {
            **{name: Bounded(size, size) for name, size in source.constants},
            **{name: Bounded(sizes[name], sizes[name], is_long) for name, is_long in long.items()},
        }

    def faults(self) -> list[str]:
        for name, value in self.start.items():
            assert isinstance(value, Bounded)
            self._kept(value, f"argument {name}")
        _Scope(self, dict(self.start)).block(self.functions[self.source.name].body)
        return list(dict.fromkeys(self.found))

    def _kept(self, value: Bounded, what: str) -> Bounded:
        if value.is_long or (value.low >= LEAST and value.high <= MOST):
            return value
        self.found.append(f"{what}: {value.low} .. {value.high}")
        return Bounded(max(value.low, LEAST), min(value.high, MOST))

    def called(self, name: str, given: list[Found]) -> None:
        """Follow a function of the module."""
        names = [arg.arg for arg in self.functions[name].args.args]
        _Scope(self, dict(zip(names, given, strict=True))).block(self.functions[name].body)


class _Scope:
    """The names of one function."""

    def __init__(self, kernel: _Kernel, names: dict[str, Found]) -> None:
        self.kernel = kernel
        self.names = names
        self.texts: dict[str, ast.expr] = {}

    # -- lines -----------------------------------------------------------------

    def block(self, lines: list[ast.stmt]) -> None:
        for line in lines:
            self.line = line
            if isinstance(line, ast.Assign):
                self._assign(line.targets[0], line.value)
            elif isinstance(line, ast.Expr):
                self.value(line.value)
            elif isinstance(line, ast.For):
                self._loop(line)
            elif isinstance(line, ast.If):
                self._branches(line)

    def _branches(self, line: ast.If) -> None:
        self.value(line.test)
        names = dict(self.names)
        if isinstance(line.test, ast.Compare) and isinstance(line.test.ops[0], ast.Lt):
            self._masked(line.test)
        self.block(line.body)
        self.names = names
        if isinstance(line.test, ast.Compare) and isinstance(line.test.left, ast.Name):
            was, end = names.get(line.test.left.id), self.value(line.test.comparators[0])
            if isinstance(was, Bounded) and isinstance(end, Bounded):
                names[line.test.left.id] = replace(was, low=min(end.low, was.high))
        self.block(line.orelse)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        found = self.value(value)
        if isinstance(target, ast.Tuple):
            parts = found if isinstance(found, tuple) else (None,) * len(target.elts)
            for item, part in zip(target.elts, parts, strict=True):
                self._bind(item.id, part)
        else:
            self._bind(target.id, found)
            # Of ``mask = mask & more`` the first part is left out: fewer positions are ruled out.
            self.texts[target.id] = value
            if target.id.endswith("_mask") and isinstance(value, ast.Compare):
                self._masked(value)

    def _bind(self, name: str, found: Found) -> None:
        self.names[name] = None if DATA.match(name) else found

    def _masked(self, mask: ast.Compare) -> None:
        """From the line of its mask on, a position is one that the mask lets through."""
        end = self.value(mask.comparators[0])
        if isinstance(mask.left, ast.Name) and isinstance(end, Bounded):
            was = self.names.get(mask.left.id)
            if isinstance(was, Bounded) and isinstance(mask.ops[0], ast.Lt):
                most = min(was.high, end.high - 1)
                # Of a tile of which nothing is left, nothing is used.
                self.names[mask.left.id] = replace(was, high=most) if most >= was.low else None

    def _loop(self, line: ast.For) -> None:
        call = line.iter
        assert isinstance(call, ast.Call)
        given = [self.value(arg) for arg in call.args]
        for arg in call.args:
            self._signed(arg)
        start, stop, step = {
            1: lambda: (Bounded(0, 0), given[0], Bounded(1, 1)),
            2: lambda: (*given, Bounded(1, 1)),
            3: lambda: tuple(given),
        }[len(given)]()
        if not all(isinstance(item, Bounded) for item in (start, stop, step)):
            raise AssertionError(f"a loop over {ast.unparse(call)}")
        long = any(item.is_long for item in (start, stop, step))
        behind = stop.high - 1 + step.high
        if start == Bounded(0, 0) and stop.high > 0:  # the first step that is not made
            behind = -(-stop.high // step.high) * step.high
        self.keep(Bounded(start.low, behind, long), line.target)
        self.names[line.target.id] = Bounded(start.low, max(behind - step.high, start.low), long)
        self.block(line.body)

    # -- expressions -----------------------------------------------------------

    def keep(self, value: Bounded, node: ast.expr) -> Bounded:
        return self.kernel._kept(value, f"{ast.unparse(node)} in {ast.unparse(self.line)[:160]}")

    def _signed(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and node.value in UNSIGNED:
            self.kernel.found.append(f"no sign: {node.value} in {ast.unparse(self.line)[:160]}")

    def value(self, node: ast.expr) -> Found:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is not None:
            return method(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return None

    def _constant(self, node: ast.Constant) -> Found:
        if type(node.value) is not int:
            return None
        # Triton takes the narrower type that holds a number.
        return Bounded(node.value, node.value, not LEAST <= node.value <= MOST)

    def _name(self, node: ast.Name) -> Found:
        return self.names.get(node.id)

    def _subscript(self, node: ast.Subscript) -> Found:
        return self.value(node.value)

    def _unaryop(self, node: ast.UnaryOp) -> Found:
        found = self.value(node.operand)
        if not isinstance(found, Bounded) or not isinstance(node.op, ast.USub):
            return None
        return Bounded(-found.high, -found.low, found.is_long)

    def _binop(self, node: ast.BinOp) -> Found:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Sub) and _is_address(node.left):
            self._signed(node.right)
        if not isinstance(left, Bounded) or not isinstance(right, Bounded):
            return None
        ends = _RULES[type(node.op)](left, right) if type(node.op) in _RULES else None
        if ends is None:
            return None
        return self.keep(Bounded(*ends, left.is_long or right.is_long), node)

    def _under(self, mask: ast.expr) -> _Scope:
        """The names where a mask holds, and of them what is computed from other positions."""
        found = _Scope(self.kernel, dict(self.names))
        found.line, found.texts = self.line, self.texts
        fewer = set()
        for test in self._tests(mask):
            was = found.names.get(test.left.id) if isinstance(test.left, ast.Name) else None
            found._masked(test)
            if was is not None and found.names[test.left.id] != was:
                fewer.add(test.left.id)
        for name, text in self.texts.items():
            used = {node.id for node in ast.walk(text) if isinstance(node, ast.Name)}
            if name not in fewer and used & fewer:
                found._bind(name, found.value(text))
                fewer.add(name)
        return found

    def _tests(self, mask: ast.expr, met: frozenset[str] = frozenset()) -> Iterator[ast.Compare]:
        """The comparisons that all hold where a mask does; of names ``met`` nothing is known."""
        if isinstance(mask, ast.Compare):
            yield mask
        elif isinstance(mask, ast.Name) and mask.id in self.texts and mask.id not in met:
            yield from self._tests(self.texts[mask.id], met | {mask.id})
        elif isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd):
            yield from self._tests(mask.left, met)
            yield from self._tests(mask.right, met)

    def _call(self, node: ast.Call) -> Found:
        masks = [word.value for word in node.keywords if word.arg == "mask"]
        first = self._under(masks[0]) if masks else self
        given = [(self if place else first).value(arg) for place, arg in enumerate(node.args)]
        for word in node.keywords:
            self.value(word.value)
        name = ast.unparse(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self._cast(self.value(node.func.value), node.args[0])
        if name in self.kernel.functions:
            self.kernel.called(name, given)
            return None
        if name == "tl.program_id":
            return Bounded(0, min(self.kernel.grid[node.args[0].value] - 1, MOST))
        if name in ("tl.cast", "tl.full"):
            held = given[0] if name == "tl.cast" else given[1]
            return self._cast(held, node.args[-1])
        return _CALLS[name](self, node, given) if name in _CALLS else None

    def _cast(self, value: Found, dtype: ast.expr) -> Found:
        to = ast.unparse(dtype)
        # As 32 bits it is data.
        return replace(value, is_long=True) if to == "tl.int64" and value is not None else None


def _is_address(node: ast.expr) -> bool:
    """Whether an expression is a sum that begins with a pointer."""
    while isinstance(node, ast.BinOp):
        node = node.left
    return isinstance(node, ast.Name) and node.id.endswith("_ptr")


# --- arithmetic ----------------------------------------------------------------------------------

Ends = Union[tuple[int, int], None]


def _product(a: Bounded, b: Bounded) -> Ends:
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


def _quotient(a: Bounded, b: Bounded) -> Ends:
    """Truncated, as in generated code."""
    if b.low <= 0:
        return None
    ends = [abs(x) // y * (-1 if x < 0 else 1) for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


def _residue(a: Bounded, b: Bounded) -> Ends:
    if b.low <= 0:
        return None
    return max(min(a.low, 0), 1 - b.high), min(max(a.high, 0), b.high - 1)


_RULES: dict[type[ast.operator], Callable[[Bounded, Bounded], Ends]] = {
    ast.Add: lambda a, b: (a.low + b.low, a.high + b.high),
    ast.Sub: lambda a, b: (a.low - b.high, a.high - b.low),
    ast.Mult: _product,
    ast.FloorDiv: _quotient,
    ast.Mod: _residue,
}

# --- functions of the library --------------------------------------------------------------------


def _same(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    return given[0]


def _minimum(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    if not all(isinstance(item, Bounded) for item in given):
        return None
    a, b = given
    return Bounded(min(a.low, b.low), min(a.high, b.high), a.is_long or b.is_long)


def _where(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    _, a, b = given
    return a.joined(b) if isinstance(a, Bounded) and isinstance(b, Bounded) else None


def _remainder(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    if not all(isinstance(item, Bounded) for item in given):
        return None
    a, b = given
    ends = _residue(a, b)
    return None if ends is None else Bounded(*ends, a.is_long or b.is_long)


def _index(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    """An index of a dim: 32 bits where the dim has fewer elements."""
    size = given[1]
    return Bounded(0, size.high - 1, "long" in ast.unparse(node.func) or size.is_long)


def _checked_index(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    return None if given[0] is None else given[0]


def _grouped_tile(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    tile, rows, columns, group = given
    scope.keep(Bounded(0, group.high * columns.high, tile.is_long), node)
    return Bounded(0, rows.high - 1, tile.is_long), Bounded(0, columns.high - 1, tile.is_long)


def _whole_vectors(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    start, row, vector = given
    long = start.is_long or row.is_long
    scope.keep(Bounded(start.low, start.high + vector.high - 1, long), node)
    first = Bounded(0, (start.high + vector.high - 1) // vector.high, long)
    return first, Bounded(0, vector.high - 1, long), Bounded(0, row.high, long)


def _edges(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    lane, lead, stop, row, vector = given
    long = any(item.is_long for item in given)
    scope.keep(Bounded(-vector.high, lane.high + lead.high + stop.high, long), node)
    return Bounded(0, row.high - 1, long), None


def _by_eight(scope: _Scope, node: ast.Call, given: list[Any]) -> Found:
    _, _, start, eighth, _ = given
    if isinstance(start, Bounded) and isinstance(eighth, Bounded):
        long = start.is_long or eighth.is_long
        scope.keep(Bounded(start.low, start.high // 4 + eighth.high * 2 + 2, long), node)
    return None


_CALLS: dict[str, Callable[[_Scope, ast.Call, list[Any]], Found]] = {
    "tl.arange": lambda scope, node, given: Bounded(0, given[1].high - 1),
    "tl.max_contiguous": _same,
    "tl.max_constancy": _same,
    "tl.minimum": _minimum,
    "tl.where": _where,
    "remainder": _remainder,
    "spread": _same,
    "clamped_index": _index,
    "clamped_long_index": _index,
    "wrapped_index": _index,
    "wrapped_long_index": _index,
    "checked_index": _checked_index,
    "grouped_tile": _grouped_tile,
    "whole_vectors": _whole_vectors,
    "edges": _edges,
    "philox_normal_by_eight": _by_eight,
    "philox_uniform_by_eight": _by_eight,
    "philox_word_by_eight": _by_eight,
}
