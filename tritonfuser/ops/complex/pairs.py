"""Complex numbers as pairs of reals: the rules of pointwise ops and reductions over pairs.

A rule is ``(ops, *operands, **attrs)``: a complex operand is a ``Pair``, others are as they are,
and so are its results. Formulas are written over ``Term``, which records what its operators say.
"""

from __future__ import annotations

from typing import Any

from ...dtypes import Category, DataType, real_dtype
from ...ir import Const
from .terms import Pair, Rule, Term, formula, plain

# --- rules of one kind -------------------------------------------------------------------------


def each(name: str) -> Rule:
    """The op on the real parts and on the imaginary parts: what is linear, and what chooses."""

    def rule(ops: Any, *operands: Any, **attrs: Any) -> Pair:
        real = {k: real_dtype(v) if isinstance(v, DataType) else v for k, v in attrs.items()}
        given = [x for x in operands if x is not None]
        record = getattr(ops, name)
        return Pair(
            record(*(x.re if isinstance(x, Pair) else x for x in given), **real),
            record(*(x.im if isinstance(x, Pair) else x for x in given), **real),
        )

    return rule


def as_cast(name: str) -> Rule:
    """The op itself: its typing rule has made real numbers of the operands."""
    return lambda ops, *operands, **attrs: getattr(ops, name)(*operands, **attrs)


def both(test: str, join: str) -> Rule:
    """A test of both parts, joined: finite if both are, nan if one is."""

    def rule(ops: Any, x: Pair) -> Any:
        record = getattr(ops, test)
        return getattr(ops, join)(record(x.re), record(x.im))

    return rule


# --- parts and casts -----------------------------------------------------------------------------


def cast(ops: Any, x: Any, dtype: DataType) -> Any:
    """A number as ``dtype``: a real one by losing the imaginary part, a Bool by being not 0."""
    if dtype.info.category is Category.COMPLEX:
        kind = real_dtype(dtype)
        if isinstance(x, Pair):
            return Pair(ops.cast(x.re, kind), ops.cast(x.im, kind))
        return Pair(ops.cast(x, kind), Const(0.0, kind))
    if not isinstance(x, Pair):
        return ops.cast(x, dtype)
    return ops.logical_or(x.re, x.im) if dtype is DataType.Bool else ops.cast(x.re, dtype)


def real(ops: Any, x: Any) -> Any:
    return ops.set(x.re)


def imag(ops: Any, x: Pair) -> Any:
    return ops.set(x.im)


def from_parts(ops: Any, re: Any, im: Any) -> Pair:
    return Pair(re, im)


@formula
def equal(x: Pair, y: Pair) -> Any:
    return x.re.eq(y.re).logical_and(x.im.eq(y.im))


@formula
def differ(x: Pair, y: Pair) -> Any:
    return x.re.ne(y.re).logical_or(x.im.ne(y.im))


@formula
def is_real(x: Pair) -> Any:
    return x.im.eq(0.0)


@formula
def absolute(x: Pair) -> Any:
    return x.re.hypot(x.im)


# --- arithmetic ----------------------------------------------------------------------------------


def add(x: Pair, y: Pair) -> Pair:
    return Pair(x.re + y.re, x.im + y.im)


def subtract(x: Pair, y: Pair) -> Pair:
    return Pair(x.re - y.re, x.im - y.im)


def multiply(x: Pair, y: Pair) -> Pair:
    return Pair(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def divide(x: Pair, y: Pair) -> Pair:
    """By Smith's method, which does not overflow; by zero infinite.

    Smith: Algorithm 116: Complex division, 1962.
    """
    wide, ratio, scale = _smith(y)
    re = wide.where(x.re + x.im * ratio, x.re * ratio + x.im) * scale
    im = wide.where(x.im - x.re * ratio, x.im * ratio - x.re) * scale
    zero = _is_zero(y)
    return Pair(zero.where(x.re / y.re.abs(), re), zero.where(x.im / y.im.abs(), im))


def invert(x: Pair) -> Pair:
    """1 / x, as ``divide``."""
    wide, ratio, scale = _smith(x)
    small = ratio * scale
    zero = _is_zero(x)
    re = wide.where(scale, small)
    im = -wide.where(small, scale)
    return Pair(zero.where(1.0 / x.re.abs(), re), zero.where(0.0 / x.im.abs(), im))


def _smith(x: Pair) -> tuple[Term, Term, Term]:
    """Whether the real part is the larger one, smaller by larger, and 1 / (what both make up)."""
    wide = x.re.abs().ge(x.im.abs())
    large, small = wide.where(x.re, x.im), wide.where(x.im, x.re)
    ratio = small / large
    return wide, ratio, 1.0 / (large + small * ratio)


def _is_zero(x: Pair) -> Any:
    return x.re.eq(0.0).logical_and(x.im.eq(0.0))


def times(x: Term, factor: Term) -> Any:
    """The product, which is zero where ``x`` is, also times infinity."""
    return x.eq(0.0).where(x, x * factor)


mul = formula(multiply)
div = formula(divide)
reciprocal = formula(invert)


@formula
def lerp(x: Pair, y: Pair, weight: Pair) -> Pair:
    return add(x, multiply(weight, subtract(y, x)))


@formula
def addcmul(i1: Pair, i2: Pair, i3: Pair, alpha: Pair) -> Pair:
    return add(i1, multiply(i2, multiply(i3, alpha)))


# --- reductions ----------------------------------------------------------------------------------


def prod(ops: Any, arg: Pair, dims: Any, **_: Any) -> Pair:
    """By absolute values and angles, which are summed in Double."""
    size, angle = ops.hypot(arg.re, arg.im), _angle(ops, arg)
    return _from_polar(ops, ops.prod(size, list(dims)), ops.sum(angle, list(dims)))


def cumprod(ops: Any, arg: Pair, _: Any, dim: int) -> Pair:
    """As ``prod``."""
    size, angle = ops.hypot(arg.re, arg.im), _angle(ops, arg)
    return _from_polar(ops, ops.cumprod(size, dim), ops.cumsum(angle, dim))


def _angle(ops: Any, x: Pair) -> Any:
    return ops.cast(ops.atan2(x.im, x.re), DataType.Double)


def _from_polar(ops: Any, size: Any, angle: Any) -> Pair:
    size, angle = Term(ops, size), Term(ops, angle)
    made: Pair = plain(Pair(angle.cos() * size, times(angle.sin(), size)))
    return made


def welford(ops: Any, arg: Pair, dims: Any) -> tuple[Pair, Any, Any]:
    """Mean of pairs; squared deviations of both parts add up."""
    mean_re, squares_re, count = ops.welford(arg.re, list(dims))
    mean_im, squares_im, _ = ops.welford(arg.im, list(dims))
    return Pair(mean_re, mean_im), ops.add(squares_re, squares_im), count
