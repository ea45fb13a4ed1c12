"""What a random definition may do next: each move picks terms that it fits, or raises Unfit."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from tests.e2e.graphs import DTYPES, LARGEST, LIMIT, D, Graph, Term, Unfit
from tritonfuser.dtypes import Category

Move = Callable[[Graph], None]


def _is_float(term: Term) -> bool:
    return term.category is Category.FLOAT


def _is_int(term: Term) -> bool:
    return term.category is Category.INT


def _tame(term: Term) -> bool:
    return not term.wild and term.size <= LARGEST


def _exact(term: Term) -> bool:
    return term.error == 0 and not term.wild


def _summable(term: Term) -> bool:
    """As ``_tame``; also with nan and infinities, if the rest is exact."""
    return term.size <= LARGEST and (not term.wild or term.error == 0)


def _number(term: Term) -> bool:
    return term.category is not Category.BOOL and _tame(term)


# --- pointwise -----------------------------------------------------------------------------------


def carried(graph: Graph) -> None:
    """Ops under which errors stay what they are."""
    name = graph.rng.choice(("neg", "abs", "relu", "set", "sign", "segment_set"))
    term = graph.term(lambda t: name != "sign" or _exact(t))
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
    term = graph.term(lambda t: _tame(t) and low <= t.low and t.high <= high)
    least = max(term.low, 0.2)
    slope = {"exp": math.exp(min(term.high, 5.0)), "sqrt": 1.2}.get(name, 1.0)
    if name in ("rsqrt", "reciprocal", "log"):
        slope = 1 / least**2
    graph.record(name, term, error=slope * 1.5 * term.error, exact=False)


def rounded(graph: Graph) -> None:
    name = graph.rng.choice(("floor", "ceil", "round", "trunc", "frac"))
    graph.record(name, graph.term(_exact))


def tested(graph: Graph) -> None:
    name = graph.rng.choice(("isnan", "isfinite", "isinf", "signbit", "logical_not"))
    graph.record(name, graph.term(_exact if name in ("signbit", "logical_not") else lambda t: True))


def cast(graph: Graph) -> None:
    term = graph.term(lambda t: not t.wild)
    dtype = graph.rng.choice(DTYPES)
    kind = dtype.info.category
    if kind is not Category.FLOAT and not _exact(term):
        raise Unfit
    if dtype is not D.Double and term.size > LARGEST:
        raise Unfit
    graph.record("cast", term, dtype=dtype, error=term.error)


def partner(graph: Graph, term: Term, fits: Callable[[Term], bool]) -> Term:
    """A term that broadcasts with another one, a new input at need."""

    def joins(other: Term) -> bool:
        pairs = zip(reversed(term.shape), reversed(other.shape), strict=False)
        if not fits(other) or not all(a == b or 1 in (a, b) for a, b in pairs):
            return False
        return torch.broadcast_shapes(term.shape, other.shape).numel() <= LIMIT

    return graph.term(joins)


def arithmetic(graph: Graph) -> None:
    name = graph.rng.choice(("add", "sub", "mul", "maximum", "minimum"))
    a = graph.term(_summable)
    b = partner(graph, a, _summable)
    if name == "mul" and a.size * b.size > LARGEST:
        raise Unfit
    error = a.error + b.error
    if name == "mul":
        error = a.error * b.size + b.error * a.size + a.error * b.error
    if name in ("add", "sub") and a.size + b.size > LARGEST:
        raise Unfit
    graph.record(name, a, b, error=error)


def quotient(graph: Graph) -> None:
    a = graph.term(_tame)
    b = partner(graph, a, lambda t: _tame(t) and t.low >= 0.2 and t.category is not Category.BOOL)
    name = graph.rng.choice(("truediv", "div"))
    if name == "div" and not (_exact(a) and _exact(b)):
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
        return not _is_float(term)

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
    term = graph.term(_tame)
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
    term = graph.term(lambda t: _tame(t) and t.size < 20 and t.category is not Category.BOOL)
    exponent = graph.rng.choice((2, 3))
    error = exponent * term.size ** (exponent - 1) * term.error * 1.5
    graph.record("pow", term, exponent, error=error, exact=False)


def clamped(graph: Graph) -> None:
    term = graph.term(lambda t: not t.wild and t.category is not Category.BOOL)
    low, high = (-2, 3) if _is_int(term) else (-1.5, 2.5)
    graph.record("clamp", term, low, high, error=term.error)


# --- views ---------------------------------------------------------------------------------------


def permuted(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 1)
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
    term = graph.term(lambda t: t.rank > 0)
    shape = factors(graph, term.ref.numel())
    if term.ref.numel() and graph.chance(0.3):
        asked: list[object] = list(shape)
        asked[graph.rng.randrange(len(asked))] = -1
    else:
        asked = [graph.extent(n) for n in shape]
    graph.record("reshape", term, asked, error=term.error)


def merged(graph: Graph) -> None:
    """A reshape that joins two neighbouring dims, or cuts one: what loop nests can follow."""
    term = graph.term(lambda t: t.rank > 0 and 0 not in t.shape)
    shape = list(term.shape)
    place = graph.rng.randrange(term.rank)
    if place + 1 < term.rank and graph.chance(0.5):
        shape[place : place + 2] = [shape[place] * shape[place + 1]]
    else:
        divisors = [d for d in range(1, shape[place] + 1) if shape[place] % d == 0]
        first = graph.rng.choice(divisors)
        shape[place : place + 1] = [first, shape[place] // first]
    graph.record("reshape", term, shape, error=term.error)


def broadcast(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank < 5)
    flags = [False] * term.rank
    flags.insert(graph.rng.randint(0, term.rank), True)
    graph.record("broadcast", term, flags, error=term.error)


def expanded(graph: Graph) -> None:
    term = graph.term(lambda t: 1 in t.shape)
    sizes = [graph.rng.choice((1, 2, 3, 8, 17)) if n == 1 else n for n in term.shape]
    if math.prod(sizes) > LIMIT:
        raise Unfit
    graph.record("expand", term, [graph.extent(n) for n in sizes], error=term.error)


def broadcast_in_dim(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank < 4)
    rank = graph.rng.randint(max(term.rank, 1), 4)
    places = sorted(graph.rng.sample(range(rank), term.rank))
    shape = [graph.rng.choice((1, 2, 5, 16)) for _ in range(rank)]
    for place, size in zip(places, term.shape, strict=True):
        shape[place] = size if size != 1 else shape[place]
    if math.prod(shape) > LIMIT:
        raise Unfit
    graph.record("broadcast_in_dim", term, shape, places, error=term.error)


def squeezed(graph: Graph) -> None:
    term = graph.term(lambda t: 1 in t.shape)
    dims = [d for d, n in enumerate(term.shape) if n == 1 and graph.chance(0.7)]
    if not dims:
        raise Unfit
    graph.record("squeeze", term, dims, squeeze_expanded=True, error=term.error)


def sliced(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0)
    starts, ends = [], []
    for size in term.shape:
        low = graph.rng.randint(0, size) if graph.chance(0.5) else 0
        high = graph.rng.randint(low, size + 2) if graph.chance(0.5) else size
        starts.append(min(low, high))
        ends.append(high)
    if graph.chance(0.2):
        starts[0] = graph.scalar(D.Int, starts[0])
        ends[0] = graph.scalar(D.Int, ends[0])
    graph.record("slice", term, starts, ends, error=term.error)


def padded(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0)
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
        kind = D.Double if _is_float(term) else (D.Int if _is_int(term) else D.Bool)
        fill = graph.scalar(kind, {D.Double: 1.5, D.Int: 2, D.Bool: True}[kind])
    graph.record("pad", term, widths, fill, error=term.error)


def joined(graph: Graph) -> None:
    first = graph.term(lambda t: t.rank > 0)
    place = graph.rng.randrange(first.rank)

    def fits(other: Term) -> bool:
        if other.dtype is not first.dtype or other.rank != first.rank:
            return False
        rest = zip(first.shape, other.shape, strict=True)
        return all(a == b for d, (a, b) in enumerate(rest) if d != place)

    terms = [first, *(graph.term(fits) for _ in range(graph.rng.randint(0, 2)))]
    if graph.chance(0.5):
        shape = list(first.shape)
        shape[place] = graph.rng.choice((0, 1, 2, 5))
        terms.append(graph.add_input(graph.numbers(shape, first.dtype)))
    if sum(t.ref.numel() for t in terms) > LIMIT:
        raise Unfit
    graph.rng.shuffle(terms)
    dim = place - first.rank if graph.chance(0.3) else place
    graph.record("cat", terms, dim, error=max(t.error for t in terms))


def ordered(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 1)
    order = graph.rng.sample(range(term.rank), term.rank)
    graph.record("stride_order", term, order, error=term.error)


# --- indices read at run time --------------------------------------------------------------------


def positions(graph: Graph, shape: list[int], below: int) -> Term:
    """Indices under a bound: an input, or computed from a whole-number term of that shape."""
    computed = [t for t in graph.terms if _is_int(t) and list(t.shape) == shape]
    if computed and graph.chance(0.5):
        return graph.record("remainder", graph.rng.choice(computed), below)
    index = graph.numbers(shape, D.Int) % below
    return graph.add_input(index.to(graph.rng.choice((torch.int32, torch.int64))))


def _wide(term: Term) -> bool:
    return term.rank > 0 and 0 not in term.shape


def index_selected(graph: Graph) -> None:
    term = graph.term(_wide)
    place = graph.rng.randrange(term.rank)
    shape = graph.rng.choice(([], [1], [3], [8]))
    if term.ref.numel() // term.shape[place] * math.prod(shape) > LIMIT:
        raise Unfit
    index = positions(graph, shape, term.shape[place])
    graph.record("index_select", term, index, place, error=term.error)


def gathered(graph: Graph) -> None:
    term = graph.term(_wide)
    place = graph.rng.randrange(term.rank)
    shape = [n if graph.chance(0.7) else graph.rng.randint(1, n) for n in term.shape]
    shape[place] = graph.rng.choice((1, 3, 8))
    if math.prod(shape) > LIMIT:
        raise Unfit
    index = positions(graph, shape, term.shape[place])
    graph.record("gather", term, index, place, error=term.error)


def taken(graph: Graph) -> None:
    term = graph.term(_wide)
    place = graph.rng.randrange(term.rank)
    shape = [1 if graph.chance(0.3) else n for n in term.shape]
    shape[place] = graph.rng.choice((1, 3, 8))
    whole = [max(a, b) for a, b in zip(term.shape, shape, strict=True)]
    if math.prod(whole) > LIMIT:
        raise Unfit
    index = positions(graph, shape, term.shape[place])
    graph.record("take_along_axis", term, index, place, error=term.error)


def selected(graph: Graph) -> None:
    term = graph.term(_wide)
    place = graph.rng.randrange(term.rank)
    index = graph.scalar(D.Int, graph.rng.randrange(term.shape[place]))
    graph.record("select", term, index, place, error=term.error)


# --- reductions ----------------------------------------------------------------------------------


def summed(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0 and _summable(t))
    dims = graph.dims(term)
    count = math.prod(term.shape[d] for d in dims)
    if count * term.size > 4 * LARGEST:
        raise Unfit
    error = count * term.error
    quarters = bool((term.ref.double() * 256 == (term.ref.double() * 256).round()).all())
    if _is_float(term) and (term.error or not quarters):
        error += 1e-6 * count * term.size
    dtype = graph.rng.choice((D.Null, D.Null, D.Float, D.Double))
    graph.record("sum", term, dims, keepdim=graph.chance(0.4), dtype=dtype, error=error)


def multiplied(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0 and _tame(t))
    dims = graph.dims(term)
    count = math.prod(term.shape[d] for d in dims)
    top = max(term.size, 1.0)
    if count > 8 or top**count > LARGEST:
        raise Unfit
    error = count * top ** (count - 1) * (term.error + 1e-6 * top) if count else 0.0
    error = error if _is_float(term) else 0.0
    graph.record("prod", term, dims, keepdim=graph.chance(0.4), error=error)


def extremum(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0)
    name, keepdim = graph.rng.choice(("max", "min")), graph.chance(0.4)
    dims = graph.dims(term)
    if any(term.shape[d] == 0 for d in dims) and not _is_float(term):
        raise Unfit
    graph.record(name, term, dims, keepdim=keepdim, error=term.error)


def moments(graph: Graph) -> None:
    term = graph.term(
        lambda t: t.rank > 0 and _tame(t) and t.dtype in (D.Float, D.Double) and t.size < 100
    )
    dims = graph.dims(term)
    count = math.prod(term.shape[d] for d in dims)
    name = graph.rng.choice(("var_mean", "var", "welford"))
    eps = 1e-14 if term.dtype is D.Double else 1e-6
    error = (
        8
        * (term.size + 1)
        * (eps * (term.size + 1) + term.error)
        * (max(count, 1) if name == "welford" else 2)
    )
    if name == "welford":
        graph.record(name, term, dims, error=error, exact=False)
        return
    correction = graph.rng.choice((0, 1))
    if count <= correction:
        raise Unfit
    graph.record(
        name, term, dims, correction=correction, keepdim=graph.chance(0.4), error=error, exact=False
    )


def scanned(graph: Graph) -> None:
    name = graph.rng.choice(("cumsum", "cumsum", "cummax", "cummin"))
    if name == "cumsum":
        term = graph.term(lambda t: t.rank > 0 and _number(t) and _exact(t))
    else:
        term = graph.term(lambda t: t.rank > 0)
    place = graph.rng.randrange(term.rank)
    if name == "cumsum" and term.shape[place] * term.size > LARGEST:
        raise Unfit
    if 0 in term.shape:
        raise Unfit
    error = term.error
    if name == "cumsum" and _is_float(term):
        error = 1e-6 * term.shape[place] * term.size
    graph.record(name, term, dim=place, error=error)


def normalized(graph: Graph) -> None:
    """A term brought together with its own reduction: what softmax and norms do."""
    term = graph.term(lambda t: t.rank > 0 and _tame(t) and 0 not in t.shape and _number(t))
    dims = graph.dims(term)
    count = math.prod(term.shape[d] for d in dims)
    name = graph.rng.choice(("max", "min", "sum"))
    if name == "sum" and count * term.size > LARGEST:
        raise Unfit
    error = term.error
    if name == "sum":
        error = count * (term.error + (1e-6 * term.size if _is_float(term) else 0.0))
    total = graph.record(name, term, dims, keepdim=True, error=error)
    if graph.chance(0.3):
        flags = [d in dims for d in range(term.rank)]
        bare = graph.record(name, term, dims, error=error)
        total = graph.record("broadcast", bare, flags, error=error)
    if graph.chance(0.3):
        total = graph.record("expand", total, list(term.shape), error=error)
    joined_by = graph.rng.choice(("sub", "maximum", "add"))
    graph.record(joined_by, term, total, error=term.error + error)


def both_ways(graph: Graph) -> None:
    """Sums over the rows and over the columns of one term: a norm's backward."""
    term = graph.term(lambda t: t.rank == 2 and _tame(t) and t.size * max(*t.shape, 1) < LARGEST)
    for dim in graph.rng.sample((0, 1), 2):
        rounding = 1e-6 * term.size if _is_float(term) else 0.0
        error = term.shape[dim] * (term.error + rounding)
        graph.record("sum", term, [dim], error=error)


