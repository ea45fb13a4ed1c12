"""Sizes that vary: what is decided at some must hold at all others that pass the guards."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from tritonfuser.symbolic.polynomials import (
    added,
    common_part,
    divided,
    least,
    multiplied,
    never_zero,
)
from tritonfuser.symbolic.shape_env import Ledger
from tritonfuser.symbolic.size_text import atoms_in, computed, guard_text, size_text
from tritonfuser.symbolic.sizes import (
    common_factor,
    hint,
    integer,
    is_size,
    known_divisor,
    lesser,
    number,
    same,
    surely_below,
    surely_multiple,
    symbol,
)
from tritonfuser.symbolic.sizes import divided as divided_sizes


def guards(ledger: Ledger) -> list[str]:
    return [guard_text(ledger, guard) for guard in ledger.guards]


def two(first: int = 4096, second: int = 8, multiple: int = 16) -> tuple[Ledger, int, int]:
    ledger = Ledger()
    return ledger, symbol(ledger, first, multiple), symbol(ledger, second)


# --- arithmetic and text -------------------------------------------------------------------------


def test_text() -> None:
    _, t, b = two()
    assert (repr(t), f"{t}", str(t)) == ("size0", "size0", "size0")
    assert repr(t * b * 1024) == "size0 * size1 * 1024"
    assert f"{t * 4 - 1}" == "(size0 * 4 - 1)"
    assert repr(-b + 3) == "-size1 + 3"
    assert repr(t // 2) == "(size0 // 16) * 8"
    assert repr((t * b * 64, t, 1)) == "(size0 * size1 * 64, size0, 1)"


def test_what_cancels_is_a_number() -> None:
    ledger, t, b = two()
    assert type(t - t) is int and t - t == 0
    assert type(t * b // t // b) is int
    assert t % 16 == 0 and (t * 3 + 5) % 8 == 5
    assert (t * b * 1024) // (b * 1024) is not None and same((t * b * 1024) // (b * 1024), t)
    assert (t * 1024 - 1) // t == 1023
    assert 1 // t == 0 and 1 % t == 1
    assert not ledger.guards


def test_quotients_have_names() -> None:
    ledger, _, b = two()
    assert repr(-(-b // 512)) == "size2"
    symbols, lines = computed(ledger, ["size2"])
    assert symbols == ["size1"]
    assert lines == ["size2 = (size1 + 511) // (512)"]
    assert [atom.name for atom in atoms_in(ledger, "x < size2 * size10")] == ["size2"]


def test_it_is_taken_for_an_int() -> None:
    _, t, _ = two()
    assert isinstance(t, int) and is_size(t)
    assert not is_size(7) and not is_size(True)
    assert math.prod([2, t]) == sum([t, t])
    assert integer(t) is t and integer(2.0) == 2


def test_division_by_zero() -> None:
    _, t, _ = two()
    for divide in (lambda: t // 0, lambda: t % 0):
        with pytest.raises(ZeroDivisionError):
            divide()


# --- guards --------------------------------------------------------------------------------------


def test_what_is_sure_takes_no_guard() -> None:
    ledger, t, b = two()
    assert t > 1 and t >= 2 and t != 0 and t != 1 and bool(t)
    assert t * b > b and t * b - b > 0 and t - 1 < t and not t * 1024 < t
    assert t != 24, "24 is no multiple of 16"
    assert max(t, 1) is t
    assert not ledger.guards


def test_what_is_not_sure_takes_one() -> None:
    ledger, t, b = two()
    assert t <= 4096 and not t < 4096 and b < 512 and t != 128
    assert guards(ledger) == ["size0 <= 4096", "size0 >= 4096", "size1 <= 511"]
    assert t * b < 2**31
    assert len(ledger.guards) == 3, "bounded factors bound the product"


def test_a_guard_is_taken_once() -> None:
    ledger, t, b = two()
    for _ in range(2):
        assert t > b and not t <= b
    assert guards(ledger) == ["size0 - size1 >= 1"]


@pytest.mark.parametrize("leak", [int, float, range, "{:>4}".format, lambda n: [0] * n])
def test_a_number_that_leaks_is_pinned(leak: Any) -> None:
    ledger, _, b = two()
    leak(b)
    assert guards(ledger) == ["size1 == 8"]


def test_other_numbers() -> None:
    ledger, t, _ = two()
    assert t != 0.5 and not ledger.guards
    assert t == 4096.0
    assert guards(ledger) == ["size0 == 4096"]
    assert t * 0.5 == 2048.0 and t / 2 == 2048.0 and 2 / t == 2 / 4096
    assert t != "size0" and t is not None
    with pytest.raises(TypeError):
        assert t < "size0"


def test_sizes_of_two_ledgers_are_two_numbers() -> None:
    ledger, t, _ = two()
    other, u, _ = two()
    assert hash(t) != hash(u)
    assert t == u  # of this run, and then always
    assert guards(ledger) == guards(other) == ["size0 == 4096"]


def test_closing_drops_what_others_say() -> None:
    ledger, t, b = two()
    assert t <= 10000 and b != 9 and t <= 5000 and b <= 100
    ledger.close()
    assert guards(ledger) == ["size1 != 9", "size0 <= 4992", "size1 <= 100"]
    assert t <= 4992 and b < 101
    with pytest.raises(AssertionError, match="too late"):
        assert b > 5


# --- asking without deciding ---------------------------------------------------------------------


def test_asking() -> None:
    ledger, t, b = two()
    assert hint(t * b + 1) == 32769 and hint(5) == 5
    assert surely_below(b, b * t) and not surely_below(t, b) and not surely_below(b, t)
    assert surely_multiple(t * b, 16) and surely_multiple(t * b, b)
    assert not surely_multiple(b, 8) and surely_multiple(24, 8)
    assert known_divisor(t * 3 + 8) == 8 and known_divisor(12) == 12
    assert same(t + b - b, t) and not same(t, 4096) and same(3, 3)
    assert lesser(t, t + 1) is t and lesser(7, 5) == 5 and hint(lesser(t, b)) == 8
    assert repr(common_factor(t * b * 6, b * 36)) == "size1 * 12" and common_factor(6, 4) == 2
    assert [repr(n) for n in divided_sizes(t * b + 5, b)] == ["size0", "5"]
    assert divided_sizes(1024, t) == (0, 1024), "it may be less or more"
    assert divided_sizes(-1, t)[0] == -1
    assert not ledger.guards and len(ledger.atoms) == 2


# --- polynomials ---------------------------------------------------------------------------------


def test_polynomials() -> None:
    p = {(0, 1): 4, (0,): 2, (): -6}
    assert added(p, {(0,): 1, (): 3}, 2) == {(0, 1): 4, (0,): 4}
    assert multiplied({(0,): 1, (): 1}, {(0,): 1, (): -1}) == {(0, 0): 1, (): -1}
    assert divided({(0, 1): 5, (): 7}, {(0,): 2}) == ({(1,): 2}, {(0, 1): 1, (): 7})
    assert common_part([(0, 0, 1), (0, 1, 1)]) == (0, 1) and common_part([]) == ()
    assert never_zero({(0,): 4, (): 2}) and not never_zero({(0,): 4, (): 8})
    # a*b - a with both from 2 to 9
    assert least({(0, 1): 1, (0,): -1}, lambda v: (2, 9)) == 2
    assert least({(0,): -3, (): 1}, lambda v: (2, 9)) == -26


# --- soundness -----------------------------------------------------------------------------------


class Trial:
    """One random computation on sizes; the same again on plain numbers must decide the same."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def run(self, symbols: list[int]) -> tuple[list[int], list[bool]]:
        """All that is computed from two sizes, and all that is decided on the way."""
        rng = random.Random(self.seed)
        pool: list[Any] = [*symbols, 1, 2, 3, 8, 512]
        answers: list[bool] = []
        for _ in range(10):
            a, b = rng.choice(pool), rng.choice(pool)
            kind = rng.choice(("+", "-", "*", "//", "%", "<", "==", "?", ">="))
            if kind in ("//", "%"):
                answers.append(b != 0)
                if not answers[-1]:
                    continue
                made = a // b if kind == "//" else a % b
            elif kind in ("+", "-", "*"):
                made = {"+": a + b, "-": a - b, "*": a * b}[kind]
            else:
                answers.append(
                    bool({"<": a < b, "==": a == b, ">=": a >= b}[kind]) if kind != "?" else bool(a)
                )
                continue
            pool.append(made)
        return pool[2:], answers


