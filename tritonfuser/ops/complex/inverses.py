"""Rules of the inverses of circular and hyperbolic functions of complex numbers.

Kahan: Branch cuts for complex elementary functions, 1987. Where a part is infinite, or zero beside
a nan, results are those of Annex G of C.
"""

from __future__ import annotations

import math
from typing import Any

from .functions import at_i_times, square_root
from .pairs import Pair, Term, formula

_QUARTER = math.pi / 2


def _is_infinite(x: Pair) -> Any:
    return x.re.isinf().logical_or(x.im.isinf())


def _roots(x: Pair) -> tuple[Pair, Pair]:
    """The square roots of 1 - x and 1 + x."""
    return square_root(Pair(1.0 - x.re, -x.im)), square_root(Pair(x.re + 1.0, x.im))


def _with_sign_of(size: float, x: Term) -> Term:
    made: Term = x.signbit().where(-size, size)
    return made


def _asin(x: Pair) -> Pair:
    minus, plus = _roots(x)
    # Kahan's cosine is inf - inf here, and atan2 of infinities is the angle of the limit.
    infinite = _is_infinite(x)
    below = infinite.where(x.im.abs(), minus.re * plus.re - minus.im * plus.im)
    re = x.re.eq(0.0).where(x.re, x.re.atan2(below))
    im = (minus.re * plus.im - minus.im * plus.re).asinh()
    return Pair(re, infinite.where(_with_sign_of(math.inf, x.im), im))


def _acos(x: Pair) -> Pair:
    minus, plus = _roots(x)
    infinite = _is_infinite(x)
    re = infinite.where(x.im.abs().atan2(x.re), minus.re.atan2(plus.re) * 2.0)
    im = (plus.re * minus.im - plus.im * minus.re).asinh()
    return Pair(
        x.re.eq(0.0).where(_QUARTER, re),
        infinite.where(_with_sign_of(-math.inf, x.im), im),
    )


def _acosh(x: Pair) -> Pair:
    minus, plus = square_root(Pair(x.re - 1.0, x.im)), square_root(Pair(x.re + 1.0, x.im))
    infinite = _is_infinite(x)
    im = infinite.where(x.im.atan2(x.re), minus.im.atan2(plus.re) * 2.0)
    return Pair(
        infinite.where(math.inf, (minus.re * plus.re + minus.im * plus.im).asinh()),
        x.re.eq(0.0).where(_with_sign_of(_QUARTER, x.im), im),
    )


def _atanh(x: Pair) -> Pair:
    """Half of log((1 + x) / (1 - x)), on the right side, where log1p is of what is positive."""
    size, square = x.re.abs(), x.im * x.im
    away = 1.0 - size
    re = (size * 4.0 / (away * away + square)).log1p() * 0.25
    re = _is_infinite(x).where(0.0, size.eq(0.0).where(size, re))
    # The angle of an infinite imaginary part does not depend on the real one, which may be nan.
    top = x.im.isinf().where(x.im.sign(), x.im * 2.0)
    below = x.im.isinf().where(-math.inf, away * (size + 1.0) - square)
    return Pair(x.re.signbit().where(-re, re), top.atan2(below) * 0.5)


asin = formula(_asin)
acos = formula(_acos)
acosh = formula(_acosh)
atanh = formula(_atanh)
asinh = formula(at_i_times(_asin))
atan = formula(at_i_times(_atanh))
