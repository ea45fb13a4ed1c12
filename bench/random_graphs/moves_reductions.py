"""Steps that reduce: norms, softmaxes, their gradients, losses, sums for biases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .graph import D, Dims, Graph, Term, has_dims


def some_dims(graph: Graph, term: Term) -> list[int]:
    """Dims to reduce: the last, the first ones, all but one, the middle, the last ones, several."""
    rank = len(term.dims)
    way = graph.rng.randrange(20)
    if way < 9 or rank == 1:
        return [rank - 1]
    if way < 13:
        return list(range(rank - 1))
    if way < 15:
        kept = graph.rng.randrange(rank)
        return [place for place in range(rank) if place != kept]
    if way < 17:
        return [graph.rng.randrange(rank)]
    if way < 19:
        return list(range(graph.rng.randint(1, rank - 1), rank))
    return sorted(graph.rng.sample(range(rank), graph.rng.randint(1, rank)))


def _left(term: Term, dims: Sequence[int]) -> Dims:
    return tuple(dim for place, dim in enumerate(term.dims) if place not in dims)


def _count(term: Term, dims: Sequence[int]) -> int:
    return math.prod(term.shape[place] for place in dims)


def _back(graph: Graph, term: Term, handle: Any, dims: Sequence[int]) -> Any:
    """What is left of a reduction, broadcast to the term that it came from."""
    return graph.spread(
        handle, term.dims, [place for place in range(len(term.dims)) if place not in dims]
    )


def _mean(graph: Graph, term: Term, handle: Any, dims: Sequence[int]) -> Any:
    total = graph.op("sum", handle, list(dims))
    return graph.op("mul", total, 1.0 / _count(term, dims))


def reduced(graph: Graph) -> None:
    """A mean, a maximum, a variance: a smaller term."""
    term = graph.term(has_dims)
    dims, x = some_dims(graph, term), graph.wide(term)
    name = graph.rng.choice(("mean", "mean", "mean", "max", "min", "var"))
    if name == "mean":
        found = _mean(graph, term, x, dims)
    elif name == "var":
        found = graph.op("var", x, dims, correction=0)
    else:
        found = graph.op(name, x, dims)
    graph.add(found, _left(term, dims), term.size)


def used_again(graph: Graph) -> None:
    """A term together with its own mean or maximum."""
    term = graph.term(has_dims)
    dims, x = some_dims(graph, term), graph.wide(term)
    if graph.chance(0.3):
        found = graph.op("max", graph.op("abs", x), dims)
        divisor = graph.op("add", _back(graph, term, found, dims), 0.01)
        graph.add(graph.op("div", x, divisor), term.dims)
        return
    found = _mean(graph, term, x, dims)
    name = graph.rng.choice(("sub", "sub", "mul", "add"))
    graph.add(graph.op(name, x, _back(graph, term, found, dims)), term.dims, 2 * term.size)


def normed(graph: Graph) -> None:
    """Layer norm, RMS norm, batch or instance norm, with or without weights; statistics kept."""
    term = graph.term(has_dims)
    dims, x = some_dims(graph, term), graph.wide(term)
    if graph.chance(0.5):
        var, mean = graph.op("var_mean", x, dims, correction=0)
        x = graph.op("sub", x, _back(graph, term, mean, dims))
    else:
        var = _mean(graph, term, graph.op("mul", x, x), dims)
    scale = graph.op("rsqrt", graph.op("add", var, 1e-5))
    if graph.chance(0.3):
        graph.asked.append(Term(scale, _left(term, dims)))
    out = graph.op("mul", x, _back(graph, term, scale, dims))
    if graph.chance(0.7):
        last = list(term.dims[-1]) if len(term.dims) - 1 in dims else []
        axes = last or [axis for dim in _left(term, dims)[-1:] for axis in dim]
        out = graph.op("mul", out, graph.weight(term, axes))
        if graph.chance(0.6):
            out = graph.op("add", out, graph.weight(term, axes))
    graph.add(out, term.dims, 2.0)


def softmax(graph: Graph) -> None:
    """Exponentials over their sum; of scaled scores, behind a mask now and then."""
    term = graph.term(has_dims)
    dims = [len(term.dims) - 1]
    if graph.chance(0.15):
        dims = [graph.rng.randrange(len(term.dims))]
    x = graph.wide(term)
    if graph.chance(0.3):
        x = graph.op("mul", x, 0.125)
    if graph.chance(0.25):
        x = graph.op("add", x, graph.weight(term, [a for d in term.dims[-2:] for a in d]))
    top = graph.op("max", x, dims)
    exps = graph.op("exp", graph.op("sub", x, _back(graph, term, top, dims)))
    total = graph.op("sum", exps, dims)
    if graph.chance(0.5):
        out = graph.op("div", exps, _back(graph, term, total, dims))
    else:
        out = graph.op("mul", exps, _back(graph, term, graph.op("reciprocal", total), dims))
    graph.add(out, term.dims)


def softmax_backward(graph: Graph) -> None:
    """``p * (g - sum(p * g))``."""
    term = graph.term(has_dims)
    dims = [len(term.dims) - 1]
    grad, p = graph.wide(term), graph.wide(graph.tensor(term.dims))
    product = graph.op("mul", grad, p)
    total = _mean(graph, term, product, dims)
    out = graph.op("mul", p, graph.op("sub", grad, _back(graph, term, total, dims)))
    graph.add(out, term.dims, 2 * term.size)


def norm_backward(graph: Graph) -> None:
    """The gradients of a norm's input, weight and bias, from saved statistics."""
    term = graph.term(lambda t: len(t.dims) >= 2)
    dims = [len(term.dims) - 1]
    if len(term.dims) >= 3 and graph.chance(0.15):
        dims = [0, *range(2, len(term.dims))]  # a batch norm's
    rest = [axis for dim in _left(term, dims) for axis in dim]
    grad, x = graph.wide(term), graph.wide(graph.tensor(term.dims))
    if graph.chance(0.5):
        x = graph.op("sub", x, graph.weight(term, rest, D.Float))
    scale = graph.weight(term, rest, D.Float)
    normal = graph.op("mul", x, scale)
    weighted = grad
    if graph.chance(0.8):
        weighted = graph.op("mul", grad, graph.weight(term, term.dims[-1]))
    inner = _back(graph, term, _mean(graph, term, graph.op("mul", weighted, normal), dims), dims)
    out = graph.op("sub", weighted, graph.op("mul", normal, inner))
    if graph.chance(0.5):
        out = graph.op("sub", out, _back(graph, term, _mean(graph, term, weighted, dims), dims))
    graph.add(graph.op("mul", out, scale), term.dims, 3 * term.size)
    if graph.chance(0.7):
        kept = tuple(d for d in dims if d != len(term.dims) - 1) if len(dims) > 1 else ()
        over = list(kept) or list(range(len(term.dims) - 1))
        left = _left(term, over)
        graph.asked.append(Term(_mean(graph, term, graph.op("mul", grad, normal), over), left))
        if graph.chance(0.6):
            graph.asked.append(Term(_mean(graph, term, grad, over), left))


