"""Moves that rearrange, and those that make tensors of nothing."""

from __future__ import annotations

import itertools
import math

from tests.e2e.graphs.fits import is_float, is_int
from tests.e2e.graphs.graph import LIMIT, D, Graph, Number, Term, Unfit


def permuted(graph: Graph) -> None:
    term = graph.thing(lambda t: t.rank > 1)
    graph.record("permute", term, graph.rng.sample(range(term.rank), term.rank), error=term.error)


def factors(graph: Graph, total: int) -> list[int]:
    """A random shape of that many elements."""
    shape: list[int] = []
    while total > 1 and graph.chance(0.75):
        divisors = [d for d in range(2, total + 1) if total % d == 0]
        shape.append(graph.rng.choice(divisors))
        total //= shape[-1]
    shape.append(total)
    if graph.chance(0.3):
        shape.append(1)
    graph.rng.shuffle(shape)
    return shape


def reshaped(graph: Graph) -> None:
    if graph.dynamic:
        raise Unfit
    term = graph.thing(lambda t: t.rank > 0)
    shape = factors(graph, term.ref.numel())
    if term.ref.numel() and graph.chance(0.3):
        asked: list[object] = list(shape)
        asked[graph.rng.randrange(len(asked))] = -1
    else:
        asked = [graph.extent(n) for n in shape]
    graph.record("reshape", term, asked, error=term.error)