def backward(graph: Graph) -> None:
    """Rows brought together with their own sums while sums over all rows are taken."""
    rows, length = graph.rng.choice((64, 80, 128)), graph.rng.choice((5, 16, 33))
    dtype = graph.rng.choice((D.Float, D.Half, D.BFloat16))
    grad, x = (graph.add_input(graph.numbers((rows, length), dtype)) for _ in range(2))
    weight = graph.add_input(graph.numbers((length,), dtype))
    scaled = graph.record("mul", grad, weight)
    total = graph.record("sum", scaled, [1], keepdim=True)
    out = graph.record("sub", scaled, total)
    if graph.chance(0.5):
        graph.record("cast", out, dtype=dtype)
    graph.record("sum", graph.record("mul", grad, x), [0])
    if graph.chance(0.5):
        graph.record("sum", grad, [0], dtype=D.Float)


def crossed(graph: Graph) -> None:
    """A term beside one that lies the other way in memory."""
    shape = [graph.rng.choice((3, 16, 40, 64)) for _ in range(graph.rng.choice((2, 2, 3)))]
    if math.prod(shape) > LIMIT:
        raise Unfit
    order = graph.rng.sample(range(len(shape)), len(shape))
    dtype = graph.rng.choice((D.Float, D.Half, D.Int32, D.Bool))
    first = graph.add_input(graph.numbers([shape[d] for d in order], dtype))
    turned = graph.record("permute", first, [order.index(d) for d in range(len(shape))])
    other = graph.add_input(graph.numbers(shape, graph.rng.choice((D.Float, D.Half))))
    graph.record(graph.rng.choice(("add", "maximum", "mul")), turned, other)


