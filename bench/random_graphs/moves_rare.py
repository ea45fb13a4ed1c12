"""Steps of ops that models rarely have: functions, bits, double precision, narrow floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .graph import D, Graph, Term
from .moves_pointwise import some_axes

_FUNCTIONS = {
    "acos": "inside",
    "acosh": "above",
    "asin": "inside",
    "asinh": "all",
    "atan": "all",
    "atanh": "inside",
    "ceil": "all",
    "cosh": "inside",
    "erfc": "all",
    "erfinv": "inside",
    "exp2": "inside",
    "expm1": "inside",
    "floor": "all",
    "frac": "all",
    "lgamma": "above",
    "log10": "above",
    "log2": "above",
    "reciprocal": "above",
    "round": "all",
    "rsqrt": "above",
    "sign": "all",
    "sinh": "inside",
    "tan": "inside",
    "trunc": "all",
}
"""Functions, and where they are defined: everywhere, in (-1, 1) or from 1 on."""
_PAIRS = {
    "atan2": ("all", "all"),
    "fmod": ("all", "above"),
    "hypot": ("all", "all"),
    "minimum": ("all", "all"),
    "pow": ("above", "inside"),
    "remainder": ("all", "above"),
    "truediv": ("all", "above"),
}
_TESTS = ("isfinite", "isinf", "isnan", "isneginf", "isposinf", "signbit")
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_LOGIC = ("logical_and", "logical_or", "bitwise_xor")


def _within(graph: Graph, x: Any, domain: str) -> Any:
    """A handle whose elements lie where a function is defined."""
    if domain == "inside":
        return graph.op("mul", graph.op("tanh", x), 0.9)
    return graph.op("add", graph.op("abs", x), 1.0) if domain == "above" else x


def function(graph: Graph) -> None:
    """One of the functions that activations and norms do not have."""
    term, name = graph.term(), graph.rng.choice(list(_FUNCTIONS))
    x = _within(graph, graph.wide(term), _FUNCTIONS[name])
    graph.add(graph.op(name, x), term.dims, max(term.size, 3.0))


def pair(graph: Graph) -> None:
    """Such a function of a term and a new input."""
    term, name = graph.term(), graph.rng.choice(list(_PAIRS))
    first, second = graph.wide(term), graph.wide(graph.tensor(term.dims))
    low, high = _PAIRS[name]
    out = graph.op(name, _within(graph, first, low), _within(graph, second, high))
    graph.add(out, term.dims, term.size + 3)


def tested(graph: Graph) -> None:
    """A term where a test or two comparisons hold, else another."""
    term = graph.term()
    x, other = graph.wide(term), graph.wide(graph.tensor(term.dims))
    if graph.chance(0.4):
        holds = graph.op("logical_not", graph.op(graph.rng.choice(_TESTS), x))
    else:
        first = graph.op(graph.rng.choice(_COMPARISONS), x, other)
        second = graph.op(graph.rng.choice(_COMPARISONS), x, 0.25)
        holds = graph.op(graph.rng.choice(_LOGIC), first, second)
    graph.add(graph.op("where", holds, x, other), term.dims, term.size + 1)


def limited(graph: Graph) -> None:
    """A clamp or a threshold."""
    term = graph.term()
    if graph.chance(0.5):
        graph.add(graph.op("clamp", graph.wide(term), -1.0, 1.0), term.dims, 1.0)
    else:
        graph.add(graph.op("threshold", graph.wide(term), 0.1, 0.0), term.dims, term.size)


def integers(graph: Graph) -> None:
    """Integers: hashed, masked and compared; they scale a term or choose its elements."""
    term = graph.term(lambda t: len(t.dims) > 0)
    dtype = graph.rng.choice((D.Int, D.Int32))
    if graph.chance(0.5):
        codes = graph.tensor(term.dims, dtype).handle
    else:
        codes = graph.weight(term, some_axes(graph, term), dtype)
    codes = graph.op("add", graph.op("mul", codes, 2654435), 12345)
    codes = graph.op("bitwise_xor", codes, graph.op("bitwise_right_shift", codes, 7))
    codes = graph.op("remainder", codes, 10)
    x = graph.wide(term)
    if graph.chance(0.5):
        graph.add(graph.op("where", graph.op("lt", codes, 4), x, 0.0), term.dims, term.size)
    else:
        scale = graph.op("mul", graph.op("cast", codes, dtype=D.Float), 0.1)
        graph.add(graph.op("mul", x, scale), term.dims, term.size)


def counted(graph: Graph) -> None:
    """How many elements of a row are positive: a sum of integers."""
    term = graph.term(lambda t: len(t.dims) > 0)
    place = graph.rng.randrange(len(term.dims))
    positive = graph.op("cast", graph.op("gt", graph.wide(term), 0.0), dtype=D.Int)
    left = tuple(dim for at, dim in enumerate(term.dims) if at != place)
    graph.asked.append(Term(graph.op("sum", positive, [place]), left))


def double(graph: Graph) -> None:
    """A term and a new input in double precision, and a sum of their product."""
    term = graph.term(lambda t: len(t.dims) > 0)
    x = graph.op("cast", graph.wide(term), dtype=D.Double)
    other = graph.tensor(term.dims, D.Double).handle
    product = graph.op("mul", x, other)
    total = graph.op("sum", product, [len(term.dims) - 1], keepdim=True)
    scaled = graph.op("sub", product, graph.op("mul", total, 1.0 / max(term.shape[-1], 1)))
    graph.add(graph.op("cast", scaled, dtype=D.Float), term.dims, 2 * term.size)


def quantized(graph: Graph) -> None:
    """Rows as 8-bit floats with a scale for each, both outputs."""
    term = graph.term(lambda t: len(t.dims) > 0)
    last = len(term.dims) - 1
    x = graph.wide(term)
    top = graph.op("max", graph.op("abs", x), [last], keepdim=True)
    scale = graph.op("mul", graph.op("maximum", top, 1e-4), 1.0 / 448.0)
    held = graph.op("clamp", graph.op("div", x, scale), -448.0, 448.0)
    graph.asked.append(Term(graph.op("cast", held, dtype=D.Float8_e4m3fn), term.dims))
    graph.asked.append(Term(graph.op("squeeze", scale, [last]), term.dims[:-1]))


def dequantized(graph: Graph) -> None:
    """A new input of 8-bit floats, scaled by rows."""
    term = graph.term(lambda t: len(t.dims) > 1)
    codes = graph.op("cast", graph.tensor(term.dims, D.Float8_e4m3fn).handle, dtype=D.Float)
    scale = graph.weight(term, [axis for dim in term.dims[:-1] for axis in dim], D.Float)
    found = graph.op("mul", codes, scale)
    graph.add(graph.op("add", graph.wide(term), found), term.dims, term.size + 1)


def noisy(graph: Graph) -> None:
    """Normally distributed noise added."""
    term = graph.term(lambda t: len(t.dims) > 0)
    seed, offset = graph.integer(99), graph.integer(4)
    options: dict[str, Any] = {"dtype": D.Float, "rng_seed": seed, "rng_offset": offset}
    noise = graph.op("normal", 0.0, 0.1, term.shape, **options)
    graph.add(graph.op("add", graph.wide(term), noise), term.dims, term.size + 1)


def triangle(graph: Graph) -> None:
    """The upper triangle of the last two dims."""
    term = graph.term(lambda t: len(t.dims) > 1)
    diagonal = graph.rng.choice((0, 1, -1))
    graph.add(graph.op("triu", graph.wide(term), diagonal), term.dims, term.size)


def product(graph: Graph) -> None:
    """The product of a dim's elements, which are near one."""
    term = graph.term(lambda t: len(t.dims) > 0)
    place = graph.rng.randrange(len(term.dims))
    tiny = graph.op("mul", graph.op("tanh", graph.wide(term)), 0.01 / max(term.shape[place], 1))
    found = graph.op("prod", graph.op("add", tiny, 1.0), [place])
    left = tuple(dim for at, dim in enumerate(term.dims) if at != place)
    graph.add(found, left)


MOVES: dict[Callable[[Graph], None], float] = {
    function: 6,
    pair: 3,
    tested: 2,
    limited: 2,
    integers: 3,
    counted: 1,
    double: 1,
    quantized: 2,
    dequantized: 1,
    noisy: 1,
    triangle: 1,
    product: 1,
}
"""Each step, and how often it is taken beside the others."""