def merged(graph: Graph) -> None:
    """A reshape that joins two neighbouring dims, or cuts one: what loop nests can follow."""
    term = graph.thing(lambda t: t.rank > 0 and 0 not in t.shape)
    shape: list[object] = [graph.extent(n) for n in term.shape]
    place = graph.rng.randrange(term.rank)
    if place + 1 < term.rank and graph.chance(0.5):
        size = term.shape[place] * term.shape[place + 1]
        sizes = (term.handle.size(place), term.handle.size(place + 1))
        made = graph.fd.ops.mul(*sizes)
        shape[place : place + 2] = [graph.rng.choice((Number(made, size), -1))]
    elif graph.dynamic:
        cut_again(graph, term)
        return
    else:
        size = term.shape[place]
        first = graph.rng.choice([d for d in range(1, size + 1) if size % d == 0])
        shape[place : place + 1] = [first, size // first]
    graph.record("reshape", term, shape, error=term.error)


def cut_again(graph: Graph, term: Term) -> None:
    """A dim of as many elements as two of another term have, cut into their sizes."""
    for other in graph.rng.sample(graph.terms, len(graph.terms)):
        for left, right in itertools.pairwise(range(other.rank)):
            size = other.shape[left] * other.shape[right]
            if min(other.shape[left], other.shape[right]) > 1 and size in term.shape:
                place = term.shape.index(size)
                shape: list[object] = [graph.extent(n) for n in term.shape]
                pair = [Number(other.handle.size(d), other.shape[d]) for d in (left, right)]
                shape[place : place + 1] = pair
                graph.record("reshape", term, shape, error=term.error)
                return
    raise Unfit


def broadcast(graph: Graph) -> None:
    term = graph.thing(lambda t: t.rank < 5)
    flags = [False] * term.rank
    flags.insert(graph.rng.randint(0, term.rank), True)
    graph.record("broadcast", term, flags, error=term.error)


def expanded(graph: Graph) -> None:
    term = graph.thing(lambda t: 1 in t.shape)
    sizes = [graph.rng.choice((1, 2, 3, 8, 17)) if n == 1 else n for n in term.shape]
    if math.prod(sizes) > LIMIT:
        raise Unfit
    graph.record("expand", term, [graph.extent(n) for n in sizes], error=term.error)


def broadcast_in_dim(graph: Graph) -> None:
    term = graph.thing(lambda t: t.rank < 4)
    rank = graph.rng.randint(max(term.rank, 1), 4)
    places = sorted(graph.rng.sample(range(rank), term.rank))
    shape = [graph.rng.choice((1, 2, 5, 16)) for _ in range(rank)]
    for place, size in zip(places, term.shape, strict=True):
        shape[place] = size if size != 1 else shape[place]
    if math.prod(shape) > LIMIT:
        raise Unfit
    asked = [graph.extent(n) if d in places else n for d, n in enumerate(shape)]
    if term.rank == rank and graph.chance(0.2):
        places = [d - rank for d in places]
    graph.record("broadcast_in_dim", term, asked, places, error=term.error)


def squeezed(graph: Graph) -> None:
    term = graph.thing(lambda t: 1 in t.shape)
    dims = [d for d, n in enumerate(term.shape) if n == 1 and graph.chance(0.7)]
    if not dims:
        raise Unfit
    graph.record("squeeze", term, dims, squeeze_expanded=True, error=term.error)


def sliced(graph: Graph) -> None:
    term = graph.thing(lambda t: t.rank > 0)
    starts, ends = [], []
    for size in term.shape:
        low = graph.rng.randint(0, size) if graph.chance(0.5) else 0
        high = graph.rng.randint(low, size + 2) if graph.chance(0.5) else size
        starts.append(min(low, high))
        ends.append(graph.extent(size) if high == size else high)
    if graph.chance(0.2) and isinstance(ends[0], int):
        starts[0] = graph.scalar(D.Int, starts[0])
        ends[0] = graph.scalar(D.Int, ends[0])
    graph.record("slice", term, starts, ends, error=term.error)


def padded(graph: Graph) -> None:
    term = graph.thing(lambda t: t.rank > 0)
    dims = graph.rng.randint(1, term.rank)
    widths = [graph.rng.choice((0, 0, 1, 2, -1)) for _ in range(2 * dims)]
    for place in range(dims):
        size = term.shape[term.rank - 1 - place]
        if size < 2:  # torch does not take away what is not there, whatever it adds
            widths[2 * place : 2 * place + 2] = [max(w, 0) for w in widths[2 * place :][:2]]
    if term.ref.numel() > LIMIT // 4:
        raise Unfit
    fill = None
    if graph.chance(0.5):
        kind = D.Double if is_float(term) else (D.Int if is_int(term) else D.Bool)
        kind = D.ComplexDouble if term.is_complex else kind
        value = {D.Double: 1.5, D.Int: 2, D.Bool: True, D.ComplexDouble: 1 - 2j}[kind]
        fill = graph.scalar(kind, value)
    if graph.chance(0.15):
        widths[0] = graph.scalar(D.Int, widths[0])
    graph.record("pad", term, widths, fill, error=term.error)


def joined(graph: Graph) -> None:
    first = graph.thing(lambda t: t.rank > 0)
    place = graph.rng.randrange(first.rank)

    def fits(other: Term) -> bool:
        if other.dtype is not first.dtype or other.rank != first.rank:
            return False
        rest = zip(first.shape, other.shape, strict=True)
        return all(a == b for d, (a, b) in enumerate(rest) if d != place)

    terms = [first, *(graph.thing(fits) for _ in range(graph.rng.randint(0, 2)))]
    if graph.chance(0.5):
        shape = list(first.shape)
        shape[place] = graph.rng.choice((2, 5) if graph.dynamic else (0, 1, 2, 5))
        terms.append(graph.add_input(graph.numbers(shape, first.dtype)))
    if sum(t.ref.numel() for t in terms) > LIMIT:
        raise Unfit
    graph.rng.shuffle(terms)
    dim = place - first.rank if graph.chance(0.3) else place
    graph.record("cat", terms, dim, error=max(t.error for t in terms))


def ordered(graph: Graph) -> None:
    term = graph.thing(lambda t: t.rank > 1)
    order = graph.rng.sample(range(term.rank), term.rank)
    graph.record("stride_order", term, order, error=term.error)


def counted(graph: Graph) -> None:
    length = graph.rng.choice((1, 3, 16, 33))
    dtype = graph.rng.choice((D.Int, D.Int32, D.Float, D.Double))
    kind = float if dtype in (D.Float, D.Double) else int
    graph.record("iota", graph.extent(length), kind(2), kind(-3), dtype=dtype)


def filled(graph: Graph) -> None:
    shape = list(graph.thing().shape) if graph.chance(0.5) else [graph.rng.choice((1, 4, 9))]
    dtype = graph.rng.choice(graph.dtypes)
    graph.record("full", [graph.extent(n) for n in shape], 3, dtype=dtype)


def triangular(graph: Graph) -> None:
    term = graph.thing(lambda t: t.rank > 1)
    graph.record("triu", term, graph.rng.randint(-2, 2), error=term.error)


def drawn(graph: Graph) -> None:
    """Random numbers of a seed, which are the same wherever they are drawn."""
    shape = list(graph.thing().shape) if graph.chance(0.5) else [graph.rng.choice((1, 4, 9, 32))]
    if math.prod(shape) > LIMIT // 4:
        raise Unfit
    seeds = {"rng_seed": graph.rng.randint(0, 99), "rng_offset": graph.rng.randint(0, 9)}
    dtype = graph.rng.choice((D.Float, D.Double, D.Half))
    asked = [graph.extent(n) for n in shape]
    graph.record("uniform", 0.0, 1.0, asked, **seeds, dtype=dtype, error=1e-6, exact=False)