def bias_gradient(graph: Graph) -> None:
    """A sum over all dims but one that is an output, of a term that is used on."""
    term = graph.term(lambda t: len(t.dims) >= 2)
    kept = len(term.dims) - 1 if graph.chance(0.75) else graph.rng.randrange(len(term.dims))
    dims = [place for place in range(len(term.dims)) if place != kept]
    total = _mean(graph, term, graph.wide(term), dims)
    graph.asked.append(Term(total, _left(term, dims)))


def loss(graph: Graph) -> None:
    """Cross entropy over the last dim: one number a row, or one for all."""
    term = graph.term(lambda t: len(t.dims) >= 2)
    last, x = len(term.dims) - 1, graph.wide(term)
    labels = graph.tensor(term.dims[:-1], D.Int)
    at = graph.op("broadcast", labels.handle, [False] * last + [True])
    top = graph.op("max", x, [last])
    exps = graph.op("exp", graph.op("sub", x, _back(graph, term, top, [last])))
    logs = graph.op("add", graph.op("log", graph.op("sum", exps, [last])), top)
    own = graph.op("squeeze", graph.op("take_along_axis", x, at, dim=last), [last])
    rows = graph.op("sub", logs, own)
    if graph.chance(0.5):
        over = list(range(last))
        rows = _mean(graph, term, rows, over)
        graph.asked.append(Term(rows, ()))
    else:
        graph.add(rows, term.dims[:-1], 10.0)


def distance(graph: Graph) -> None:
    """The mean square of the difference from a new input, over everything or a row."""
    term = graph.term(has_dims)
    apart = graph.op("sub", graph.wide(term), graph.wide(graph.tensor(term.dims)))
    dims = list(range(len(term.dims)))
    if graph.chance(0.4):
        dims = dims[-1:]
    found = _mean(graph, term, graph.op("mul", apart, apart), dims)
    graph.asked.append(Term(found, _left(term, dims)))


def clipped(graph: Graph) -> None:
    """A term scaled by its norm over everything."""
    term = graph.term(has_dims)
    dims, x = list(range(len(term.dims))), graph.wide(term)
    total = _mean(graph, term, graph.op("mul", x, x), dims)
    scale = graph.op("rsqrt", graph.op("add", total, 1e-6))
    graph.add(graph.op("mul", x, scale), term.dims, 2.0)


MOVES: dict[Callable[[Graph], None], float] = {
    reduced: 3,
    used_again: 3,
    normed: 7,
    softmax: 4,
    softmax_backward: 2.5,
    norm_backward: 4,
    bias_gradient: 5,
    loss: 1.5,
    distance: 1,
    clipped: 0.7,
}
"""Each step, and how often it is taken beside the others."""
