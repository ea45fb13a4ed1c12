"""Text of a kernel under construction: nested scopes of lines, and the names bound in each."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from ...dtypes import DataType
from ...errors import SourceLoc


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text, indented within its scope, and the user's line it stands for.

    ``loads`` names the tensor that the line loads from, if it does.
    """

    text: str
    loc: SourceLoc | None = None
    depth: int = 0
    loads: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A Triton expression with a value: its text, dtype, and the tile axes it runs over.

    ``literal`` marks a number written out.
    """

    text: str
    dtype: DataType
    dims: frozenset[str] = frozenset()
    literal: bool = False


@dataclass
class Scope:
    """A block of the kernel: the function body, or the body of a loop that moves ``axes``."""

    axes: frozenset[str] = frozenset()
    lines: list[Line] = field(default_factory=list)
    tail: list[Line] = field(default_factory=list)
    names: dict[Hashable, Name] = field(default_factory=dict)


class Writer:
    """Scopes from the outermost in; a value is written where its axes are known, no deeper."""

    def __init__(self) -> None:
        self.scopes = [Scope()]
        self._used: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """``wanted``, with a number behind it where it is taken."""
        count = self._used.get(wanted, 0)
        self._used[wanted] = count + 1
        return wanted if count == 0 else self.fresh(f"{wanted}_{count}")

    def numbered(self, wanted: str) -> str:
        """``x0``, ``x1``, ...: the next name of a series."""
        count = self._used.get(f"{wanted}#", 0)
        self._used[f"{wanted}#"] = count + 1
        return self.fresh(f"{wanted}{count}")

    def scope_for(self, dims: frozenset[str]) -> Scope:
        """The outermost scope in which all these axes run."""
        for scope in reversed(self.scopes):
            if not scope.axes.isdisjoint(dims):
                return scope
        return self.scopes[0]

    def find(self, key: Hashable) -> Name | None:
        for scope in reversed(self.scopes):
            if key in scope.names:
                return scope.names[key]
        return None

    def open_loop(self, *axes: str) -> None:
        self.scopes.append(Scope(frozenset(axes)))

    def close_loop(self, header: str, *first: str) -> None:
        """End the innermost loop: its lines go behind what its parent has by now."""
        scope = self.scopes.pop()
        parent = self.scopes[-1]
        parent.lines.append(Line(header))
        for line in (*(Line(text) for text in first), *scope.lines, *scope.tail):
            parent.lines.append(replace(line, depth=line.depth + 1))
