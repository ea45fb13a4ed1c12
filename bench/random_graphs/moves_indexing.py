"""Steps along one dim: scans, elements picked, placed and added up at indices, sorted rows."""

from __future__ import annotations

import math
from collections.abc import Callable

from .graph import Axis, D, Dims, Graph, Term, has_dims

PICKED = 8
"""Elements of a row that are picked or placed."""
_SORTED = 4096
"""Elements of a row that is sorted, at most."""


def _has_rows(term: Term) -> bool:
    return len(term.dims) > 1


def _place(graph: Graph, term: Term) -> int:
    """Mostly the last dim."""
    return graph.rng.randrange(len(term.dims)) if graph.chance(0.4) else len(term.dims) - 1


def _replaced(dims: Dims, place: int, axis: Axis) -> Dims:
    return (*dims[:place], (axis,), *dims[place + 1 :])


def cumulative(graph: Graph) -> None:
    """A scan along a dim."""
    term = graph.term(has_dims)
    place, name = _place(graph, term), graph.rng.choice(("cumsum", "cumsum", "cummax", "cumprod"))
    x = graph.wide(term)
    if name == "cumsum":
        x = graph.op("mul", x, 1.0 / math.sqrt(max(term.shape[place], 1)))
    elif name == "cumprod":
        tiny = graph.op("mul", graph.op("tanh", x), 0.01 / max(term.shape[place], 1))
        x = graph.op("add", tiny, 1.0)
    graph.add(graph.op(name, x, place), term.dims, 3 * term.size)


def reordered(graph: Graph) -> None:
    """Each element from another position along a dim: ``gather``."""
    term = graph.term(has_dims)
    place = _place(graph, term)
    at = graph.tensor(term.dims, D.Int).handle
    graph.add(graph.op("gather", graph.wide(term), at, place), term.dims, term.size)


def placed(graph: Graph) -> None:
    """A number at some positions of each row: ``scatter``."""
    term = graph.term(has_dims)
    place = _place(graph, term)
    picked = Axis("placed", min(PICKED, term.shape[place]))
    at = graph.tensor(_replaced(term.dims, place, picked), D.Int).handle
    zero = graph.fd.define_scalar(0.0, dtype=D.Float)
    graph.add(graph.op("scatter", graph.wide(term), at, zero, dim=place), term.dims, term.size)


def added_up(graph: Graph) -> None:
    """Rows added up at indices: the gradient of an embedding, messages of a graph's edges."""
    term = graph.term(_has_rows)
    rows, width = math.prod(term.shape[:-1]), term.shape[-1]
    flat: Dims = (tuple(axis for dim in term.dims[:-1] for axis in dim), term.dims[-1])
    values = graph.reshaped(graph.stored(graph.wide(term)), term.dims, flat)
    index = graph.tensor((flat[0],), D.Int).handle
    count = Axis("rows added up to", max(rows // graph.rng.choice((1, 4, 16)), 1))
    zeros = graph.op("full", [count.extent, width], 0.0, graph.dtype)
    total = graph.op("index_put_accumulate", zeros, index, values)
    graph.add(total, ((count,), term.dims[-1]), 4 * term.size)


def looked_up(graph: Graph) -> None:
    """An embedding's rows, added to a term."""
    term = graph.term(_has_rows)
    table = graph.tensor(((Axis("rows of a table", 3000),), term.dims[-1]))
    index = graph.tensor(term.dims[:-1], D.Int)
    found = graph.wide(Term(graph.op("embedding_fwd", index.handle, table.handle), term.dims))
    graph.add(graph.op("add", graph.wide(term), found), term.dims, term.size + 1)


def one_hot(graph: Graph) -> None:
    """A row's elements but the one that its label names."""
    term = graph.term(_has_rows)
    last = len(term.dims) - 1
    labels = graph.spread(graph.tensor(term.dims[:-1], D.Int).handle, term.dims, range(last))
    columns = graph.op("iota", term.shape[-1], 0, 1, dtype=D.Int)
    own = graph.op("eq", graph.spread(columns, term.dims, [last]), labels)
    graph.add(graph.op("where", own, 0.0, graph.wide(term)), term.dims, term.size)


def selected(graph: Graph) -> None:
    """One slice of a dim, as of the last token."""
    term = graph.term(_has_rows)
    place = graph.rng.randrange(len(term.dims))
    left = tuple(dim for at, dim in enumerate(term.dims) if at != place)
    found = graph.op("select", graph.wide(term), term.shape[place] - 1, place)
    graph.add(found, left, term.size)


def largest(graph: Graph) -> None:
    """The largest elements of each row, and what is where they are: equal ones have no order."""
    term = graph.term(has_dims)
    last, count = len(term.dims) - 1, min(PICKED, term.shape[-1])
    x = graph.wide(term)
    values, places = graph.op("topk", x, count, last, True, True)
    dims = _replaced(term.dims, last, Axis("largest", count))
    graph.asked.append(Term(graph.op("take_along_axis", x, places, dim=last), dims))
    graph.add(values, dims, term.size)


def in_order(graph: Graph) -> None:
    """The elements of each row in their order."""
    term = graph.term(lambda t: len(t.dims) > 0 and t.shape[-1] <= _SORTED)
    last, x = len(term.dims) - 1, graph.wide(term)
    order = graph.op("argsort", x, last)
    graph.add(graph.op("take_along_axis", x, order, dim=last), term.dims, term.size)


MOVES: dict[Callable[[Graph], None], float] = {
    cumulative: 3,
    reordered: 2,
    placed: 1.5,
    added_up: 2,
    looked_up: 1,
    one_hot: 1,
    selected: 1,
    largest: 0.7,
    in_order: 0.5,
}
"""Each step, and how often it is taken beside the others."""
