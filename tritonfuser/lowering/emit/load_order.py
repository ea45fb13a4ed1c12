"""Moves loads to the front of a kernel's text, in the order with the fewest layout conversions.

If operands of an op have different layouts, Triton computes it in the layout of the load that comes
last in the text (``LayoutPropagation`` in ``RemoveLayoutConversions.cpp``, Triton 3.6: its queue
starts with the last one), and converts all others through shared memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch

from ...dtypes import DataType
from .line_passes import ALL_ASSIGNED, WORD
from .lines import Block, Line

_LOADS = "tl.load("
_OTHER = re.compile(r"other=([^,)]+)")


Pass = Callable[[Sequence[Line]], list[Line]]
"""A pass that reorders lines."""


def in_loop_bodies(reorder: Pass, lines: Sequence[Line]) -> list[Line]:
    """Apply a pass to the body of each loop. Lines outside of loops stay where they are."""
    found: list[Line] = []
    for in_loop, group in groupby(lines, key=lambda line: line.depth > 0):
        body = list(group)
        found += reorder(body) if in_loop else body
    return found


def loads_first(lines: Sequence[Line]) -> list[Line]:
    """Hoist loads, with their address arithmetic, to the front: ``a = tl.load(...)``,
    ``b = exp(a)``, ``c = tl.load(...)`` -> both loads, then ``b``.

    A thread then waits for memory once. The compiler itself hoists no load across the barrier of a
    reduction, or a function with branches. Loads stay if they are in a loop (unless all lines are
    in it), and if their addresses depend on other loads or on values that are assigned later.

    Loads of the layout with more loaded and stored bytes come later. H200, 22 random definitions
    whose kernels have fewer layout conversions by that: 0.93 times as long (geometric mean; 0.57 at
    the best).
    """
    found = movable_loads(lines)
    bytes_of = _bytes_of_layouts(lines)
    loads = sorted(found.loads, key=lambda n: bytes_of[_layout(lines[n].block)])
    order: dict[int, None] = {}
    for load in loads:
        order |= dict.fromkeys(sorted(found.with_needs(load)))
    late = _used_late([lines[n] for n in loads])
    first = [late[lines[n].text][0] if lines[n].text in late else lines[n] for n in order]
    rest = (lines[n] for n in range(len(lines)) if n not in order)
    return [*first, *(used for _, used in late.values()), *rest]


def crossing_first(lines: Sequence[Line], threads: int) -> list[Line]:
    """Move loads of a single row or column in another layout than the main one, which has the most
    loaded and stored bytes, before the first load of the main layout, so that ops are computed in
    the main layout. Loads of fewer elements than ``threads`` do not determine layouts, and stay.

    For kernels whose other loads stay where they are used, since hoisting them would take too many
    registers. sm_90, two sums over rows of 64 x 256 that are contiguous along dim 0, with a weight
    along dim 1: the second sum was computed in the weight's layout, and all of the tile went
    through shared memory.
    """
    found, bytes_of = movable_loads(lines), _bytes_of_layouts(lines)
    most = max(bytes_of, key=bytes_of.__getitem__, default=_layout(None))
    top = next((n for n in found.loads if _layout(lines[n].block) == most), len(lines))
    moved: set[int] = set()
    for load in found.loads:
        places, fastest = _layout(lines[load].block)
        crosses = places < most[0] and fastest != most[1]
        if load > top and crosses and _elements(lines[load].block) >= threads:
            moved |= {n for n in found.with_needs(load) if n > top}
    rest = (n for n in range(top, len(lines)) if n not in moved)
    return [*lines[:top], *(lines[n] for n in (*sorted(moved), *rest))]


@dataclass(frozen=True)
class MovableLoads:
    """The loads that can be hoisted, by line numbers.

    Attributes
    ----------
    loads : list of int
        The lines of the loads, in the order of the text.
    needs : mapping of int to set of int
        For each line the lines that assign the names that it reads.
    """

    loads: Sequence[int]
    needs: Mapping[int, Collection[int]]

    def with_needs(self, line: int) -> set[int]:
        """A line, and all lines that it depends on."""
        found, stack = {line}, [line]
        while stack:
            fresh = set(self.needs[stack.pop()]) - found
            found |= fresh
            stack += fresh
        return found


def movable_loads(lines: Sequence[Line]) -> MovableLoads:
    """The loads that can be hoisted: all but those in loops and those whose addresses depend on
    other loads or on values that are assigned later."""
    depth = min((line.depth for line in lines), default=0)
    parts = [ALL_ASSIGNED.fullmatch(line.text) for line in lines]
    targets = [part[1].split(", ") if part else [] for part in parts]
    assigned = Counter(name for names in targets for name in names)
    written: dict[str, int] = {}
    waits: dict[int, bool] = {}
    needs: dict[int, set[int]] = {}
    first: list[int] = []
    for n, (line, part, names) in enumerate(zip(lines, parts, targets, strict=True)):
        if part is None:
            continue
        words = WORD.findall(part[2])
        needs[n] = {written[word] for word in words if word in written}
        once = all(assigned[word] <= 1 for word in (*names, *words))
        once = once and all(word in written for word in words if assigned[word])
        stays = line.depth > depth or bool(line.op) or len(names) > 1 or not once
        waits[n] = stays or any(waits[need] for need in needs[n])
        if part[2].startswith(_LOADS):
            first += [] if waits[n] else [n]
            waits[n] = True
        written.update(dict.fromkeys(names, n))
    return MovableLoads(first, needs)


_Layout = tuple[frozenset[int], int]


def _layout(block: Block | None) -> _Layout:
    return (frozenset(), 0) if block is None else (block.places, block.fastest)


def _elements(block: Block | None) -> int:
    return 1 if block is None else block.bytes // block.dtype.info.bytes


def main_fastest(lines: Iterable[Line]) -> int | None:
    """The dim along which threads run first in the layout of most bytes; None without blocks."""
    found = _bytes_of_layouts(lines)
    return max(found, key=found.__getitem__)[1] if found else None


def _bytes_of_layouts(lines: Iterable[Line]) -> Counter[_Layout]:
    """Loaded and stored bytes of each layout, without scalars."""
    found: Counter[_Layout] = Counter()
    for line in lines:
        if line.block is not None:
            found[_layout(line.block)] += line.block.bytes
    return found


def _used_late(loads: Sequence[Line]) -> dict[str, tuple[Line, Line]]:
    """For the text of each load whose layout is converted: a load of the same bits as integers, and
    the line after all loads that converts these to the value.

    Triton converts the layout of a value directly after the op that defines it, unless that is a
    cast to a wider dtype. There it waits for the value, before the loads that follow are issued.
    H200, of random definitions: 297 us and 177 with a mask loaded as bytes, 790 and 662 with
    float32 loaded as words; 60 and 68 at the worst.
    """
    last = loads[-1].block if loads else None
    found: dict[str, tuple[Line, Line]] = {}
    for line in loads:
        block = line.block
        if last is None or block is None or len(block.places) < 2 or block.fastest == last.fastest:
            continue
        pair = _as_bits(line, block.dtype)
        found |= {} if pair is None else {line.text: pair}
    return found


_BITS = {
    DataType.Bool: ("int8", "{} != 0"),
    DataType.Float: ("int32", "{}.to(tl.float32, bitcast=True)"),
    DataType.Double: ("int64", "{}.to(tl.float64, bitcast=True)"),
}
"""The integer dtype to load in place of a dtype, and the value as an expression of it. Narrower
floats need none: they are cast to a wider dtype where they are used."""


def _as_bits(line: Line, dtype: DataType) -> tuple[Line, Line] | None:
    """The two lines of ``_used_late``. None if the dtype needs none, or if the value of masked
    elements has no integer."""
    part, other = ALL_ASSIGNED.fullmatch(line.text), _OTHER.search(line.text)
    if dtype not in _BITS or part is None or not line.loads:
        return None
    word, value = _BITS[dtype]
    beyond = 0 if other is None else _bits_of(other[1], dtype, word)
    if beyond is None:
        return None
    name, bits, pointer = part[1], f"{part[1]}_bits", f"{line.loads}_ptr"
    text = part[2].replace(pointer, f"{pointer}.to(tl.pointer_type(tl.{word}))", 1)
    load = replace(line, text=f"{bits} = {_OTHER.sub(f'other={beyond}', text)}")
    return load, Line(f"{name} = {value.format(bits)}", depth=line.depth)


def _bits_of(number: str, dtype: DataType, word: str) -> int | None:
    """The bits of a literal in a dtype, as an integer; None if the text is no plain number."""
    try:
        found = float(number) if number != "False" else 0.0
    except ValueError:
        return None
    return int(torch.tensor(found, dtype=dtype.info.torch).view(getattr(torch, word)))
