"""Sizes that vary: what is decided at some must hold at all others that pass the guards."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from tritonfuser.symbolic.polynomials import (
    added,
    common_part,
    divided,
    lower_bound,
    multiplied,
    never_zero,
)
from tritonfuser.symbolic.queries import (
    assume_abs,
    assume_at_most,
    assume_constant,
    assume_empty,
    assume_equal,
    assume_less,
    assume_max,
    assume_min,
    assume_multiple,
    assume_same_shape,
    assume_sorted,
    common_factor,
    is_known_equal,
    is_known_less,
    is_known_multiple,
    known_divisor,
    known_divmod,
    min_by_hint,
    require_at_most,
)
from tritonfuser.symbolic.shape_env import ShapeEnv
from tritonfuser.symbolic.size_text import atoms_in, computed, guard_text, size_text
from tritonfuser.symbolic.sizes import (
    UndecidedSizeError,
    evaluate_size,
    hint,
    integer,
    is_integer,
    is_size,
    symbol,
)


def guards(env: ShapeEnv) -> list[str]:
    return [guard_text(env, guard) for guard in env.guards]


def two(first: int = 4096, second: int = 8, multiple: int = 16) -> tuple[ShapeEnv, int, int]:
    env = ShapeEnv()
    return env, symbol(env, first, multiple), symbol(env, second)


# --- arithmetic and text -------------------------------------------------------------------------


def test_a_size_prints_as_an_expression() -> None:
    _, t, b = two()
    assert (repr(t), f"{t}", str(t)) == ("size0", "size0", "size0")
    assert repr(t * b * 1024) == "size0 * size1 * 1024"
    assert f"{t * 4 - 1}" == "(size0 * 4 - 1)"
    assert repr(-b + 3) == "-size1 + 3"
    assert repr(t // 2) == "(size0 // 16) * 8"
    assert repr((t * b * 64, t, 1)) == "(size0 * size1 * 64, size0, 1)"


def test_what_cancels_is_a_number() -> None:
    env, t, b = two()
    assert type(t - t) is int and t - t == 0
    assert type(t * b // t // b) is int
    assert t % 16 == 0 and (t * 3 + 5) % 8 == 5
    assert is_known_equal((t * b * 1024) // (b * 1024), t)
    assert (t * 1024 - 1) // t == 1023
    assert 1 // t == 0 and 1 % t == 1
    assert not env.guards


def test_quotients_have_names() -> None:
    env, _, b = two()
    assert repr(-(-b // 512)) == "size2"
    symbols, lines = computed(env, ["size2"])
    assert symbols == ["size1"]
    assert lines == ["size2 = (size1 + 511) // (512)"]
    assert [atom.name for atom in atoms_in(env, "x < size2 * size10")] == ["size2"]


def test_it_is_an_integer_and_no_int() -> None:
    _, t, _ = two()
    assert is_size(t) and is_integer(t) and not isinstance(t, int)
    assert is_integer(7) and not is_size(7) and not is_integer(2.0)
    assert is_known_equal(math.prod([2, t]), sum([t, t]))
    assert integer(t) is t and integer(2.0) == 2


def test_division_by_zero() -> None:
    _, t, _ = two()
    for divide in (lambda: t // 0, lambda: t % 0):
        with pytest.raises(ZeroDivisionError):
            divide()


# --- operators: they answer what is proved, and record nothing ------------------------------------


def test_what_is_proved_is_answered() -> None:
    env, t, b = two()
    assert t > 1 and t >= 2 and t != 0 and t != 1 and bool(t)
    assert t * b > b and t * b - b > 0 and t - 1 < t and not t * 1024 < t
    assert t != 24, "24 is no multiple of 16"
    assert t == t * b // b and t in [1, t] and max(t, 1) is t
    assert t != 0.5 and t != "size0" and t is not None
    assert not env.guards
    with pytest.raises(TypeError):
        assert t < "size0"


UNDECIDED: dict[str, Callable[[Any, Any], object]] = {
    "==": lambda t, b: t == 4096,
    "== of sizes": lambda t, b: t == b,
    "== of floats": lambda t, b: t == 4096.0,
    "!=": lambda t, b: t != 128,
    "in": lambda t, b: 4096 in (b, t),
    "==, of tuples": lambda t, b: (1, t) == (1, b),
    "<": lambda t, b: t < 4097,
    "<=": lambda t, b: t >= 4096,
    ">": lambda t, b: t > b,
    ">=": lambda t, b: t >= 4096,
    "bool": lambda t, b: bool(b - 8),
    "abs": lambda t, b: abs(t - b),
    "max": lambda t, b: max(t, b),
    "sorted": lambda t, b: sorted([t, b]),
    "int": lambda t, b: int(b),
    "float": lambda t, b: float(b),
    "range": lambda t, b: range(b),
    "[0] *": lambda t, b: [0] * b,
    "format": lambda t, b: f"{b:>4}",
    "/": lambda t, b: t / 2,
    "* of floats": lambda t, b: t * 0.5,
    "**": lambda t, b: b**2,
    "//": lambda t, b: t // (b - 4),
    "%": lambda t, b: t % (b - 4),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_is_not_proved_is_an_error(name: str) -> None:
    """And no guard, so that a pass that forgot to ask is found."""
    env, t, b = two()
    with pytest.raises(UndecidedSizeError, match=r"size.* ask symbolic\.queries"):
        UNDECIDED[name](t, b)
    assert not env.guards and len(env.atoms) == 2


def test_equal_expressions_are_one_key() -> None:
    """Whatever is not known of the sizes; those of -1 and -2 too, which hash alike as ints."""
    env, t, b = two()
    keys = {t: "t", b: "b", t * b: "tb", 8: "8", -t: "-t", t * -2: "-2t"}
    assert [keys[key] for key in (b, t, b * t, 8, -t, -t - t)] == ["b", "t", "tb", "8", "-t", "-2t"]
    assert t + 1 not in keys and len({hash(key) for key in keys}) == len(keys)
    assert not env.guards


def test_sizes_of_two_signatures_do_not_meet() -> None:
    _, t, _ = two()
    _, u, _ = two()
    assert hash(t) != hash(u)
    for meet in (lambda: t == u, lambda: t + u, lambda: t < u):
        with pytest.raises(AssertionError, match="two signatures"):
            meet()


# --- queries that record a guard ------------------------------------------------------------------


def test_what_is_known_takes_no_guard() -> None:
    env, t, b = two()
    assert assume_less(1, t) and assume_at_most(2, t) and not assume_equal(t, 0)
    assert assume_less(b, t * b) and assume_equal(t, t * b // b) and assume_multiple(t, 16)
    assert assume_max(t, 1) is t and assume_min(t, 1) == 1 and assume_abs(-t) == t
    assert not assume_empty((t, b, 1)) and assume_same_shape((t, b), (t, b))
    assert not assume_same_shape((t, b), (t,))
    assert assume_equal(3, 3) and assume_less(3, 4) and assume_at_most(4, 4)
    assert assume_multiple(8, 4) and assume_constant(5) == 5
    assert not env.guards


def test_what_is_not_known_takes_one() -> None:
    env, t, b = two()
    assert assume_at_most(t, 4096) and not assume_less(t, 4096)
    assert assume_less(b, 512) and not assume_equal(t, 128)
    assert guards(env) == ["size0 <= 4096", "size0 >= 4096", "size1 <= 511"]
    assert assume_less(t * b, 2**31)
    assert len(env.guards) == 3, "bounded factors bound the product"


QUESTIONS: dict[str, tuple[Callable[[Any, Any], object], object, list[str]]] = {
    "equal": (lambda t, b: assume_equal(b, 8), True, ["size1 == 8"]),
    "not equal": (lambda t, b: assume_equal(t, b), False, ["size0 - size1 != 0"]),
    "less": (lambda t, b: assume_less(b, t), True, ["size0 - size1 >= 1"]),
    "not less": (lambda t, b: assume_less(t, b), False, ["size0 - size1 >= 0"]),
    "multiple": (lambda t, b: assume_multiple(b, 4), True, ["size2 == 0"]),
    "by a difference": (
        lambda t, b: assume_multiple(t, b - 4),
        True,
        ["size1 >= 5", "size2 == 0"],
    ),
    "constant": (lambda t, b: assume_constant(b * 2), 16, ["size1 == 8"]),
    "max": (lambda t, b: hint(assume_max(t, b)), 4096, ["size0 - size1 >= 0"]),
    "min": (lambda t, b: hint(assume_min(t, b)), 8, ["size0 - size1 >= 1"]),
    "abs": (lambda t, b: hint(assume_abs(b - t)), 4088, ["size0 - size1 >= 1"]),
    "empty": (lambda t, b: assume_empty((t, b - 8)), True, ["size1 == 8"]),
    "shape": (lambda t, b: assume_same_shape((t, b), (t, 8)), True, ["size1 == 8"]),
    "sorted": (
        lambda t, b: [hint(n) for n, _ in assume_sorted([(t, 1), (b, 2)])],
        [8, 4096],
        ["size0 - size1 != 0", "size0 - size1 >= 1"],
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_guard_of_a_question(name: str) -> None:
    """Recorded when it is asked first; from then on operators know the answer too."""
    question, answer, recorded = QUESTIONS[name]
    env, t, b = two()
    for _ in range(2):
        assert question(t, b) == answer
        assert guards(env) == recorded


def test_what_was_assumed_is_known() -> None:
    env, t, b = two()
    assert assume_less(b, t) and not assume_equal(t * b, 128) and assume_constant(b) == 8
    assert t > b and not t <= b and b < t and t * b != 128
    assert int(b) == 8 and f"{b:>2}" == " 8" and [0] * b == [0] * 8
    assert len(env.guards) == 3


def test_closing_drops_what_others_say() -> None:
    env, t, b = two()
    assert assume_at_most(t, 10000) and not assume_equal(b, 9)
    assert assume_at_most(t, 5000) and assume_at_most(b, 100)
    env.close()
    assert guards(env) == ["size1 != 9", "size0 <= 4992", "size1 <= 100"]
    assert assume_at_most(t, 4992) and t <= 4992 and b < 101
    with pytest.raises(AssertionError, match="too late"):
        assume_less(5, b)


def test_what_is_required_is_a_guard_at_the_end_alone() -> None:
    """What bounds and other guards do not say by then; nothing is known of it before."""
    env, t, b = two()
    assert require_at_most(t * b, 10**6) and require_at_most(b, 1000) and not require_at_most(t, 9)
    assert require_at_most(-t, 0) and not is_known_less(b, 1001) and assume_at_most(b, 100)
    assert guards(env) == ["size1 <= 100"]
    env.close()
    assert guards(env) == ["size1 <= 100", "size0 * size1 <= 1000000"]


# --- queries that record nothing ------------------------------------------------------------------


def test_asking() -> None:
    env, t, b = two()
    assert hint(t * b + 1) == 32769 and hint(5) == 5
    assert is_known_less(b, b * t) and not is_known_less(t, b) and not is_known_less(b, t)
    assert is_known_multiple(t * b, 16) and is_known_multiple(t * b, b)
    assert not is_known_multiple(b, 8) and is_known_multiple(24, 8)
    assert known_divisor(t * 3 + 8) == 8 and known_divisor(12) == 12
    assert is_known_equal(t + b - b, t) and not is_known_equal(t, 4096) and is_known_equal(3, 3)
    assert min_by_hint(t, t + 1) is t and min_by_hint(7, 5) == 5 and hint(min_by_hint(t, b)) == 8
    assert repr(common_factor(t * b * 6, b * 36)) == "size1 * 12" and common_factor(6, 4) == 2
    assert [repr(n) for n in known_divmod(t * b + 5, b)] == ["size0", "5"]
    assert known_divmod(1024, t) == (0, 1024), "it may be less or more"
    assert known_divmod(-1, t)[0] == -1
    assert not env.guards and len(env.atoms) == 2


# --- polynomials ---------------------------------------------------------------------------------


def test_polynomials() -> None:
    p = {(0, 1): 4, (0,): 2, (): -6}
    assert added(p, {(0,): 1, (): 3}, 2) == {(0, 1): 4, (0,): 4}
    assert multiplied({(0,): 1, (): 1}, {(0,): 1, (): -1}) == {(0, 0): 1, (): -1}
    assert divided({(0, 1): 5, (): 7}, {(0,): 2}) == ({(1,): 2}, {(0, 1): 1, (): 7})
    assert common_part([(0, 0, 1), (0, 1, 1)]) == (0, 1) and common_part([]) == ()
    assert never_zero({(0,): 4, (): 2}) and not never_zero({(0,): 4, (): 8})
    # a*b - a with both from 2 to 9
    assert lower_bound({(0, 1): 1, (0,): -1}, lambda v: (2, 9)) == 2
    assert lower_bound({(0,): -3, (): 1}, lambda v: (2, 9)) == -26


# --- soundness -----------------------------------------------------------------------------------


class Trial:
    """One random computation on sizes; the same again on plain numbers must decide the same."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def run(self, symbols: list[int]) -> tuple[list[int], list[bool | None]]:
        """All that is computed from two sizes, and all that is decided on the way.

        None is what an operator does not decide.
        """
        rng = random.Random(self.seed)
        pool: list[Any] = [*symbols, 1, 2, 3, 8, 512]
        answers: list[bool | None] = []
        for _ in range(10):
            a, b = rng.choice(pool), rng.choice(pool)
            kind = rng.choice(("+", "-", "*", "//", "%", *ASSUMED, *OPERATORS))
            if kind in ASSUMED:
                answers.append(ASSUMED[kind](a, b))
            elif kind in OPERATORS:
                answers.append(decided(OPERATORS[kind], a, b))
            elif kind in ("//", "%"):
                answers += [assume_less(0, b), assume_less(b, 0)]
                if any(answers[-2:]):
                    pool.append(a // b if kind == "//" else a % b)
            else:
                pool.append({"+": a + b, "-": a - b, "*": a * b}[kind])
        return pool[2:], answers


ASSUMED: dict[str, Callable[[int, int], bool]] = {
    "less": assume_less,
    "equal": assume_equal,
    "at most": assume_at_most,
    "empty": lambda a, b: assume_empty((a, b)),
}

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "==": operator.eq,
    ">=": operator.ge,
    "bool": lambda a, b: bool(a),
}