def multiplied_matrices(graph: Graph) -> None:
    """A product that torch runs, between kernels."""
    term = graph.term(
        lambda t: t.rank >= 2 and _is_float(t) and _exact(t) and t.size < 100 and 0 not in t.shape
    )
    inner, columns = term.shape[-1], graph.rng.choice((1, 4, 9))
    other = graph.add_input(graph.numbers((inner, columns), term.dtype))
    error = inner * term.size * other.size * 1e-5
    if inner * term.size * other.size > LARGEST:
        raise Unfit
    graph.record("matmul", term, other, error=error, exact=False)


# --- factories -----------------------------------------------------------------------------------


def counted(graph: Graph) -> None:
    length = graph.rng.choice((1, 3, 16, 33))
    dtype = graph.rng.choice((D.Int, D.Int32, D.Float, D.Double))
    graph.record("iota", graph.extent(length), 2, -3, dtype=dtype)


def filled(graph: Graph) -> None:
    shape = list(graph.term().shape) if graph.chance(0.5) else [graph.rng.choice((1, 4, 9))]
    dtype = graph.rng.choice(DTYPES)
    graph.record("full", [graph.extent(n) for n in shape], 3, dtype=dtype)


def triangular(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 1)
    graph.record("triu", term, graph.rng.randint(-2, 2), error=term.error)


