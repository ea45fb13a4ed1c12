"""Common subexpressions: what a kernel's text computes a second time has the first one's name.

Writers name a value of the definition once. Parts of two values may be the same all the same, as
the difference of a row and its mean, which moments and a norm both take::

    tv5_centered = tv1 - tv4           tv5_centered = tv1 - tv4
    ...                          ->    ...
    tv7 = tv1 - tv4                    tv9 = tv5_centered * tv8
    tv9 = tv7 * tv8

Compilers find these too, so it is for those who read the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from .line_passes import WORD, assigned_names, eliminate_dead_lines, words_in
from .lines import Line

_VALUE = re.compile(r"([A-Za-z_]\w*) = (.*)", re.DOTALL)
_NUMBER = re.compile(r"-?[\d.e+-]+")
_READING_MEMORY = frozenset(
    {"load", "peek", "wait_for", "is_last", "drawn", "atomic_add", "atomic_max", "atomic_min"}
)
"""Words of texts that may give another value the second time."""


def without_redundancy(lines: Sequence[Line]) -> list[Line]:
    """The lines of a function, each needed, and each value computed once."""
    return eliminate_common_subexpressions(eliminate_dead_lines(lines))


def eliminate_common_subexpressions(lines: Sequence[Line]) -> list[Line]:
    """The lines of a function without those that compute what a name has already."""
    return _ValueNumbering(lines).lines()


@dataclass
class _Block:
    """The values computed so far in a block of lines: operands and expression -> variable."""

    depth: int
    known: dict[tuple[str, ...], str] = field(default_factory=dict)


class _ValueNumbering:
    """Walks over the lines; a name has another version behind each line that assigns to it."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self._assigned = Counter(n for line in lines for n in _assigned_by(line))
        self._versions: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._blocks = [_Block(0)]

    def lines(self) -> list[Line]:
        """All lines that are left, with the first names of all values."""
        found: list[Line] = []
        for place, line in enumerate(self._lines):
            while line.depth < self._blocks[-1].depth:
                self._blocks.pop()
            if line.depth > self._blocks[-1].depth:
                self._blocks.append(_Block(line.depth))
            line = self._with_first_names(line)
            if not self._is_known(place, line):
                found.append(line)
            self._versions.update(_assigned_by(line))
            if line.text.endswith(":"):
                self._versions.update(_assigned_in_block(self._lines, place))
        return found

    def _with_first_names(self, line: Line) -> Line:
        if not any(word in self._first for word in WORD.findall(line.code)):
            return line
        return replace(line, text=_renamed(line.text, self._first))

    def _is_known(self, place: int, line: Line) -> bool:
        """Whether a variable with the value of this line exists; later lines then read that one."""
        match = _VALUE.fullmatch(line.text)
        if match is None or not self._is_pure(line, match[2]):
            return False
        name, text = match[1], match[2]
        if self._assigned[name] > 1 or name in words_in(line):
            return False
        if text.isidentifier():
            return self._is_copy(name, text, place)
        key = (text, *(f"{word} {self._versions[word]}" for word in words_in(line)))
        first = next((b.known[key] for b in self._blocks if key in b.known), None)
        if first is None:
            self._blocks[-1].known[key] = name
            return False
        if self._is_read_outside(name, place):
            return False
        self._first[name] = first
        return True

    def _is_copy(self, name: str, other: str, place: int) -> bool:
        """Whether a line only renames an earlier variable; later lines then read that one."""
        if self._assigned[other] != 1 or self._is_read_outside(name, place):
            return False
        self._first[name] = other
        return True

    def _is_pure(self, line: Line, text: str) -> bool:
        """Whether a text gives the same each time, and is more than a number."""
        reads = line.op or line.loads or _READING_MEMORY & set(words_in(line))
        return not (_NUMBER.fullmatch(text) or reads)

    def _is_read_outside(self, name: str, place: int) -> bool:
        """Whether a name is read before the line that assigns to it, or behind the line's block."""
        end = _end_of_block(self._lines, place)
        outside = (*self._lines[:place], *self._lines[end:])
        return any(name in words_in(line) for line in outside)


def _assigned_by(line: Line) -> list[str]:
    """The names that a line gives a value: of ``a = b``, ``a += b`` and ``for a in b:``."""
    if line.text.startswith("for "):
        return WORD.findall(line.text.split(" in ", 1)[0])[1:]
    if match := re.match(r"(\w+) [-+*/|&]+= ", line.text):
        return [match[1]]
    return assigned_names(line)


def _end_of_block(lines: Sequence[Line], place: int) -> int:
    """The number of the first line behind the block of a line."""
    depth, end = lines[place].depth, place + 1
    while end < len(lines) and lines[end].depth >= depth:
        end += 1
    return end


def _assigned_in_block(lines: Sequence[Line], header: int) -> Iterable[str]:
    """What the block behind a header assigns to: it may have run before, or not at all."""
    end = header + 1
    while end < len(lines) and lines[end].depth > lines[header].depth:
        end += 1
    return [name for line in lines[header + 1 : end] for name in _assigned_by(line)]


def _renamed(text: str, names: dict[str, str]) -> str:
    """A text with other names; string literals stay."""
    parts = re.split('("[^"]*")', text)
    parts[::2] = [WORD.sub(lambda word: names.get(word[0], word[0]), part) for part in parts[::2]]
    return "".join(parts)
