"""Passes over the lines of a kernel: dead lines dropped, loads first, comments placed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

from ...errors import SourceLoc
from .lines import Line, place_text

_WORD = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*) = (.*)", re.DOTALL)
_ALL_ASSIGNED = re.compile(r"([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) = (.*)", re.DOTALL)
_LOADS = "tl.load("


def words_in(line: Line) -> list[str]:
    """The names that a line reads, function names too."""
    part = _ALL_ASSIGNED.fullmatch(line.code)
    return _WORD.findall(part[2] if part else line.code)


def assigned_names(line: Line) -> list[str]:
    """The names that a line assigns to."""
    part = _ALL_ASSIGNED.fullmatch(line.text)
    return part[1].split(", ") if part else []


def without_unused(lines: Sequence[Line]) -> list[Line]:
    """Dead code elimination: lines whose names nobody reads are dropped, repeatedly.

    A line that checks an index stays.
    """
    parts = [_ASSIGNED.fullmatch(line.text) if not line.op else None for line in lines]
    texts = [part[2] if part else line.code for line, part in zip(lines, parts, strict=True)]
    words = [_WORD.findall(text) for text in texts]
    reads = Counter(word for found in words for word in found)
    left = set(range(len(lines)))
    while True:
        unused = [n for n in left if (part := parts[n]) is not None and not reads[part[1]]]
        if not unused:
            return [lines[n] for n in sorted(left)]
        for n in unused:
            left.remove(n)
            reads.subtract(words[n])


def loads_first_in_steps(lines: Sequence[Line]) -> list[Line]:
    """Move the loads of each loop's body before what the body computes, as ``loads_first`` does.

    Lines outside of loops stay where they are.
    """
    found: list[Line] = []
    for in_loop, group in groupby(lines, key=lambda line: line.depth > 0):
        body = list(group)
        found += loads_first(body) if in_loop else body
    return found


def loads_first(lines: Sequence[Line]) -> list[Line]:
    """Move loads, with the arithmetic of their places, before all else: ``a = tl.load(...)``,
    ``b = exp(a)``, ``c = tl.load(...)`` -> both loads, then ``b``.

    A thread then waits for memory once. Behind a reduction, whose barrier no compiler moves loads
    across, or behind a function with branches, it would wait again. Loads in loops stay, unless all
    lines are in one, and those whose places are loaded, computed of what is loaded, or known later.
    """
    depth = min((line.depth for line in lines), default=0)
    parts = [_ALL_ASSIGNED.fullmatch(line.text) for line in lines]
    targets = [part[1].split(", ") if part else [] for part in parts]
    assigned = Counter(name for names in targets for name in names)
    written: dict[str, int] = {}
    waits: dict[int, bool] = {}
    needs: dict[int, set[int]] = {}
    first: set[int] = set()
    for n, (line, part, names) in enumerate(zip(lines, parts, targets, strict=True)):
        if part is None:
            continue
        words = _WORD.findall(part[2])
        needs[n] = {written[word] for word in words if word in written}
        once = all(assigned[word] <= 1 for word in (*names, *words))
        once = once and all(word in written for word in words if assigned[word])
        stays = line.depth > depth or bool(line.op) or len(names) > 1 or not once
        waits[n] = stays or any(waits[need] for need in needs[n])
        if part[2].startswith(_LOADS):
            first |= set() if waits[n] else {n}
            waits[n] = True
        written.update(dict.fromkeys(names, n))
    stack = list(first)
    while stack:
        fresh = needs[stack.pop()] - first
        first |= fresh
        stack += fresh
    rest = (n for n in range(len(lines)) if n not in first)
    return [lines[n] for n in (*sorted(first), *rest)]


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
