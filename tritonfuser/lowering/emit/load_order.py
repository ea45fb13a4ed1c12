"""Loads before what is computed, in the order in which they cost the fewest changes of layout.

Where an op has operands of different layouts, Triton computes it in that of the load that comes
last in the text (``LayoutPropagation`` in ``RemoveLayoutConversions.cpp``, Triton 3.6: its queue
begins with the last one), and takes all others through shared memory.
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
"""A pass over lines, which may have another order in its result."""


def in_steps(reorder: Pass, lines: Sequence[Line]) -> list[Line]:
    """Reorder the body of each loop. Lines outside of loops stay where they are."""
    found: list[Line] = []
    for in_loop, group in groupby(lines, key=lambda line: line.depth > 0):
        body = list(group)
        found += reorder(body) if in_loop else body
    return found


def loads_first(lines: Sequence[Line]) -> list[Line]:
    """Move loads, with the arithmetic of their places, before all else: ``a = tl.load(...)``,
    ``b = exp(a)``, ``c = tl.load(...)`` -> both loads, then ``b``.

    A thread then waits for memory once. Behind a reduction, whose barrier no compiler moves loads
    across, or behind a function with branches, it would wait again. Loads in loops stay, unless all
    lines are in one, and those whose places are loaded, computed of what is loaded, or known later.

    Those of a layout of which more bytes are loaded and stored come later. H200, 22 random
    definitions whose kernels change layouts less for it: 0.93 times as long (geometric mean; 0.57
    at the best).
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
    """Move loads of one row or column that lie across the layout of which most bytes are loaded and
    stored before the first load of that layout: it is what is computed in then. Loads of fewer
    elements than a program has ``threads`` have no say in that, and stay.

    For kernels whose other loads stay where they are used, as they would take too many registers.
    sm_90, two sums over rows of 64 x 256 that lie along dim 0, with a weight along dim 1: the
    weight's layout was that of the second sum, and all of the tile went through shared memory.
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
    """The loads that may come first, by the numbers of their lines.

    Attributes
    ----------
    loads : list of int
        In the order of the text.
    needs : mapping of int to set of int
        For each line those that assign what it reads.
    """

    loads: Sequence[int]
    needs: Mapping[int, Collection[int]]

    def with_needs(self, line: int) -> set[int]:
        """A line, and all lines that it needs."""
        found, stack = {line}, [line]
        while stack:
            fresh = set(self.needs[stack.pop()]) - found
            found |= fresh
            stack += fresh
        return found


def movable_loads(lines: Sequence[Line]) -> MovableLoads:
    """The loads that may come first among lines: all but those whose places are loaded or known
    later, and those in loops."""
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


def _bytes_of_layouts(lines: Iterable[Line]) -> Counter[_Layout]:
    """Bytes that are loaded and stored in each layout; none of single elements."""
    found: Counter[_Layout] = Counter()
    for line in lines:
        if line.block is not None:
            found[_layout(line.block)] += line.block.bytes
    return found


def _used_late(loads: Sequence[Line]) -> dict[str, tuple[Line, Line]]:
    """By the text of a load: a load of the same bits as integers, and the line behind all loads
    that makes the value of them.

    Triton changes the layout of a value directly behind the op that makes it, unless that is a cast
    to a wider dtype, and waits for the value there, before the loads that follow are issued. H200,
    of random definitions: 297 us and 177 with a mask loaded as bytes, 790 and 662 with float32
    loaded as words; 60 and 68 at the worst.
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
"""The integers to load in the place of a dtype, and the value as an expression of them. Narrower
floats are cast to a wider dtype where they are used."""


def _as_bits(line: Line, dtype: DataType) -> tuple[Line, Line] | None:
    """None where there is no need, or where the load gives an infinity beyond its mask."""
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
    """The bits of a number of a dtype, as an integer; None of what is no plain number."""
    try:
        found = float(number) if number != "False" else 0.0
    except ValueError:
        return None
    return int(torch.tensor(found, dtype=dtype.info.torch).view(getattr(torch, word)))