@pytest.mark.parametrize("start", range(0, 1500, 300))
def test_decisions_hold_wherever_the_guards_do(start: int) -> None:
    """And the texts, evaluated, are the numbers."""
    held = 0
    for seed in range(start, start + 300):
        rng = random.Random(-seed)
        multiple = rng.choice((1, 1, 4, 16))
        ledger = Ledger()
        hints = [multiple * rng.randint(2, 12), rng.randint(2, 40)]
        sizes = [symbol(ledger, hints[0], multiple), symbol(ledger, hints[1])]
        found, decided = Trial(seed).run(sizes)
        assert [hint(n) for n in found] == Trial(seed).run(hints)[0]
        ledger.close()
        for _ in range(12):
            others = [multiple * rng.randint(2, 30), rng.randint(2, 60)]
            try:
                atoms = ledger.values(others)
            except ZeroDivisionError:
                continue
            names = {a.name: n * a.multiple for a, n in zip(ledger.atoms, atoms, strict=True)}
            if not all(eval(text, dict(names)) for text in guards(ledger)):
                continue
            held += 1
            wanted, answers = Trial(seed).run(others)
            assert answers == decided, seed
            assert [number(n, atoms) for n in found] == wanted, seed
            texts = [eval(repr(n), dict(names)) for n in found]
            assert texts == wanted, seed
            for line in computed(ledger, names)[1]:
                exec(line, scope := dict(names))
                assert scope[line.partition(" ")[0]] == names[line.partition(" ")[0]], seed
    assert held > 300


def test_text_of_no_terms() -> None:
    ledger, _, _ = two()
    assert size_text(ledger, {}) == "0"
