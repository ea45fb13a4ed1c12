"""Fusion in, the same Fusion with random words compared in place of random numbers.

A dropout only compares a uniform number with a probability. Comparing the 32-bit Philox word that
the number is converted from with an integer gives the same mask without the conversion. Numbers of
16 bits grow with their words too: they are rounded, and widened again to be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import torch

from ....dtypes import DataType
from ....ir import Const, Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.creation import philox
from ....ops.forms import Pointwise
from ....ops.table import Library
from ....ops.typing_rules import operand_types
from ..rewriting import SWAPPED_COMPARISONS, is_copy, rewritten, with_number

_WORDS = 1 << 32
_DRAWN = (DataType.Float, DataType.Half, DataType.BFloat16)
"""The dtypes of numbers that are converted from one word each."""


def compare_random_words(fusion: Fusion) -> Fusion:
    """``lt(uniform(0, 1, ...), p)`` -> ``lt(add(random_word(...), a), b)``, to the bit."""
    if any(isinstance(f := as_call(n).op.form, Library) and f.product for n in fusion.nodes):
        return fusion  # the epilogue of a product has few registers: words made one kernel spill
    drawn: dict[Value, Node] = {}
    for node in fusion.nodes:
        drawn.update(dict.fromkeys(_only_compared(fusion, node), node))

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = _comparison(node, drawn)
        if found is None:
            return None
        op, unit, number = found
        call = as_call(drawn[unit])
        seeds = (call.operand("rng_seed"), call.operand("rng_offset"))
        word = builder.call(
            "random_word", call.arg("shape"), rng_seed=seeds[0], rng_offset=seeds[1]
        )
        rotated = builder.call(
            "add", word, Const(_signed(-first_word_of_one() - (1 << 31)), DataType.Int32)
        )
        kind = drawn[unit].out.dtype
        limit = words_below(number, or_equal=op in ("le", "gt"), dtype=kind) - (1 << 31)
        made: Value = builder.call(
            "lt" if op in ("lt", "le") else "ge", rotated, Const(limit, DataType.Int32)
        )
        return made

    return rewritten(fusion, rewrite) if drawn else fusion


def _only_compared(fusion: Fusion, node: Node) -> tuple[Value, ...]:
    """Numbers from [0, 1) that are only compared with numbers in there: as drawn, and widened.

    Empty where there are other uses.
    """
    if node.op != "uniform" or node.out.dtype not in _DRAWN or node.out in fusion.returned:
        return ()
    low, high = node.args[:2]
    if not isinstance(low, Const) or not isinstance(high, Const):
        return ()
    if (low.value, high.value) != (0, 1) or as_call(node).arg("rng_seed") is None:
        return ()
    users = fusion.consumers.get(node.out, ())
    casts = tuple(n.out for n in users if is_copy(n) and n.out.dtype is DataType.Float)
    users = tuple(n for n in users if n.out not in casts)
    users += tuple(user for value in casts for user in fusion.consumers.get(value, ()))
    drawn = dict.fromkeys((node.out, *casts), node)
    compared = all(_comparison(user, drawn) for user in users)
    return tuple(drawn) if compared and fusion.returned.isdisjoint(drawn) else ()


def _comparison(node: Node, drawn: Mapping[Value, Node]) -> tuple[str, Value, float] | None:
    """``value op number`` of a value that was drawn, with a number between 0 and the largest."""
    found = with_number(node, tuple(SWAPPED_COMPARISONS))
    if found is None or found[0] not in drawn:
        return None
    value, number, first = found
    call = as_call(node)
    assert isinstance(call.op.form, Pointwise)
    given = [arg for arg in node.args if isinstance(arg, Value | Const)]
    if set(call.op.form.typing(operand_types(given)).operands) != {DataType.Float}:
        return None
    number = float(np.float32(number))
    if not 0 < number < largest(drawn[value].out.dtype):
        return None
    return SWAPPED_COMPARISONS[node.op] if first else node.op, value, number


def largest(dtype: DataType) -> float:
    """The largest number that ``uniform(0, 1)`` draws in a dtype."""
    kind = dtype.info.torch
    assert kind is not None
    return philox.next_below(1.0, kind)


def unit_float(word: int) -> float:
    """The number in (0, 1] that a word is converted to, as the device library's function."""
    return float(np.float32(word) + np.float32(0.5)) * 2.0**-32


def rounded(unit: float, dtype: DataType) -> float:
    """A number of (0, 1] in a dtype; what rounds to 1 becomes the largest number below."""
    if dtype is DataType.Float:
        return unit
    limited = torch.tensor(min(unit, largest(dtype)), dtype=torch.float32, device="cpu")
    return float(limited.to(dtype.info.torch))


def first_word_of_one() -> int:
    """The least word whose number rounds to 1, which ``uniform(0, 1)`` replaces by 0."""
    return _least_word(lambda word: unit_float(word) >= 1)


@cache
def words_below(number: float, or_equal: bool, dtype: DataType = DataType.Float) -> int:
    """How many words give a number below ``number``, or equal to it if ``or_equal``.

    They are those from ``first_word_of_one()`` on, modulo 2 ** 32: words that give 1 count as 0.
    Adding a constant turns them into the smallest integers.
    """

    def is_above(word: int) -> bool:
        found = rounded(unit_float(word), dtype)
        return found > number if or_equal else found >= number

    return _WORDS - first_word_of_one() + _least_word(is_above)


def _least_word(holds: Callable[[int], bool]) -> int:
    """The least word for which a monotonic condition holds, by bisection."""
    low, high = 0, _WORDS - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _signed(number: int) -> int:
    """The int32 with the bits of a number modulo 2 ** 32."""
    return (number + (1 << 31)) % _WORDS - (1 << 31)
