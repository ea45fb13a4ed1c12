"""Rules of the inverses of circular and hyperbolic functions of complex numbers.

Kahan: Branch cuts for complex elementary functions, 1987. Where a part is infinite, or zero beside
a nan, results are those of Annex G of C.
"""

from __future__ import annotations

import math
from typing import Any

from .functions import at_i_times, log_size, square_root
from .terms import Pair, Term, formula

_QUARTER = math.pi / 2

_FAR = 1e18
"""From here on 1 beside x**2 does not count, whose parts are still finite in Float."""

_NEAR = 1e-4
"""Nearer to a pole than this its distance may have no square in Float."""


def _is_infinite(x: Pair) -> Any:
    return x.re.isinf().logical_or(x.im.isinf())


def _is_far(x: Pair) -> Any:
    return x.re.abs().gt(_FAR).logical_or(x.im.abs().gt(_FAR))


def _half(x: Pair) -> Pair:
    return Pair(x.re * 0.5, x.im * 0.5)


def _log_of_double(x: Pair) -> Any:
    """``log(2 |x|)``: what inverse hyperbolic functions are far away."""
    return log_size(x) + math.log(2)


def _roots(x: Pair) -> tuple[Pair, Pair]:
    """The square roots of 1 - x and 1 + x."""
    return square_root(Pair(1.0 - x.re, -x.im)), square_root(Pair(x.re + 1.0, x.im))


def _with_sign_of(size: Term, x: Term) -> Term:
    made: Term = x.signbit().where(-size, size)
    return made


def _asin(x: Pair) -> Pair:
    minus, plus = _roots(x)
    # Kahan's cosine overflows far away, and atan2 of the parts, or of infinities, is the limit.
    far = _is_far(x)
    below = far.where(x.im.abs(), minus.re * plus.re - minus.im * plus.im)
    re = x.re.eq(0.0).where(x.re, x.re.atan2(below))
    im = (minus.re * plus.im - minus.im * plus.re).asinh()
    return Pair(re, far.where(_with_sign_of(_log_of_double(x), x.im), im))


def _acos(x: Pair) -> Pair:
    minus, plus = _roots(x)
    far = _is_far(x)
    re = far.where(x.im.abs().atan2(x.re), minus.re.atan2(plus.re) * 2.0)
    im = (plus.re * minus.im - plus.im * minus.re).asinh()
    return Pair(
        x.re.eq(0.0).where(_QUARTER, re),
        far.where(_with_sign_of(-_log_of_double(x), x.im), im),
    )


def _acosh(x: Pair) -> Pair:
    minus, plus = square_root(Pair(x.re - 1.0, x.im)), square_root(Pair(x.re + 1.0, x.im))
    far = _is_far(x)
    im = far.where(x.im.atan2(x.re), minus.im.atan2(plus.re) * 2.0)
    return Pair(
        far.where(_log_of_double(x), (minus.re * plus.re + minus.im * plus.im).asinh()),
        # Plus a zero: a choice between two numbers would be of Doubles.
        x.re.eq(0.0).where(_with_sign_of(x.re + _QUARTER, x.im), im),
    )


def _atanh(x: Pair) -> Pair:
    """Half of log((1 + x) / (1 - x)), on the right side, where log1p is of what is positive."""
    size = x.re.abs()
    away = 1.0 - size
    re = size.eq(0.0).where(size, _real_atanh(size, away, x.im))
    re = _is_infinite(x).where(0.0, re)
    # The angle of an infinite imaginary part does not depend on the real one, which may be nan.
    top = x.im.isinf().where(x.im.sign(), x.im)
    below = x.im.isinf().where(-math.inf, away * 0.5 * (size + 1.0) - x.im * 0.5 * x.im)
    return Pair(x.re.signbit().where(-re, re), top.atan2(below) * 0.5)


def _real_atanh(re: Term, away: Term, im: Term) -> Any:
    """The real part right of 0, where ``away`` is 1 - re.

    The square of the distance to the pole at 1 may be 0 near it, and too large far away: there it
    is by logarithms, and by 1 / x.
    """
    distance = away.hypot(im)
    usual = (re * 4.0 / (away * away + im * im)).log1p() * 0.25
    near = ((re + 1.0).hypot(im).log() - distance.log()) * 0.5
    half = _half(Pair(re, im))
    size = half.re.hypot(half.im)
    far = half.re / size / size * 0.5
    return _is_far(Pair(re, im)).where(far, distance.lt(_NEAR).where(near, usual))


asin = formula(_asin)
acos = formula(_acos)
acosh = formula(_acosh)
atanh = formula(_atanh)
asinh = formula(at_i_times(_asin))
atan = formula(at_i_times(_atanh))
