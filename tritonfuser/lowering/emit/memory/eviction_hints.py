"""Cache eviction policies of loads in loops, put into the lines of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ....device import CACHE_LINE_BYTES
from ....ir import Fusion
from ...access.aliases import buffer_strides
from ...access.reads import Read
from ...access.traffic import Traffic, offset_of
from ...tile.tile import Tile
from ..lines import Line

SHORT_STEP_BYTES = 8 * CACHE_LINE_BYTES
"""Bytes of a row in fewer than which a step counts as short: the next step loads the lines at both
ends of them again. H200, 32 definitions with such steps: 1.009 times the speed without hints on
these loads (geometric mean; 0.971 to 1.041)."""


def loaded_in_short_steps(reads: Iterable[Read], loop: Tile, fusion: Fusion) -> frozenset[str]:
    """The tensors that lie along a loop, and of whose rows a step loads few bytes."""
    found = set[str]()
    for read in reads:
        if read.value.is_tensor:
            move = Traffic(read.value, offset_of(read.index, buffer_strides(fusion, read.value)))
            along = move.fastest is not None and move.fastest.name == loop.axis.name
            if along and loop.width * move.item_bytes < SHORT_STEP_BYTES:
                found.add(read.value.name)
    return frozenset(found)


def with_evictions(
    lines: Sequence[Line], read_by_all: frozenset[str], loaded_again: frozenset[str] = frozenset()
) -> list[Line]:
    """Give loads in loops eviction policies.

    A row that several loops read is kept until the last of them. What all programs read is kept
    throughout. Everything else is evicted first, unless its lines are loaded again.

    Parameters
    ----------
    read_by_all : frozenset of str
        Tensors of which each program reads the same elements.
    loaded_again : frozenset of str
        Tensors whose lines a later kernel, or the next step, loads before caches evict them.
    """
    last = {line.loads: place for place, line in enumerate(lines) if line.depth and line.loads}
    found = []
    for place, line in enumerate(lines):
        if line.depth and line.loads:
            again = line.loads in read_by_all or last[line.loads] != place
            if again or line.loads not in loaded_again:
                line = _kept(line, again)
        found.append(line)
    return found


def kept_until(lines: Sequence[Line], late: int) -> list[Line]:
    """Eviction policies for a tensor that a step loads twice: kept until its second load.

    Parameters
    ----------
    late : int
        Where the second part of the step begins; the loads there are evicted first.
    """
    again = {line.loads for line in lines[late:] if line.loads}
    return [
        _kept(line, place < late and line.loads in again) if line.loads else line
        for place, line in enumerate(lines)
    ]


def _kept(line: Line, again: bool) -> Line:
    policy = "evict_last" if again else "evict_first"
    assert line.text.endswith(")"), line.text
    return replace(line, text=f'{line.text[:-1]}, eviction_policy="{policy}")')
