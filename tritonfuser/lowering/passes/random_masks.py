"""Fusion in, the same Fusion with random words compared in place of random numbers.

A dropout only compares a uniform number with a probability. Comparing the 32-bit Philox word that
the number is converted from with an integer gives the same mask without the conversion.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...dtypes import DataType
from ...ir import Const, Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.table import Library
from .rewriting import rewritten, with_number

_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
"""The comparison that holds for swapped operands."""

_WORDS = 1 << 32
_LARGEST = 1 - 2.0**-24
"""The largest number that ``uniform(0, 1)`` draws."""


def compare_random_words(fusion: Fusion) -> Fusion:
    """``lt(uniform(0, 1, ...), p)`` -> ``lt(add(random_word(...), a), b)``, to the bit."""
    if any(isinstance(f := as_call(n).op.form, Library) and f.product for n in fusion.nodes):
        return fusion  # the epilogue of a product has few registers: words made one kernel spill
    drawn = {v: node for v, node in fusion.producers.items() if _only_compared(fusion, node)}

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        found = _comparison(node)
        if found is None or found[1] not in drawn:
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
        limit = words_below(number, or_equal=op in ("le", "gt")) - (1 << 31)
        made: Value = builder.call(
            "lt" if op in ("lt", "le") else "ge", rotated, Const(limit, DataType.Int32)
        )
        return made

    return rewritten(fusion, rewrite) if drawn else fusion


def _only_compared(fusion: Fusion, node: Node) -> bool:
    """Whether this draws Floats from [0, 1) that are only compared with numbers in there."""
    if node.op != "uniform" or node.out.dtype is not DataType.Float:
        return False
    low, high = node.args[:2]
    if not isinstance(low, Const) or not isinstance(high, Const):
        return False
    users = fusion.consumers.get(node.out, ())
    plain = (low.value, high.value) == (0, 1) and as_call(node).arg("rng_seed") is not None
    return plain and node.out not in fusion.returned and all(map(_comparison, users))


def _comparison(node: Node) -> tuple[str, Value, float] | None:
    """``value op number`` with a number between 0 and 1."""
    found = with_number(node, tuple(_SWAPPED))
    if found is None:
        return None
    value, number, first = found
    number = float(np.float32(number))
    return (
        (_SWAPPED[node.op] if first else node.op, value, number) if 0 < number < _LARGEST else None
    )


def unit_float(word: int) -> float:
    """The number in (0, 1] that a word is converted to, as the device library's function."""
    return float(np.float32(word) + np.float32(0.5)) * 2.0**-32


def first_word_of_one() -> int:
    """The least word whose number rounds to 1, which ``uniform(0, 1)`` replaces by 0."""
    return _least_word(lambda word: unit_float(word) >= 1)


def words_below(number: float, or_equal: bool) -> int:
    """How many words give a number below ``number``, or equal to it if ``or_equal``.

    They are those from ``first_word_of_one()`` on, modulo 2 ** 32: words that give 1 count as 0.
    Adding a constant turns them into the smallest integers.
    """
    above = _least_word(
        lambda word: unit_float(word) > number if or_equal else unit_float(word) >= number
    )
    return _WORDS - first_word_of_one() + above


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
