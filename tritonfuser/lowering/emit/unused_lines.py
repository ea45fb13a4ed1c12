"""The lines of a kernel without names that nobody reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from .lines import Line

_WORD = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*) = (.*)", re.DOTALL)


def without_unused(lines: Sequence[Line]) -> list[Line]:
    """Leave out what is computed for nothing, and then what that alone has read.

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
