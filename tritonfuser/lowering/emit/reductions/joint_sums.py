"""Sums of two blocks that warps exchange together.

A sum over several warps goes through shared memory twice, with barriers before, between and after,
for each of which a warp waits. Two independent sums can go together, as one reduction of two
blocks: the backward of a layer norm has two for every row. H200, 12 backwards of norms: 0.975 of
the time (geometric mean; 0.91 to 1.02).

Loops that prefetch into registers are left alone. Ptxas issues the loads of the next step just
before the first barrier, and one exchange in place of two hides less of their latency. 12 such
kernels take as long on average, but 0.75 to 1.23 of the time: 119 us and 146, two sums and their
tails over rows of 8194. A barrier in the text after these loads changes nothing (76 kernels): ptxas
moves it down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..line_passes import WORD, assigned_names, words_in
from ..lines import Line


def sums_together(lines: Sequence[Line]) -> list[Line]:
    """The lines, with pairs of sums as one: ``a = tl.sum(x, 1)``, ``b = tl.sum(y, 1)`` ->
    ``a, b = reduce_sums(x, y, 1)`` where the second one is."""
    left, found = list(lines), []
    while left:
        other = _partner(left)
        if other is not None:
            left[: other + 1] = [*left[1:other], *_joint_lines(left[0], left[other])]
        else:
            found.append(left.pop(0))
    return found


def _partner(lines: Sequence[Line]) -> int | None:
    """The number of the next sum like that of the first line, if nothing before it needs that."""
    one = lines[0]
    if not one.sums:
        return None
    (name,) = assigned_names(one)
    read = {word for block in one.sums for word in WORD.findall(block.block)}
    for place, line in enumerate(lines[1:], 1):
        changes = (read | {name}) & {*assigned_names(line)}
        if line.depth != one.depth or name in words_in(line) or changes:
            return None
        if _are_alike(one, line):
            return place
    return None


def _are_alike(one: Line, other: Line) -> bool:
    """Whether both add up the sums of as many blocks, of the same shapes."""
    if len(one.sums) != len(other.sums):
        return False
    return all(a.is_like(b) for a, b in zip(one.sums, other.sums, strict=True))


def _joint_lines(one: Line, other: Line) -> list[Line]:
    """The sums of both, block by block, and what each line makes of its own."""
    found = []
    for number, (x, y) in enumerate(zip(one.sums, other.sums, strict=True)):
        names = ", ".join(_name_of_sum(line, number) for line in (one, other))
        text = f"{names} = reduce_sums({x.block}, {y.block}, {x.dim})"
        found.append(replace(other, text=text, sums=()))
    return [*found, *(line for line in map(_line_of_sums, (one, other)) if line is not None)]


def _line_of_sums(line: Line) -> Line | None:
    """What a line makes of the sums of its blocks. None where it has one, as it is."""
    text = line.text
    for number, block in enumerate(line.sums):
        text = text.replace(block.text, _name_of_sum(line, number), 1)
    target, _, value = text.partition(" = ")
    return None if value == target else replace(line, text=text, sums=())


def _name_of_sum(line: Line, number: int) -> str:
    """The name of one of the sums of a line: its own, if it makes nothing else of it.

    No other variable ends in ``_sum``: that is no mark of a value (``Writer.define``).
    """
    (name,) = assigned_names(line)
    is_all = line.text == f"{name} = {line.sums[0].text}"
    return name if is_all else f"{name}_sum{number or ''}"
