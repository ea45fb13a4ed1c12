"""Elementwise steps: activations and their gradients, biases, masks, residuals, dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .graph import D, Graph, Term, Unfit

_TAME = ("tanh", "sigmoid", "sin", "cos", "erf")
_KEEPING = ("relu", "abs", "neg", "silu")


def unary(graph: Graph) -> None:
    """One function of one term."""
    term = graph.term()
    x, way = graph.wide(term), graph.rng.randrange(10)
    if way < 3:
        graph.add(graph.op(graph.rng.choice(_TAME), x), term.dims)
    elif way < 6:
        graph.add(graph.op(graph.rng.choice(_KEEPING), x), term.dims, term.size)
    elif way == 6:
        graph.add(graph.op("mul", x, x), term.dims, term.size**2)
    elif way == 7:
        falling = graph.op("neg", graph.op("abs", x))
        graph.add(graph.op("exp", falling), term.dims)
    elif way == 8:
        name = graph.rng.choice(("log1p", "sqrt"))
        graph.add(graph.op(name, graph.op("abs", x)), term.dims)
    else:
        name, number = graph.rng.choice((("mul", 0.125), ("add", 0.5), ("sub", 1.0)))
        graph.add(graph.op(name, x, number), term.dims, term.size + 0.5)


def gelu(graph: Graph) -> None:
    """A gelu, of erf or of tanh."""
    term = graph.term()
    graph.add(graph.op("mul", graph.wide(term), _cdf(graph, graph.wide(term))), term.dims, 1.0)


def _cdf(graph: Graph, x: Any) -> Any:
    if graph.chance(0.5):
        inner = graph.op("erf", graph.op("mul", x, 0.7071067811865476))
    else:
        cube = graph.op("mul", graph.op("mul", x, x), x)
        inner = graph.op("add", x, graph.op("mul", cube, 0.044715))
        inner = graph.op("tanh", graph.op("mul", inner, 0.7978845608028654))
    return graph.op("mul", graph.op("add", inner, 1.0), 0.5)


def activation_backward(graph: Graph) -> None:
    """The gradient of relu, silu, tanh or gelu: of a term that is the gradient, or the input."""
    term = graph.term()
    given, other = graph.wide(term), graph.wide(graph.tensor(term.dims))
    grad, x = (given, other) if graph.chance(0.7) else (other, given)
    way = graph.rng.randrange(4)
    if way == 0:
        out = graph.op("where", graph.op("gt", x, 0.0), grad, 0.0)
    elif way == 1:
        s = graph.op("sigmoid", x)
        slope = graph.op("add", graph.op("mul", x, graph.op("sub", 1.0, s)), 1.0)
        out = graph.op("mul", grad, graph.op("mul", s, slope))
    elif way == 2:
        y = graph.op("tanh", x)
        out = graph.op("mul", grad, graph.op("sub", 1.0, graph.op("mul", y, y)))
    else:
        density = graph.op("exp", graph.op("mul", graph.op("mul", x, x), -0.5))
        density = graph.op("mul", density, 0.3989422804014327)
        slope = graph.op("add", _cdf(graph, x), graph.op("mul", x, density))
        out = graph.op("mul", grad, slope)
    graph.add(out, term.dims, term.size)


def combined(graph: Graph) -> None:
    """Two terms; one may have some of the other's axes, in another order."""
    large = graph.term(lambda t: len(t.dims) > 0)
    small = graph.term(lambda t: t is not large and set(t.axes) <= set(large.axes))
    if any(0 < len(set(d) & set(small.axes)) < len(d) for d in large.dims):
        large = graph.split(large)
    join(graph, large, graph.onto(small, large.dims), small.size)


def join(graph: Graph, term: Term, other: Any, size: float) -> None:
    """A term and a handle of its shape by an arithmetic op."""
    name = graph.rng.choice(("add", "add", "mul", "mul", "sub", "maximum"))
    total = term.size * size if name == "mul" else term.size + size
    graph.add(graph.op(name, graph.wide(term), other), term.dims, total)


def residual(graph: Graph) -> None:
    """A term and a new input of its shape, which may lie otherwise."""
    term = graph.term()
    if term.dims and graph.chance(0.15):
        order = graph.rng.sample(range(len(term.dims)), len(term.dims))
        other = graph.tensor(tuple(term.dims[place] for place in order))
        join(graph, term, graph.onto(other, term.dims), 1.0)
    else:
        join(graph, term, graph.wide(graph.tensor(term.dims)), 1.0)


