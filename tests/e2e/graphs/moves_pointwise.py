"""Moves that compute element by element."""

from __future__ import annotations

import math

import torch

from tests.e2e.graphs.fits import is_exact, is_float, is_int, partner, summable, tame
from tests.e2e.graphs.graph import HIGHEST, LARGEST, LIMIT, D, Graph, Term, Unfit
from tritonfuser.dtypes import Category


def carried(graph: Graph) -> None:
    """Ops under which errors stay what they are."""
    name = graph.rng.choice(("neg", "abs", "relu", "set", "sign", "segment_set"))
    term = graph.term(lambda t: name != "sign" or is_exact(t))
    graph.record(name, term, error=term.error)


_SMOOTH = {
    "exp": (-10.0, 5.0),
    "tanh": (-LARGEST, LARGEST),
    "sigmoid": (-LARGEST, LARGEST),
    "sin": (-20.0, 20.0),
    "erf": (-LARGEST, LARGEST),
    "sqrt": (0.2, LARGEST),
    "rsqrt": (0.2, LARGEST),
    "reciprocal": (0.2, LARGEST),
    "log": (0.2, LARGEST),
}


def smooth(graph: Graph) -> None:
    """Functions of floats whose slope is known."""
    name = graph.rng.choice(tuple(_SMOOTH))
    low, high = _SMOOTH[name]
    term = graph.term(lambda t: tame(t) and low <= t.low and t.high <= high)
    least = max(term.low, 0.2)
    slope = {"exp": math.exp(min(term.high, 5.0)), "sqrt": 1.2}.get(name, 1.0)
    if name in ("rsqrt", "reciprocal", "log"):
        slope = 1 / least**2
    graph.record(name, term, error=slope * 1.5 * term.error, exact=False)


def rounded(graph: Graph) -> None:
    name = graph.rng.choice(("floor", "ceil", "round", "trunc", "frac"))
    graph.record(name, graph.term(is_exact))


def tested(graph: Graph) -> None:
    name = graph.rng.choice(("isnan", "isfinite", "isinf", "signbit", "logical_not"))
    decides = name in ("signbit", "logical_not")
    graph.record(name, graph.term(is_exact if decides else lambda t: True))


def cast(graph: Graph) -> None:
    term = graph.term(lambda t: not t.wild)
    dtype = graph.rng.choice(graph.dtypes)
    kind = dtype.info.category
    if kind is not Category.FLOAT and not is_exact(term):
        raise Unfit
    if dtype is not D.Double and term.size > min(LARGEST, HIGHEST.get(dtype, LARGEST)):
        raise Unfit
    if dtype is D.UInt64 and term.low < 0:
        raise Unfit
    graph.record("cast", term, dtype=dtype, error=term.error)


def arithmetic(graph: Graph) -> None:
    name = graph.rng.choice(("add", "sub", "mul", "maximum", "minimum"))
    a = graph.term(summable)
    b = partner(graph, a, summable)
    if name == "mul" and a.size * b.size > LARGEST:
        raise Unfit
    error = a.error + b.error
    if name == "mul":
        error = a.error * b.size + b.error * a.size + a.error * b.error
    if name in ("add", "sub") and a.size + b.size > LARGEST:
        raise Unfit
    graph.record(name, a, b, error=error)


def quotient(graph: Graph) -> None:
    a = graph.term(tame)
    b = partner(graph, a, lambda t: tame(t) and t.low >= 0.2 and t.category is not Category.BOOL)
    name = graph.rng.choice(("truediv", "div"))
    if name == "div" and not (is_exact(a) and is_exact(b)):
        raise Unfit
    if name == "div" and a.category is not Category.FLOAT and b.category is not Category.FLOAT:
        graph.record(name, a, b)
        return
    error = a.error / 0.2 + b.error * a.size / 0.04
    graph.record(name, a, b, error=error, exact=False)


def compared(graph: Graph) -> None:
    a = graph.term(lambda t: t.error == 0)
    b = partner(graph, a, lambda t: t.error == 0)
    graph.record(graph.rng.choice(("lt", "le", "gt", "ge", "eq", "ne")), a, b)


def bits(graph: Graph) -> None:
    def whole(term: Term) -> bool:
        return not is_float(term)

    a = graph.term(whole)
    b = partner(graph, a, whole)
    graph.record(graph.rng.choice(("bitwise_and", "bitwise_or", "bitwise_xor")), a, b)


def chosen(graph: Graph) -> None:
    condition = graph.term(lambda t: t.dtype is D.Bool)
    a = partner(graph, condition, lambda t: True)
    b = partner(graph, a, lambda t: True)
    shape = torch.broadcast_shapes(a.shape, b.shape)
    try:
        if torch.broadcast_shapes(shape, condition.shape).numel() > LIMIT:
            raise Unfit
    except RuntimeError:
        raise Unfit from None
    if max(a.size, b.size) > LARGEST and not (a.wild or b.wild):
        raise Unfit
    graph.record("where", condition, a, b, error=max(a.error, b.error))


