"""Extents that a definition does not know."""

from __future__ import annotations

import math
import pickle

import pytest

from tritonfuser.symbolic.extents import SymbolicExtent, quotient, symbol

A, B, C = symbol("i0"), symbol("i1"), symbol("c4")


@pytest.mark.parametrize(
    ("extent", "text"),
    [
        (A, "i0"),
        (A + 0, "i0"),
        (A + A, "2*i0"),
        (3 + A, "i0 + 3"),
        (A - 3, "i0 - 3"),
        (3 - A, "3 - i0"),
        (B * A, "i0*i1"),
        (A * A * 2 - B, "2*i0**2 - i1"),
        ((A + 1) * (A - 1), "i0**2 - 1"),
        (sum([A, B, A], start=0), "2*i0 + i1"),
        (math.prod([A, 2, B]), "2*i0*i1"),
        (A * 4 // 2, "2*i0"),
        ((A * 4 + 2) // 2, "2*i0 + 1"),
        (A // 2, "(i0)//2"),
        ((A + 15) // 16 * 16, "16*(i0 + 15)//16"),
        (quotient(A * B * 6, B * 2), "3*i0"),
        (quotient(A * B, C), "(i0*i1)//(c4)"),
        (quotient(12, A), "(12)//(i0)"),
    ],
)
def test_an_extent_prints_as_an_expression(extent, text):
    assert str(extent) == repr(extent) == text


def test_what_is_a_number_is_an_int():
    for number, value in ((A - A, 0), (A * 0, 0), (A + 1 - A, 1), (quotient(A * 6, A * 2), 3)):
        assert type(number) is int
        assert number == value


def test_equal_where_they_are_the_same_polynomial():
    assert A + B == B + A and hash(A + B) == hash(B + A)
    assert (A + B) * (A - B) == A * A - B * B
    assert quotient(A, B) == quotient(A, B) != quotient(B, A)
    assert A != B and A != 1 and A + 1 != A
    assert isinstance(A, SymbolicExtent)
    assert pickle.loads(pickle.dumps(A + B * 2)) == A + B * 2


def test_arithmetic_agrees_with_numbers():
    """Each expression at numbers is what Python gives."""

    def at(extent, i0, i1):
        if isinstance(extent, int):
            return extent
        scope = {A.expression: i0, B.expression: i1}
        return int(extent.expression.subs(scope))

    for i0, i1 in ((0, 3), (5, 1), (7, 11)):
        assert at((A + 2 * B - 3) * (B + 1), i0, i1) == (i0 + 2 * i1 - 3) * (i1 + 1)
        assert at(quotient((A * 6 + 4) * 3, 2), i0, i1) == (i0 * 6 + 4) * 3 // 2
