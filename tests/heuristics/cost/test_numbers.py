"""Arithmetic over arrays: a function of floats is asked once for equal numbers."""

from __future__ import annotations

import numpy as np

from tritonfuser.heuristics.cost.numbers import ARRAYS


def test_a_function_is_asked_once_for_kernels_with_equal_numbers() -> None:
    asked = []

    def of(block: float, lanes: float) -> float:
        asked.append((block, lanes))
        return block / lanes

    blocks = np.array([64.0, 16.0, 64.0, 64.0])
    assert ARRAYS.each(of, blocks, 32).tolist() == [2.0, 0.5, 2.0, 2.0]
    assert asked == [(64.0, 32), (16.0, 32)]
    assert ARRAYS.each(of, 64.0, 32) == of(64.0, 32) == 2.0


def test_each_entry_has_its_own_pair() -> None:
    found = ARRAYS.each(divmod_sum, np.array([7.0, 7.0, 9.0]), np.array([2.0, 4.0, 2.0]))
    assert found.tolist() == [divmod_sum(7, 2), divmod_sum(7, 4), divmod_sum(9, 2)]


def divmod_sum(a: float, b: float) -> float:
    return sum(divmod(a, b))
