"""A position that is zero, taken out of the sums that lines compute with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..line_passes import WORD, assigned_names
from ..lines import Line

_FACTOR = r"(?: \* (?:\w+|\([^()]*\)))?(?! [*/%])"
"""What a position is multiplied by, if nothing else is done with the product."""


def without_zero(lines: Sequence[Line]) -> list[Line]:
    """The lines behind ``m_start_first = 0`` without this term of their sums.

    ``m_start_first = 0; m_first = m_start_first + m_base; a = tl.load(p + m_first * 8 + r)``
    becomes ``a = tl.load(p + m_base * 8 + r)``. All lines stay where the number is needed.
    """
    (zero,) = assigned_names(lines[0])
    found: list[Line] = []
    same: dict[str, str] = {}
    for line in lines[1:]:
        text = WORD.sub(lambda word: same.get(word[0], word[0]), _without_term(line.text, zero))
        name, _, given = text.partition(" = ")
        if given.isidentifier() and not line.loads:
            same[name] = given
        else:
            found.append(replace(line, text=text))
    is_needed = any(zero in WORD.findall(line.code) for line in found)
    return list(lines) if is_needed else found


def _without_term(text: str, name: str) -> str:
    """A text whose sums do not have the product of a variable and a factor."""
    text = re.sub(rf" [+-] {name}\b{_FACTOR}", "", text)
    first = rf"{name}\b{_FACTOR} \+ (?=[A-Za-z_(])"  # a number alone is no block
    return re.sub(rf"(?<=[=,] ){first}|(?<=[(\[]){first}", "", text)
