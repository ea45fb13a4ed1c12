"""Cache eviction policies of loads in loops, put into the lines of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..lines import Line


def with_evictions(
    lines: Sequence[Line], read_by_all: frozenset[str], loaded_later: frozenset[str] = frozenset()
) -> list[Line]:
    """Give loads in loops eviction policies.

    A row that several loops read is kept until the last of them. What all programs read is kept
    throughout. Everything else is evicted first, unless a later kernel may find it in the cache.

    Parameters
    ----------
    read_by_all : frozenset of str
        Tensors of which each program reads the same elements.
    loaded_later : frozenset of str
        Tensors that a later kernel loads before the L2 cache has lost them.
    """
    last = {line.loads: place for place, line in enumerate(lines) if line.depth and line.loads}
    found = []
    for place, line in enumerate(lines):
        if line.depth and line.loads:
            again = line.loads in read_by_all or last[line.loads] != place
            if again or line.loads not in loaded_later:
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
