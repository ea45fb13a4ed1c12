"""Fusion in, the same Fusion with masks drawn from random words instead of random numbers.

A dropout compares a number with a probability and has no other use for it; the word that the
number is made of tells as much by one comparison of integers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...dtypes import DataType
from ...ir import Const, Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.table import Library
from .rewriting import rewritten, with_number

_TURNED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_WORDS = 1 << 32
_LAST = 1 - 2.0**-24
"""The greatest number that is drawn."""


def masks_of_words(fusion: Fusion) -> Fusion:
    """``lt(uniform(0, 1, ...), p)`` -> ``lt(add(random_word(...), a), b)``, to the bit."""
    if any(isinstance(f := as_call(n).op.form, Library) and f.product for n in fusion.nodes):
        return fusion  # behind a product registers are full, and words made one such kernel spill
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
        turned = builder.call(
            "add", word, Const(_signed(-first_of_one() - (1 << 31)), DataType.Int32)
        )
        limit = words_below(number, or_equal=op in ("le", "gt")) - (1 << 31)
        made: Value = builder.call(
            "lt" if op in ("lt", "le") else "ge", turned, Const(limit, DataType.Int32)
        )
        return made

    return rewritten(fusion, rewrite) if drawn else fusion


def _only_compared(fusion: Fusion, node: Node) -> bool:
    """Whether this draws Floats from [0, 1) that are compared with numbers between, no more."""
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
    found = with_number(node, tuple(_TURNED))
    if found is None:
        return None
    value, number, first = found
    number = float(np.float32(number))
    return (_TURNED[node.op] if first else node.op, value, number) if 0 < number < _LAST else None


def unit_of(word: int) -> float:
    """The number that a word stands for, 1 not yet made 0: as ``unit_float`` has it."""
    return float(np.float32(word) + np.float32(0.5)) * 2.0**-32


def first_of_one() -> int:
    """The least word whose number rounds to 1, which a half-open range gives as 0."""
    return _first(lambda word: unit_of(word) >= 1)


def words_below(number: float, or_equal: bool) -> int:
    """How many words stand for less than ``number``, or for as much.

    They are those from ``first_of_one()`` on, round past the last word, so that adding a constant
    makes of them the least integers.
    """
    above = _first(lambda word: unit_of(word) > number if or_equal else unit_of(word) >= number)
    return _WORDS - first_of_one() + above


def _first(holds: Callable[[int], bool]) -> int:
    """The least word for which a condition holds that holds for the last one and never ends."""
    low, high = 0, _WORDS - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _signed(number: int) -> int:
    """A number as the int32 of the same bits."""
    return (number + (1 << 31)) % _WORDS - (1 << 31)