def decided(ask: Callable[[Any, Any], bool], a: Any, b: Any) -> bool | None:
    try:
        return ask(a, b)
    except UndecidedSizeError:
        return None


@pytest.mark.parametrize("start", range(0, 1500, 300))
def test_decisions_hold_wherever_the_guards_do(start: int) -> None:
    """And the texts, evaluated, are the numbers."""
    held = 0
    for seed in range(start, start + 300):
        rng = random.Random(-seed)
        multiple = rng.choice((1, 1, 4, 16))
        env = ShapeEnv()
        hints = [multiple * rng.randint(2, 12), rng.randint(2, 40)]
        sizes = [symbol(env, hints[0], multiple), symbol(env, hints[1])]
        found, known = Trial(seed).run(sizes)
        assert [hint(n) for n in found] == Trial(seed).run(hints)[0]
        env.close()
        for _ in range(12):
            others = [multiple * rng.randint(2, 30), rng.randint(2, 60)]
            try:
                atoms = env.symbols.values(others)
            except ZeroDivisionError:
                continue
            names = {a.name: n * a.multiple for a, n in zip(env.atoms, atoms, strict=True)}
            if not all(eval(text, dict(names)) for text in guards(env)):
                continue
            held += 1
            wanted, answers = Trial(seed).run(others)
            pairs = zip(known, answers, strict=True)
            assert all(was in (None, now) for was, now in pairs), seed
            assert [evaluate_size(n, atoms) for n in found] == wanted, seed
            texts = [eval(repr(n), dict(names)) for n in found]
            assert texts == wanted, seed
            for line in computed(env, names)[1]:
                exec(line, scope := dict(names))
                assert scope[line.partition(" ")[0]] == names[line.partition(" ")[0]], seed
    assert held > 300


def test_text_of_no_terms() -> None:
    env, _, _ = two()
    assert size_text(env, {}) == "0"