def drawn(graph: Graph) -> None:
    """Random numbers of a seed, which are the same wherever they are drawn."""
    shape = list(graph.term().shape) if graph.chance(0.5) else [graph.rng.choice((1, 4, 9, 32))]
    if math.prod(shape) > LIMIT // 4:
        raise Unfit
    seeds = {"rng_seed": graph.rng.randint(0, 99), "rng_offset": graph.rng.randint(0, 9)}
    dtype = graph.rng.choice((D.Float, D.Double, D.Half))
    graph.record("uniform", 0.0, 1.0, shape, **seeds, dtype=dtype, error=1e-6, exact=False)


POINTWISE: tuple[Move, ...] = (
    carried, smooth, smooth, rounded, tested, cast, cast, arithmetic, arithmetic, arithmetic,
    quotient, compared, bits, chosen, with_number, with_number, powered, clamped,
)  # fmt: skip
VIEWS: tuple[Move, ...] = (
    permuted, crossed, reshaped, merged, broadcast, expanded, broadcast_in_dim, squeezed, sliced,
    padded, joined, ordered,
)  # fmt: skip
INDEXED: tuple[Move, ...] = (index_selected, gathered, taken, selected)
REDUCTIONS: tuple[Move, ...] = (
    summed, summed, summed, multiplied, extremum, extremum, moments, moments, scanned,
    normalized, normalized, normalized, both_ways, backward, multiplied_matrices,
)  # fmt: skip
FACTORIES: tuple[Move, ...] = (counted, filled, triangular, drawn, Graph.new_input)
MOVES: tuple[Move, ...] = (*POINTWISE, *VIEWS, *INDEXED, *REDUCTIONS, *REDUCTIONS, *FACTORIES)