def with_number(graph: Graph) -> None:
    """Arithmetic with a scalar, by the dtype of both."""
    term = graph.term(tame)
    dtype = graph.rng.choice((D.Double, D.Float, D.Int, D.Bool))
    value = {
        D.Double: graph.rng.choice((0.5, -1.5, 2.0)),
        D.Float: graph.rng.choice((0.5, -1.5, 2.0)),
        D.Int: graph.rng.choice((-2, 1, 3)),
        D.Bool: graph.rng.choice((True, False)),
    }[dtype]
    name = graph.rng.choice(("add", "mul", "sub", "maximum", "minimum"))
    if term.size * 3 > LARGEST:
        raise Unfit
    number = graph.scalar(dtype, value)
    pair = (term, number) if graph.chance(0.5) else (number, term)
    graph.record(name, *pair, error=term.error * max(abs(value), 1))


def powered(graph: Graph) -> None:
    term = graph.term(lambda t: tame(t) and t.size < 20 and t.category is not Category.BOOL)
    exponent = graph.rng.choice((2, 3))
    error = exponent * term.size ** (exponent - 1) * term.error * 1.5
    graph.record("pow", term, exponent, error=error, exact=False)


def clamped(graph: Graph) -> None:
    term = graph.term(lambda t: not t.wild and t.category is not Category.BOOL)
    low, high = (-2, 3) if is_int(term) else (-1.5, 2.5)
    graph.record("clamp", term, low, high, error=term.error)


def divided(graph: Graph) -> None:
    """What is left of a division: jumps, so of exact terms."""
    a = graph.term(lambda t: is_exact(t) and t.size < 1024)
    b = partner(graph, a, lambda t: is_exact(t) and t.low >= 0.2 and t.size < 1024)
    if Category.BOOL in (a.category, b.category):
        raise Unfit
    graph.record(graph.rng.choice(("fmod", "mod", "remainder")), a, b)


def shifted(graph: Graph) -> None:
    """Bits moved; amounts as they come: too many, and negative ones."""
    a = graph.term(lambda t: is_int(t) and t.size <= LARGEST)
    b = partner(graph, a, lambda t: is_int(t) and t.size <= LARGEST)
    names = ("bitwise_left_shift", "bitwise_right_shift", "logical_right_shift")
    graph.record(graph.rng.choice(names), a, b)


def common_divisor(graph: Graph) -> None:
    a = graph.term(is_int)
    graph.record("gcd", a, partner(graph, a, is_int))


def between(graph: Graph) -> None:
    """Three operands and more."""
    a = graph.term(lambda t: tame(t) and t.size < 100)
    b = partner(graph, a, lambda t: tame(t) and t.size < 100)
    c = partner(graph, b, lambda t: tame(t) and t.size < 9)
    shape = torch.broadcast_shapes(a.shape, b.shape)
    try:
        if torch.broadcast_shapes(shape, c.shape).numel() > LIMIT:
            raise Unfit
    except RuntimeError:
        raise Unfit from None
    error = a.error + 10 * (b.error + a.error) + 200 * c.error
    if graph.chance(0.5):
        graph.record("lerp", a, b, c, error=error, exact=False)
        return
    alpha = graph.scalar(D.Double, 0.5) if graph.chance(0.5) else graph.scalar(D.Int, 2)
    error = a.error + 2 * (b.error * c.size + c.error * b.size + b.error * c.error)
    graph.record("addcmul", a, b, c, alpha, error=error, exact=False)


def thresholded(graph: Graph) -> None:
    term = graph.term(lambda t: is_exact(t) and t.category is not Category.BOOL)
    limit, value = (1, -2) if is_int(term) else (0.5, -1.5)
    kind = D.Int if is_int(term) else D.Double
    if term.dtype is D.UInt64:
        raise Unfit
    graph.record("threshold", term, graph.scalar(kind, limit), graph.scalar(kind, value))


def next_number(graph: Graph) -> None:
    a = graph.term(lambda t: is_exact(t) and t.dtype in (D.Float, D.Double))
    b = partner(graph, a, lambda t: is_exact(t) and t.dtype is a.dtype)
    graph.record("nextafter", a, b, error=max(a.size, 1e-30) * 1e-6)


def angle(graph: Graph) -> None:
    a = graph.term(lambda t: tame(t) and t.low >= 0.2)
    b = partner(graph, a, lambda t: tame(t) and t.low >= 0.2)
    name = graph.rng.choice(("atan2", "hypot"))
    graph.record(name, a, b, error=3 * (a.error + b.error), exact=False)


def logic(graph: Graph) -> None:
    a = graph.term(lambda t: t.error == 0)
    b = partner(graph, a, lambda t: t.error == 0)
    graph.record(graph.rng.choice(("logical_and", "logical_or")), a, b)


def chosen_numbers(graph: Graph) -> None:
    """A condition between a term and a number, or two numbers."""
    condition = graph.term(lambda t: t.dtype is D.Bool)
    dtype, value = graph.rng.choice(((D.Double, 0.5), (D.Float, -2.0), (D.Int, 3), (D.Bool, True)))
    first = graph.scalar(dtype, value)
    if graph.chance(0.3):
        graph.record("where", condition, first, graph.scalar(dtype, value))
        return
    term = partner(graph, condition, lambda t: t.dtype is not D.UInt64)
    pair = (first, term) if graph.chance(0.5) else (term, first)
    graph.record("where", condition, *pair, error=term.error)
