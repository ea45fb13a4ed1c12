"""What masked loads give where their masks do not hold, and what is computed of that.

A reduction needs its neutral element there. A load can give it by ``other=``, which costs nothing,
where a ``tl.where`` behind it takes an instruction for each element.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dtypes import EIGHT_BIT_FLOATS, Category, DataType
from .lines import Line, Name, Outside

ZERO = ("0", "0.0", "False")
"""Zero of some dtype, as text: all bits are zero, and any cast keeps it."""

_OF_ZEROS = re.compile(r"\{\w+\}( [*+-] \{\w+\})*")
"""An expression that is zero, and not minus zero, where all its operands are."""


@dataclass
class _Load:
    """A load that is written, and may still give something else where its mask does not hold."""

    lines: list[Line]
    line: Line
    dtype: DataType
    other: str = "0"
    relied_on: bool = False


class MaskedLoads:
    """The masked loads of a kernel, by the names of the variables."""

    def __init__(self) -> None:
        self._loads: dict[str, _Load] = {}

    def add(self, name: Name, lines: list[Line], masks: frozenset[str]) -> Name:
        """The name of a load that was written last, with what it is outside of masks.

        Parameters
        ----------
        masks : frozenset of str
            The tiles whose masks the load has.
        """
        self._loads[name.text] = _Load(lines, lines[-1], name.dtype)
        return replace(name, outside=Outside(frozenset((name.text,)), masks, loaded=True))

    def gives(self, name: Name, tile: str, identity: str, dtype: DataType) -> bool:
        """Whether a value is ``identity`` outside of a tile's mask; loads are made to give it.

        Parameters
        ----------
        dtype : DataType
            What ``identity`` is written in.
        """
        outside = name.outside
        if outside is None or tile not in outside.masks:
            return False
        loads = [self._loads[load] for load in outside.loads]
        if identity not in ZERO and not (outside.loaded and _holds(loads[0].dtype, dtype)):
            return False
        wanted = "0" if identity in ZERO else identity
        if not all(_give(load, wanted) for load in loads):
            return False
        for load in loads:
            load.relied_on = True
        return True


def _holds(loaded: DataType, dtype: DataType) -> bool:
    """Whether a neutral element of ``dtype`` can be loaded, and cast to it as it is."""
    wide = (_is_float(t) and t not in EIGHT_BIT_FLOATS for t in (loaded, dtype))
    return loaded is dtype or all(wide)


def _is_float(dtype: DataType) -> bool:
    return dtype.info.category is Category.FLOAT


def _give(load: _Load, other: str) -> bool:
    """Make a load give a number outside of its mask, where nobody relies on another."""
    if load.other == other:
        return True
    place = next((n for n, line in enumerate(load.lines) if line is load.line), None)
    if load.relied_on or place is None:  # a loop that is closed has the line elsewhere
        return False
    text = load.line.text.replace(f"other={load.other}", f"other={other}")
    load.line = load.lines[place] = replace(load.line, text=text)
    load.other = other
    return True


def after_cast(name: Name, dtype: DataType) -> Outside | None:
    """What a value is outside of masks when it is cast: zero, or of floats what was loaded."""
    outside = name.outside
    if outside is None or name.dtype is dtype:
        return outside
    floats = all(_is_float(t) and t not in EIGHT_BIT_FLOATS for t in (name.dtype, dtype))
    return replace(outside, loaded=outside.loaded and floats)


def after_op(template: str, names: dict[str, Name]) -> Outside | None:
    """What an expression is outside of the masks of all its operands: zero of zeros, or unknown."""
    if not _OF_ZEROS.fullmatch(template):
        return None
    used = [names[key] for key in dict.fromkeys(re.findall(r"\{(\w+)\}", template))]
    factors = [n for n in used if n.literal]
    found = [n.outside for n in used if not n.literal and n.outside is not None]
    if len(found) + len(factors) != len(used) or not found:
        return None
    if factors and not (" * " in template and all(_is_positive(n.text) for n in factors)):
        return None
    return _joined(found)


def _is_positive(text: str) -> bool:
    """Whether a number as text makes zero of zero."""
    try:
        number = float(text)
    except ValueError:
        return False
    return 0 < number < math.inf


def _joined(found: Sequence[Outside]) -> Outside:
    loads = frozenset[str]().union(*(outside.loads for outside in found))
    masks = frozenset.intersection(*(outside.masks for outside in found))
    return Outside(loads, masks, loaded=False)
