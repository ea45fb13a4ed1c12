"""Lines of a kernel in, the same lines with what the L2 cache should keep of their loads out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .lines import Line


def with_evictions(lines: Sequence[Line], shared: frozenset[str]) -> list[Line]:
    """Say of each load in a loop whether its data is wanted again.

    A row that is walked over several times is kept until the last walk, and so is what all
    programs read; the rest makes room for them.

    Parameters
    ----------
    shared : frozenset of str
        Tensors of which each program reads the same elements.
    """
    last = {line.loads: place for place, line in enumerate(lines) if line.depth and line.loads}
    return [
        _kept(line, line.loads in shared or last[line.loads] != place)
        if line.depth and line.loads
        else line
        for place, line in enumerate(lines)
    ]


def kept_until(lines: Sequence[Line], late: int) -> list[Line]:
    """Say so of the loads of a loop's step: what those behind ``late`` read was read before.

    It stays in the cache until then.
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
