"""Rules of the functions of complex numbers: exponentials, logarithms, powers, circular functions.

Branch cuts are C's, as are results of infinities (Annex G). Infinite results keep the parts that
are exactly zero.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .pairs import divide, invert, multiply, times
from .terms import Pair, Rule, Term, formula

_FAR = 20.0
"""From here on 1 - tanh(x) is less than an ulp of 1, and sinh(x)**4 is still finite in Float."""

_TINY = 1e-30
"""Below this ``square_root`` scales: half of the sum of two sizes might lose digits in Float."""


def _size(x: Pair) -> Any:
    """The absolute value, without overflow on the way."""
    return x.re.hypot(x.im)


def log_size(x: Pair) -> Any:
    """The logarithm of the absolute value, also where that itself is too large to be held."""
    size, half = _size(x), _size(_scaled(x, 0.5))
    over = size.isinf()
    log = over.where(half, size).log()
    return over.where(log + math.log(2), log)


def _angle(x: Pair) -> Any:
    return x.im.atan2(x.re)


def _negative(x: Pair) -> Pair:
    return Pair(-x.re, -x.im)


def _times_i(x: Pair) -> Pair:
    """``i * x``."""
    return Pair(-x.im, x.re)


def _times_minus_i(x: Pair) -> Pair:
    """``-i * x``."""
    return Pair(x.im, -x.re)


def _scaled(x: Pair, factor: float) -> Pair:
    return Pair(x.re * factor, x.im * factor)


def _choose(condition: Term, x: Pair, y: Pair) -> Pair:
    return Pair(condition.where(x.re, y.re), condition.where(x.im, y.im))


def _from_polar(size: Term, angle: Term) -> Pair:
    return Pair(angle.cos() * size, times(angle.sin(), size))


def at_i_times(function: Rule) -> Rule:
    """``-i f(i x)``: the sine of the hyperbolic sine, the tangent of the hyperbolic tangent."""
    return lambda x: _times_minus_i(function(_times_i(x)))


# --- exponentials and logarithms -----------------------------------------------------------------


def _undirected(x: Pair) -> Any:
    """Whether the real part is infinite and the imaginary part is no angle.

    Annex G of C gives the parts of such results whose sine and cosine cannot be computed.
    """
    return x.re.isinf().logical_and(x.im.isfinite().logical_not())


def _exp(x: Pair) -> Pair:
    """Without a direction (0, 0) at minus infinity, and (inf, nan) at infinity."""
    size, undirected = x.re.exp(), _undirected(x)
    known = _from_polar(size, x.im)
    return Pair(undirected.where(size, known.re), undirected.where(size - size, known.im))


def _log(x: Pair) -> Pair:
    return Pair(log_size(x), _angle(x))


def _expm1(x: Pair) -> Pair:
    """``expm1(re) cos(im) - 2 sin(im / 2)**2`` is exact near 0."""
    half = (x.im * 0.5).sin()
    return Pair(x.im.cos() * x.re.expm1() - half * half * 2.0, times(x.im.sin(), x.re.exp()))


def _log1p(x: Pair) -> Pair:
    """As a logarithm of a square near 0, where 1 + re would lose digits."""
    squares = x.re * (x.re + 2.0) + x.im * x.im
    shifted = Pair(x.re + 1.0, x.im)
    near = x.re.abs().lt(0.5).logical_and(x.im.abs().lt(0.5))
    return Pair(near.where(squares.log1p() * 0.5, log_size(shifted)), _angle(shifted))


def _sigmoid(x: Pair) -> Pair:
    """``e / (1 + e)`` on the left, ``1 / (1 + e)`` on the right: e never overflows."""
    left = x.re.lt(0.0)
    power = _exp(_choose(left, x, _negative(x)))
    top = Pair(left.where(power.re, 1.0), left.where(power.im, 0.0))
    return divide(top, Pair(power.re + 1.0, power.im))


exp = formula(_exp)
log = formula(_log)
expm1 = formula(_expm1)
log1p = formula(_log1p)
exp2 = formula(lambda x: _exp(_scaled(x, math.log(2))))
log2 = formula(lambda x: _scaled(_log(x), 1 / math.log(2)))
log10 = formula(lambda x: _scaled(_log(x), 1 / math.log(10)))
sigmoid = formula(_sigmoid)
silu = formula(lambda x: multiply(x, _sigmoid(x)))


# --- powers --------------------------------------------------------------------------------------


def square_root(x: Pair) -> Pair:
    """The half sum of the sizes under a real root is never a difference: no digits are lost."""
    root = _root_of_half_sum(x)
    rest = root.eq(0.0).where(x.im.abs(), x.im.abs() / (root * 2.0))
    right = x.re.ge(0.0)
    endless = x.im.isinf()
    re = endless.where(x.im.abs(), right.where(root, rest))
    im = endless.where(x.im.abs(), right.where(rest, root))
    return Pair(re, x.im.signbit().where(-im, im))


def _root_of_half_sum(x: Pair) -> Any:
    """``sqrt((|re| + |x|) / 2)``, scaled by a power of 4 where the sum is too large or too small.

    Kahan: Branch cuts for complex elementary functions, 1987: CSSQS.
    """
    total = x.re.abs() + _size(x)
    eighth = _scaled(x, 0.125)
    large, small = total.isinf(), total.lt(_TINY)
    half = small.where(total * 2.0**23, total * 0.5)
    root = large.where(eighth.re.abs() + _size(eighth), half).sqrt()
    return large.where(root * 2.0, small.where(root * 2.0**-12, root))


def _pow(x: Pair, y: Pair) -> Pair:
    """Few multiplications for a small constant, else by absolute value and angle."""
    constant = _EXPONENTS.get(y.re.number) if y.im.number == 0 else None
    if constant is not None:
        made: Pair = constant(x)
        return made
    size, angle = _size(x), _angle(x)
    # 0 has no logarithm; its powers are 0 where the exponent is on the right side.
    gone = size.eq(0.0).logical_and(y.re.gt(0.0))
    turn = gone.where(0.0, times(y.im, log_size(x)) + y.re * angle)
    return _from_polar(_size_of_power(x, y), turn)


def _size_of_power(x: Pair, y: Pair) -> Any:
    """``|x| ** re(y) * exp(-im(y) angle(x))``, by one exponential where a factor has no number.

    Both factors are exact to the last digits, which an exponential of a large sum is not.
    """
    size, log, growth = _size(x), log_size(x), -y.im * _angle(x)
    power, factor = size.pow(y.re), growth.exp()
    opposed = ((power - 1.0) * (factor - 1.0)).lt(0.0)
    beyond = power.maximum(factor).isinf().logical_or(power.minimum(factor).lt(_smallest(size)))
    too_large = size.isinf().logical_and(log.isfinite())
    alone = too_large.logical_or(opposed.logical_and(beyond))
    return alone.where((y.re * log + growth).exp(), power * factor)


def _smallest(x: Term) -> float:
    """The least number that has all its digits in the dtype of ``x``."""
    return torch.finfo(x.operand.dtype.info.torch).tiny


_EXPONENTS: dict[float, Rule] = {
    0.0: lambda x: Pair(1.0, 0.0),
    0.5: square_root,
    1.0: lambda x: x,
    2.0: lambda x: multiply(x, x),
    3.0: lambda x: multiply(x, multiply(x, x)),
    -0.5: lambda x: invert(square_root(x)),
    -1.0: invert,
    -2.0: lambda x: invert(multiply(x, x)),
}

sqrt = formula(square_root)
rsqrt = formula(lambda x: invert(square_root(x)))
power = formula(_pow)


# --- circular and hyperbolic functions -----------------------------------------------------------


def _sinh(x: Pair) -> Pair:
    size = x.re.sinh()
    re = _undirected(x).where(size, times(size, x.im.cos()))
    return Pair(re, times(x.im.sin(), x.re.cosh()))


def _cosh(x: Pair) -> Pair:
    size, slope = x.re.cosh(), x.re.sinh()
    re = _undirected(x).where(size, size * x.im.cos())
    return Pair(re, slope.eq(0.0).where(slope, times(x.im.sin(), slope)))


def _tanh(x: Pair) -> Pair:
    """Kahan: Branch cuts for complex elementary functions, 1987."""
    tangent, sine = x.im.tan(), x.re.sinh()
    beta = tangent * tangent + 1.0
    below = beta * sine * sine + 1.0
    re = times(sine, beta * (sine * sine + 1.0).sqrt() / below)
    near = Pair(re, tangent.eq(0.0).where(tangent, tangent / below))
    size = x.re.abs()
    tail = x.im.sin() * x.im.cos() * (size * -2.0).exp() * 4.0
    far = Pair(x.re.sign(), _undirected(x).where(0.0, tail))
    return _choose(size.gt(_FAR), far, near)


sinh = formula(_sinh)
cosh = formula(_cosh)
tanh = formula(_tanh)
sin = formula(at_i_times(_sinh))
cos = formula(lambda x: _cosh(_times_i(x)))
tan = formula(at_i_times(_tanh))
