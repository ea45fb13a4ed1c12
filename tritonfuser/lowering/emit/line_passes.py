"""Passes over the lines of a kernel: dead lines dropped, comments placed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ...errors import SourceLoc
from .lines import Line, place_text

WORD = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*) [-+*/]?= (.*)", re.DOTALL)
ALL_ASSIGNED = re.compile(r"([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) = (.*)", re.DOTALL)


def words_in(line: Line) -> list[str]:
    """The names that a line reads, function names too."""
    part = ALL_ASSIGNED.fullmatch(line.code)
    return WORD.findall(part[2] if part else line.code)


def assigned_names(line: Line) -> list[str]:
    """The names that a line assigns to."""
    part = ALL_ASSIGNED.fullmatch(line.text)
    return part[1].split(", ") if part else []


def used_names(lines: Iterable[Line]) -> frozenset[str]:
    """All words of some lines."""
    return frozenset(word for line in lines for word in WORD.findall(line.code))


def eliminate_dead_lines(lines: Sequence[Line]) -> list[Line]:
    """Dead code elimination: lines whose names nobody reads are dropped, repeatedly.

    A name that a line reads to compute its next value, as ``tv1_acc += tv0`` does, is not read by
    that. A line that checks an index stays.
    """
    parts = [_ASSIGNED.fullmatch(line.text) if not line.op else None for line in lines]
    words = [_words_of_others(line, part) for line, part in zip(lines, parts, strict=True)]
    reads = Counter(word for found in words for word in found)
    left = set(range(len(lines)))
    while True:
        unused = [n for n in left if (part := parts[n]) is not None and not reads[part[1]]]
        if not unused:
            return [lines[n] for n in sorted(left)]
        for n in unused:
            left.remove(n)
            reads.subtract(words[n])


def _words_of_others(line: Line, part: re.Match[str] | None) -> list[str]:
    """The names that a line reads, without the one that it assigns to."""
    if part is None:
        return WORD.findall(line.code)
    return [word for word in WORD.findall(part[2]) if word != part[1]]


def comments(lines: Sequence[Line]) -> dict[int, str]:
    """The comment before each line that has one, by the line's number.

    The comment of an op is before the loads and the masks that are there for the op alone. It is
    not repeated for the lines that follow it::

        # model.py:12
        tv1 = tl.load(tv1_ptr + x)
        tv3 = tv2 + tv1
    """
    readers = Counter(word for line in lines for word in set(words_in(line)))
    found: dict[int, str] = {}
    shown = ""
    for number, line in enumerate(lines):
        if line.loc is not None and (place := _place(line.loc)) != shown:
            found[_first_line_for(lines, number, readers)] = shown = place
    return found


def _place(loc: SourceLoc) -> str:
    return f"# {place_text(loc)}"


def _first_line_for(lines: Sequence[Line], number: int, readers: Mapping[str, int]) -> int:
    """The first of the lines directly before a line that only prepare it, such as its loads."""
    needed = Counter(set(words_in(lines[number])))
    first = number
    while first > 0:
        line = lines[first - 1]
        names = assigned_names(line)
        if line.loc is not None or line.depth != lines[number].depth or not names:
            break
        if not all(needed[name] for name in names):
            break
        if not line.loads and any(needed[name] < readers[name] for name in names):
            break
        first -= 1
        needed.update(set(words_in(line)))
    return first
