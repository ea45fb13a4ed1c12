"""The ``other`` values of masked loads, and what they make of computed values outside of masks.

A reduction needs its neutral element there. A load can give it by ``other=``, which costs nothing;
a ``tl.where`` after the load takes an instruction for each element.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from ....dtypes import EIGHT_BIT_FLOATS, Category, DataType
from ..lines import Line
from ..names import Beyond, MaskedOut, Name

ZERO = ("0", "0.0", "False")
"""Zero of some dtype, as text: all bits are zero, and any cast keeps it."""

LOWEST = 'float("-inf")'
_INFINITE = (LOWEST, 'float("inf")')

_ZERO_OF_ZEROS = (Beyond.LOADED, Beyond.SCALED, Beyond.ZERO)
_AS_LOADED = (Beyond.LOADED, Beyond.SCALED)

_OF_ZEROS = re.compile(r"\{\w+\}( [*+-] \{\w+\})*")
"""An expression that is zero, and not minus zero, where all its operands are."""

_PRODUCT = re.compile(r"\{\w+\}( \* \{\w+\})*")


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
        """Record the load that was written last; its name, with what it is where the mask is off.

        Parameters
        ----------
        masks : frozenset of str
            The tiles whose masks the load has.
        """
        self._loads[name.text] = _Load(lines, lines[-1], name.dtype)
        return replace(name, outside=MaskedOut(frozenset((name.text,)), masks, Beyond.LOADED))

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
        wanted = _other_for(outside.value, identity)
        if wanted is None or not all(_can_be_other(load, wanted, dtype) for load in loads):
            return False
        if not all(_set_other(load, wanted) for load in loads):
            return False
        for load in loads:
            load.relied_on = True
        return True

    def prefer(self, name: Name, other: str) -> None:
        """Make the loads of a float give a number outside of their masks, where nobody relies on
        another one. Nobody may rely on this one."""
        if name.outside is None or not _is_wide_float(name.dtype):
            return
        for load in (self._loads[load] for load in name.outside.loads):
            if _is_wide_float(load.dtype):
                _set_other(load, other)


def _other_for(value: Beyond, identity: str) -> str | None:
    """What loads have to give for a value to be a neutral element; None where nothing does that."""
    if identity in ZERO:
        if value is Beyond.VANISHING:
            return LOWEST
        return "0" if value in _ZERO_OF_ZEROS else None
    kept = _AS_LOADED if identity in _INFINITE else (Beyond.LOADED,)
    return identity if value in kept else None


def _can_be_other(load: _Load, other: str, dtype: DataType) -> bool:
    """Whether a number of ``dtype`` can be loaded, and cast to it as it is."""
    if other in ZERO:
        return True
    return load.dtype is dtype or (_is_wide_float(load.dtype) and _is_wide_float(dtype))


def _is_wide_float(dtype: DataType) -> bool:
    return dtype.info.category is Category.FLOAT and dtype not in EIGHT_BIT_FLOATS


def _set_other(load: _Load, other: str) -> bool:
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


def after_cast(name: Name, dtype: DataType) -> MaskedOut | None:
    """What a cast value is where masks are off: unchanged for wide floats, else zero of zero."""
    outside = name.outside
    if outside is None or name.dtype is dtype:
        return outside
    if _is_wide_float(name.dtype) and _is_wide_float(dtype):
        return outside
    return replace(outside, value=Beyond.ZERO) if outside.value in _ZERO_OF_ZEROS else None


def after_op(template: str, names: dict[str, Name]) -> MaskedOut | None:
    """What an expression is outside of the masks of all its operands, as far as that is known."""
    if template == "exp_nonpositive({x})":
        outside = names["x"].outside
        is_difference = outside is not None and outside.value is Beyond.DIFFERENCE
        return replace(outside, value=Beyond.VANISHING) if outside and is_difference else None
    if template == "{lhs} - {rhs}" and names["rhs"].outside is None:
        return _after_shift(names["lhs"], names["rhs"])
    return _after_sum_or_product(template, names)


def _after_shift(value: Name, by: Name) -> MaskedOut | None:
    """What a value less a number of its row is: below the largest of the row it is -inf.

    So it is where a load gives -inf, and all of a row is NaN where its largest is -inf or NaN. Of a
    mask that the number depends on nothing is known: behind the last row it may be anything.
    """
    outside = value.outside
    if outside is None or outside.value not in _AS_LOADED or not _is_wide_float(value.dtype):
        return None
    masks = outside.masks - by.dims
    return MaskedOut(outside.loads, masks, Beyond.DIFFERENCE) if masks else None


def _after_sum_or_product(template: str, names: dict[str, Name]) -> MaskedOut | None:
    """Zero of zeros; of a number times a positive one an infinity of an infinity too."""
    if not _OF_ZEROS.fullmatch(template):
        return None
    used = [names[key] for key in dict.fromkeys(re.findall(r"\{(\w+)\}", template))]
    factors = [n for n in used if n.literal]
    found = [n.outside for n in used if not n.literal and n.outside is not None]
    if len(found) + len(factors) != len(used) or not found:
        return None
    if factors and not (
        _PRODUCT.fullmatch(template) and all(_is_positive(n.text) for n in factors)
    ):
        return None
    if any(outside.value not in _ZERO_OF_ZEROS for outside in found):
        return None
    if factors and len(found) == 1 and found[0].value in _AS_LOADED:
        return replace(found[0], value=Beyond.SCALED)
    return _zero_of_all(found)


def _is_positive(text: str) -> bool:
    """Whether a number as text makes zero of zero, and an infinity of an infinity."""
    try:
        number = float(text)
    except ValueError:
        return False
    return torch.finfo(torch.float32).tiny <= number < math.inf


def _zero_of_all(found: Sequence[MaskedOut]) -> MaskedOut:
    loads = frozenset[str]().union(*(outside.loads for outside in found))
    masks = frozenset.intersection(*(outside.masks for outside in found))
    return MaskedOut(loads, masks, Beyond.ZERO)