def some_axes(graph: Graph, term: Term) -> list[Any]:
    """The axes of one or more dims of a term: mostly the last, or all but some."""
    rank = len(term.dims)
    if rank == 0:
        raise Unfit
    way = graph.rng.randrange(10)
    if way < 4:
        places = [rank - 1]
    elif way < 6:
        places = [graph.rng.randrange(rank)]
    elif way < 8:
        places = list(range(graph.rng.randint(1, rank)))
    else:
        places = graph.rng.sample(range(rank), graph.rng.randint(1, rank))
    return [axis for place in places for axis in term.dims[place]]


def biased(graph: Graph) -> None:
    """A scale, a bias, or both, along some dims."""
    term = graph.term(lambda t: len(t.dims) > 0)
    axes = some_axes(graph, term)
    if graph.chance(0.35):
        scaled = graph.op("mul", graph.wide(term), graph.weight(term, axes))
        shifted = graph.op("add", scaled, graph.weight(term, axes))
        graph.add(shifted, term.dims, term.size + 1)
    else:
        join(graph, term, graph.weight(term, axes), 1.0)


def modulated(graph: Graph) -> None:
    """``x * (1 + scale) + shift``, both of the first and the last dim."""
    term = graph.term(lambda t: len(t.dims) >= 3)
    axes = [*term.dims[0], *term.dims[-1]]
    scale = graph.op("add", graph.weight(term, axes), 1.0)
    scaled = graph.op("mul", graph.wide(term), scale)
    graph.add(graph.op("add", scaled, graph.weight(term, axes)), term.dims, 2 * term.size)


def masked(graph: Graph) -> None:
    """A term where a mask is set, elsewhere a number; or behind a comparison."""
    term = graph.term(lambda t: len(t.dims) > 0)
    x, number = graph.wide(term), graph.rng.choice((0.0, -1.0, 0.5))
    way = graph.rng.randrange(4)
    if way < 2:
        mask = graph.weight(term, some_axes(graph, term), D.Bool)
        graph.add(graph.op("where", mask, x, number), term.dims, term.size)
    elif way == 2:
        positive = graph.op("gt", x, 0.0)
        graph.add(graph.op("where", positive, x, graph.op("mul", x, 0.1)), term.dims, term.size)
    else:
        mask = graph.weight(term, some_axes(graph, term), D.Bool)
        other = graph.wide(graph.tensor(term.dims))
        graph.add(graph.op("where", mask, x, other), term.dims, term.size)


def causal(graph: Graph) -> None:
    """A mask of the places along the last two dims."""
    term = graph.term(lambda t: len(t.dims) >= 2)
    rows, columns = term.shape[-2:]
    row = graph.op("broadcast", graph.op("iota", rows, 0, 1, dtype=D.Int), [False, True])
    column = graph.op("broadcast", graph.op("iota", columns, 0, 1, dtype=D.Int), [True, False])
    mask = graph.op(graph.rng.choice(("ge", "gt", "le")), row, column)
    rank = len(term.dims)
    if graph.expands:
        mask = graph.op("broadcast_in_dim", mask, term.shape, [rank - 2, rank - 1])
    elif rank > 2:
        mask = graph.op("broadcast", mask, [True] * (rank - 2) + [False, False])
    graph.add(graph.op("where", mask, graph.wide(term), 0.0), term.dims, term.size)


def gated(graph: Graph) -> None:
    """An activation of one times the other: a new input, or another term."""
    term = graph.term()
    gate = graph.op(graph.rng.choice(("silu", "sigmoid", "relu")), graph.wide(term))
    graph.add(graph.op("mul", gate, graph.wide(graph.tensor(term.dims))), term.dims, term.size)


def dropout(graph: Graph) -> None:
    """Elements dropped at random, the others scaled up."""
    term = graph.term(lambda t: len(t.dims) > 0)
    seed, offset = graph.integer(1234), graph.integer(8)
    options: dict[str, Any] = {"dtype": D.Float, "rng_seed": seed, "rng_offset": offset}
    draws = graph.op("uniform", 0.0, 1.0, term.shape, **options)
    kept = graph.op("cast", graph.op("lt", draws, 0.9), dtype=D.Float)
    out = graph.op("mul", graph.op("mul", graph.wide(term), kept), 1.0 / 0.9)
    graph.add(out, term.dims, term.size)


MOVES: dict[Callable[[Graph], None], float] = {
    unary: 14,
    gelu: 3,
    activation_backward: 5,
    combined: 12,
    residual: 8,
    biased: 9,
    modulated: 1.5,
    masked: 5,
    causal: 1.5,
    gated: 4,
    dropout: 1,
}
"""Each step, and how often it is taken beside the others."""
