"""Software prefetch: the loads of a loop are issued one step ahead, into registers.

A loop over rows waits for memory in each step, since the compiler hoists no load across the barrier
of a reduction::

    for m in range(64):
        tv0 = tl.load(tv0_ptr + m * 320 + r)
        ...

Here the loads of the next step are in flight while this one is computed::

    tv0_next = tl.load(tv0_ptr + r)
    for m in range(64):
        tv0 = tv0_next
        m_next = tl.minimum(m + 1, 63)
        tv0_next = tl.load(tv0_ptr + m_next * 320 + r)
        ...

The last step loads its own rows again, which hit a cache and are not used, so that loads need no
additional mask. Triton's pipeline does the same through shared memory. Its copies are slow if those
of a thread are short, and it may compute values in two layouts: only loads fix the layout of the
values that depend on them, and a pipelined loop has none (Triton 3.6,
``RemoveLayoutConversions.cpp``). Prefetching more than one step ahead is of no use: values in
registers are moved to other registers in each step, and a move waits for the load.

H100, 67 backwards of norms of random definitions, the best of three sizes of tiles: 1.035 times as
long as the best of all (geometric mean), 1.132 by pipelines of three stages, 1.136 by neither.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ....symbolic.sizes import is_size
from ...tile.tile import Tile
from ..line_passes import WORD, assigned_names, words_in
from ..lines import Line
from ..load_order import movable_loads
from .zero_terms import without_zero


@dataclass(frozen=True, slots=True)
class LoopSteps:
    """The steps of a loop, as text.

    Attributes
    ----------
    name : str
        The loop's variable.
    step, last : str
        What is added to it in a step, and its value in the last one.
    guard : str
        The condition that there are steps. Empty where there always are.
    """

    name: str
    step: str
    last: str
    guard: str = ""

    @staticmethod
    def of(loop: Tile, name: str) -> LoopSteps:
        """Those of a loop over the positions of a tile."""
        guard = f"({loop.stop_text} > 0)" if loop.may_be_empty else ""
        last = f"{loop.stop_text} - 1"
        if loop.part is None and not is_size(loop.end):
            last = str((loop.end - 1) // loop.width * loop.width)
        elif loop.block is not None:
            last = f"({last}) // {loop.block} * {loop.block}"
        return LoopSteps(name, loop.block or "1", last, guard)

    @property
    def following(self) -> str:
        """The value of the variable in the next step; in the last step, the same value."""
        return f"tl.minimum({self.name} + {self.step}, {self.last})"


def with_prefetch(lines: Sequence[Line], loops: Sequence[LoopSteps]) -> list[Line]:
    """The lines of a kernel whose loops prefetch.

    Parameters
    ----------
    loops : sequence of LoopSteps
        The loops, in the order of the text.
    """
    used = {word for line in lines for word in WORD.findall(line.code)}
    steps, place = iter(loops), 0
    found: list[Line] = []
    while place < len(lines):
        header, end = lines[place], place + 1
        if header.text.startswith("for ") and not header.depth:
            while end < len(lines) and lines[end].depth:
                end += 1
            found += _Loop(next(steps), lines[place + 1 : end], used).lines(header)
        else:
            found.append(header)
        place = end
    return found


class _Loop:
    """A loop, and the lines that it executes one step ahead: loads and their address arithmetic.

    Parameters
    ----------
    used : set of str
        The names that the kernel has already.
    """

    def __init__(self, steps: LoopSteps, body: Sequence[Line], used: Collection[str]) -> None:
        self._steps, self._body, self._used = steps, body, used
        found = movable_loads(body)
        moving = {n for n, line in enumerate(body) if steps.name in words_in(line)}
        needs = {load: found.with_needs(load) for load in found.loads}
        self._loads = sorted(load for load in found.loads if moving & needs[load])
        needed = set[int]().union(*(needs[load] for load in self._loads))
        self._ahead = [body[n] for n in sorted(needed)]
        loaded = [name for n in self._loads for name in assigned_names(body[n])]
        self._next_names = {name: self._unused(f"{name}_next") for name in loaded}

    def lines(self, header: Line) -> list[Line]:
        """The lines of the loop, and those before it."""
        if not self._loads:
            return [header, *self._body]
        guard, body = self._steps.guard, self._body
        first = without_zero([*self._loads_of_step("first", "0")])
        taken = (f"{name} = {next_name}" for name, next_name in self._next_names.items())
        inside = (*map(Line, taken), *self._loads_of_step("next", self._steps.following))
        return [
            *((with_mask(line, guard) for line in first) if guard else first),
            header,
            *(replace(line, depth=1) for line in inside),
            *(line for n, line in enumerate(body) if n not in self._loads),
        ]

    def _loads_of_step(self, mark: str, start: str) -> Iterator[Line]:
        """The loads of a step, with their places, whose names have a mark.

        Parameters
        ----------
        start : str
            The value of the loop's variable.
        """
        places = [
            n for line in self._ahead for n in assigned_names(line) if n not in self._next_names
        ]
        marked = {name: self._unused(f"{name}_{mark}") for name in (self._steps.name, *places)}
        names = self._next_names | marked
        yield Line(f"{names[self._steps.name]} = {start}")
        for line in self._ahead:
            text = WORD.sub(lambda word: names.get(word[0], word[0]), line.text)
            yield replace(line, text=text, depth=0, loc=None)

    def _unused(self, name: str) -> str:
        return self._unused(f"{name}_") if name in self._used else name


def with_mask(line: Line, mask: str) -> Line:
    """A load under one more condition; any other line as it is."""
    if not line.loads:
        return line
    if "mask=" in line.text:
        return replace(line, text=line.text.replace("mask=", f"mask={mask} & ", 1))
    return replace(line, text=f"{line.text.removesuffix(')')}, mask={mask}, other=0)")
