"""Moves that read and write at indices known at run time."""

from __future__ import annotations

import math

import torch

from tests.e2e.graphs.fits import is_exact, is_int
from tests.e2e.graphs.graph import LIMIT, D, Graph, Number, Term, Unfit
from tritonfuser.dtypes import Category

NARROW = (D.Float8_e4m3fn, D.Float8_e5m2, D.UInt64)
"""What torch does not sort."""


def positions(graph: Graph, shape: list[int], term: Term, place: int) -> Term:
    """Indices into a dim: an input, or computed from a whole-number term of that shape."""
    below = term.shape[place]
    computed = [t for t in graph.terms if is_int(t) and t.dtype is not D.UInt64]
    computed = [t for t in computed if list(t.shape) == shape]
    if computed and graph.chance(0.5):
        return graph.record("remainder", graph.rng.choice(computed), graph.extent(below))
    dtype = graph.rng.choice((D.Int, D.Int32))
    if graph.dynamic:
        drawn = graph.add_input(graph.numbers(shape, dtype))
        return graph.record("remainder", drawn, graph.extent(below))
    return graph.add_input(graph.numbers(shape, dtype) % below)


def wide(term: Term) -> bool:
    return term.rank > 0 and 0 not in term.shape


def index_selected(graph: Graph) -> None:
    term = graph.thing(wide)
    place = graph.rng.randrange(term.rank)
    shape = graph.rng.choice(([], [1], [3], [8]))
    if term.ref.numel() // term.shape[place] * math.prod(shape) > LIMIT:
        raise Unfit
    index = positions(graph, shape, term, place)
    graph.record("index_select", term, index, place, error=term.error)


def gathered(graph: Graph) -> None:
    term = graph.thing(wide)
    place = graph.rng.randrange(term.rank)
    shape = [n if graph.chance(0.7) else graph.rng.randint(1, n) for n in term.shape]
    shape[place] = graph.rng.choice((1, 3, 8))
    if math.prod(shape) > LIMIT:
        raise Unfit
    index = positions(graph, shape, term, place)
    graph.record("gather", term, index, place, error=term.error)


def taken(graph: Graph) -> None:
    term = graph.thing(wide)
    place = graph.rng.randrange(term.rank)
    shape = [1 if graph.chance(0.3) else n for n in term.shape]
    shape[place] = graph.rng.choice((1, 3, 8))
    whole = [max(a, b) for a, b in zip(term.shape, shape, strict=True)]
    if math.prod(whole) > LIMIT:
        raise Unfit
    index = positions(graph, shape, term, place)
    graph.record("take_along_axis", term, index, place, error=term.error)


def selected(graph: Graph) -> None:
    term = graph.thing(wide)
    place = graph.rng.randrange(term.rank)
    index = graph.scalar(D.Int, graph.rng.randrange(term.shape[place]))
    graph.record("select", term, index, place, error=term.error)


def permutations(graph: Graph, shape: list[int], below: int, place: int) -> Term:
    """Indices of which no two along a dim are equal."""
    lines = math.prod(shape) // max(shape[place], 1)
    drawn = [graph.rng.sample(range(below), shape[place]) for _ in range(lines)]
    rest = [n for d, n in enumerate(shape) if d != place]
    index = torch.tensor(drawn, dtype=torch.int64).view(*rest, shape[place]).movedim(-1, place)
    return graph.add_input(index.contiguous().to(graph.rng.choice((torch.int32, torch.int64))))


def scattered(graph: Graph) -> None:
    """Elements put into a term, at places of which no two are the same."""
    if graph.dynamic:
        raise Unfit
    term = graph.thing(wide)
    place = graph.rng.randrange(term.rank)
    shape = [n if graph.chance(0.7) else graph.rng.randint(1, n) for n in term.shape]
    index = permutations(graph, shape, term.shape[place], place)
    if graph.chance(0.3):
        kind = {Category.FLOAT: D.Double, Category.INT: D.Int, Category.BOOL: D.Bool}
        if term.category not in kind:
            raise Unfit
        value = {D.Double: 1.5, D.Int: 3, D.Bool: True}[kind[term.category]]
        number = graph.scalar_input(kind[term.category], value)
        graph.record("scatter", term, index, Number(number, value), place, error=term.error)
        return
    fits = [t for t in graph.terms if t.dtype is term.dtype and t.rank == term.rank]
    fits = [t for t in fits if all(a <= b for a, b in zip(shape, t.shape, strict=True))]
    source = graph.rng.choice(fits) if fits and graph.chance(0.6) else None
    source = source or graph.add_input(graph.numbers(shape, term.dtype))
    error = max(term.error, source.error)
    graph.record("scatter", term, index, source, place, error=error)


def embedded(graph: Graph) -> None:
    """Rows of a table."""
    table = graph.term(lambda t: t.rank == 2 and 0 not in t.shape and t.category is Category.FLOAT)
    shape = graph.rng.choice(([3], [2, 4], [1]))
    index = positions(graph, shape, table, 0)
    graph.record("embedding_fwd", index, table, error=table.error)


def sorted_out(graph: Graph) -> None:
    """The largest of a dim, and the order of its elements: torch's, between kernels."""
    term = graph.term(lambda t: wide(t) and is_exact(t) and t.dtype not in NARROW)
    place = graph.rng.randrange(term.rank)
    if graph.chance(0.5) and term.category is not Category.BOOL:
        k = graph.rng.randint(1, min(3, term.shape[place]))
        count = graph.scalar(D.Int, k)
        largest = graph.chance(0.5)
        graph.record("topk", term, count, place, largest, True, keep=1)
    else:
        graph.record("argsort", term, place, graph.chance(0.5), True)
