"""Questions about numbers that may be sizes: proved for all sizes, or assumed by a guard.

``is_known_*`` record nothing. They are False where the answer is not proved for all sizes.
``assume_*`` answer by the sizes of this run where nothing is proved, and record the answer as a
guard: the kernels then serve only sizes with the same answer. Plain ints are compared at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cmp_to_key
from math import gcd

from .polynomials import common_part, content
from .sizes import as_size, hint, polynomial, sizes_among

# --- known for all sizes: nothing is recorded -----------------------------------------------------


def is_known_equal(a: int, b: int) -> bool:
    """Whether two numbers are equal for all sizes."""
    if type(a) is int and type(b) is int:
        return a == b
    sizes = sizes_among(a, b)
    return a == b if not sizes else len(sizes) == 2 and sizes[0].terms == sizes[1].terms


def is_known_less(a: int, b: int) -> bool:
    """Whether ``a < b`` for all sizes."""
    difference = b - a
    if type(difference) is int:
        return difference > 0
    for size in sizes_among(difference):
        return size.env.symbols.lower_bound(dict(size.terms)) > 0
    return difference > 0


def is_implied_less(a: int, b: int) -> bool:
    """Whether ``a < b`` for all sizes that pass the guards: proved by bounds and one guard."""
    difference = b - a - 1
    for size in sizes_among(difference):
        return size.env.implies_at_least_zero(dict(size.terms))
    return difference >= 0


def is_known_multiple(a: int, n: int) -> bool:
    """Whether ``n`` divides ``a`` for all sizes."""
    return is_known_equal(known_divmod(a, n)[1], 0)


def known_divisor(value: int) -> int:
    """The greatest known divisor of a size; an int as it is."""
    for size in sizes_among(value):
        return content(dict(size.terms))
    return value


def common_factor(a: int, b: int) -> int:
    """A common divisor of both for all sizes: the gcd of ints, the factors that sizes share."""
    if type(a) is int and type(b) is int:
        return gcd(a, b)
    sizes = sizes_among(a, b)
    if not sizes:
        return gcd(a, b)
    both = [polynomial(n, sizes[0].env) for n in (a, b)]
    factor = gcd(*(content(p) for p in both))
    part = common_part(monomial for p in both for monomial in p)
    return as_size(sizes[0].env, {part: factor} if factor else {})


def known_divmod(a: int, n: int) -> tuple[int, int]:
    """``(whole, rest)`` with ``a == n * whole + rest``; equal to ``divmod`` where provable."""
    if type(a) is int and type(n) is int:
        return divmod(a, n)
    sizes = sizes_among(a, n)
    if not sizes:
        return divmod(a, n)
    env = sizes[0].env
    whole, rest = env.symbols.split(polynomial(a, env), polynomial(n, env))
    return as_size(env, whole), as_size(env, rest)


def min_by_hint(a: int, b: int) -> int:
    """The minimum of two numbers: the proved one, else the one that is less in this run.

    No guard is recorded, so the result may not be the minimum at other sizes.
    """
    if type(a) is int and type(b) is int:
        return a if a < b else b
    if is_known_less(a, b):
        return a
    return b if is_known_less(b - 1, a) or hint(b) < hint(a) else a


# --- decided by the sizes of this run: guards are recorded ----------------------------------------


def assume_equal(a: int, b: int) -> bool:
    """Whether two numbers are equal, from here on for all sizes."""
    if type(a) is int and type(b) is int:
        return a == b
    difference = a - b
    for size in sizes_among(difference):
        return size.env.assume_zero(dict(size.terms))
    return difference == 0


def assume_less(a: int, b: int) -> bool:
    """Whether ``a < b``, from here on for all sizes."""
    if type(a) is int and type(b) is int:
        return a < b
    return assume_at_most(a + 1, b)


def assume_at_most(a: int, b: int) -> bool:
    """Whether ``a <= b``, from here on for all sizes."""
    if type(a) is int and type(b) is int:
        return a <= b
    difference = b - a
    for size in sizes_among(difference):
        return size.env.assume_at_least_zero(dict(size.terms))
    return difference >= 0


def require_at_most(a: int, b: int) -> bool:
    """Whether ``a <= b`` in this run: kernels serve no others, and are the same as without it."""
    if type(a) is int and type(b) is int:
        return a <= b
    difference = b - a
    for size in sizes_among(difference):
        return size.env.require_at_least_zero(dict(size.terms))
    return difference >= 0


def assume_multiple(a: int, n: int) -> bool:
    """Whether ``n`` divides ``a``, from here on for all sizes; the sign of ``n`` is decided too."""
    if type(a) is int and type(n) is int:
        return a % n == 0
    size = n if assume_less(0, n) else -n
    if not assume_less(0, size):
        raise ZeroDivisionError("division of a size by zero")
    return assume_equal(a % size, 0)


def assume_constant(value: int) -> int:
    """The number that a size is in this run, and from here on has to be in all."""
    for size in sizes_among(value):
        return size.env.assume_constant(dict(size.terms))
    return value


def assume_max(a: int, b: int) -> int:
    """``max(a, b)``: which of them is, from here on for all sizes."""
    return b if assume_less(a, b) else a


def assume_min(a: int, b: int) -> int:
    """``min(a, b)``: which of them is, from here on for all sizes."""
    return b if assume_less(b, a) else a


def assume_abs(value: int) -> int:
    """``abs(value)`` with the sign that it has from here on for all sizes."""
    return -value if assume_less(value, 0) else value


def assume_empty(sizes: Iterable[int]) -> bool:
    """Whether a shape has a dim of no elements, from here on for all sizes."""
    return any(assume_equal(size, 0) for size in sizes)


def assume_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two shapes are equal, from here on for all sizes."""
    return len(a) == len(b) and all(assume_equal(x, y) for x, y in zip(a, b, strict=True))


def assume_sorted(items: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """``sorted(items)``: the tuples in an order that from here on is that of all sizes."""
    return sorted(items, key=cmp_to_key(_order))


def _order(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Below, at or above 0 as ``a`` comes before, with or behind ``b``."""
    for x, y in zip(a, b, strict=True):
        if not assume_equal(x, y):
            return -1 if assume_less(x, y) else 1
    return 0
