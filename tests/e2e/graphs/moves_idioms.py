"""Moves of several ops at a time, as models have them."""

from __future__ import annotations

import math

from tests.e2e.graphs.fits import is_exact, is_float, is_int, is_number, tame
from tests.e2e.graphs.graph import LARGEST, LIMIT, D, Graph, Term, Unfit


def normalized(graph: Graph) -> None:
    """A term brought together with its own reduction: what softmax and norms do."""
    term = graph.term(lambda t: t.rank > 0 and tame(t) and 0 not in t.shape and is_number(t))
    dims = graph.dims(term)
    count = math.prod(term.shape[d] for d in dims)
    name = graph.rng.choice(("max", "min", "sum"))
    if name == "sum" and count * term.size > LARGEST:
        raise Unfit
    error = term.error
    if name == "sum":
        error = count * (term.error + (1e-6 * term.size if is_float(term) else 0.0))
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
    term = graph.term(lambda t: t.rank == 2 and tame(t) and t.size * max(*t.shape, 1) < LARGEST)
    for dim in graph.rng.sample((0, 1), 2):
        rounding = 1e-6 * term.size if is_float(term) else 0.0
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


def multiplied(term: Term) -> bool:
    """Whether there are products of such tensors."""
    kinds = (D.Float, D.Half, D.BFloat16, D.Double)
    return term.rank > 0 and term.dtype in kinds and 0 not in term.shape


def multiplied_matrices(graph: Graph) -> None:
    """A product that torch runs, between kernels."""
    term = graph.term(lambda t: t.rank >= 2 and multiplied(t) and is_exact(t) and t.size < 100)
    inner, columns = term.shape[-1], graph.rng.choice((1, 4, 9))
    other = graph.add_input(graph.numbers((inner, columns), term.dtype))
    error = inner * term.size * other.size * 1e-5
    if inner * term.size * other.size > LARGEST:
        raise Unfit
    graph.record("matmul", term, other, error=error, exact=False)


def product_with_bias(graph: Graph) -> None:
    """A linear layer, run by torch."""
    term = graph.term(lambda t: multiplied(t) and is_exact(t) and t.size < 100)
    inner, columns = term.shape[-1], graph.rng.choice((1, 4, 9))
    weight = graph.add_input(graph.numbers((columns, inner), term.dtype))
    if inner * term.size * max(weight.size, 1) > LARGEST or weight.wild:
        raise Unfit
    bias = graph.add_input(graph.numbers((columns,), term.dtype)) if graph.chance(0.5) else None
    if bias is not None and bias.wild:
        raise Unfit
    error = inner * term.size * max(weight.size, 1) * 1e-5
    graph.record("linear", term, weight, bias, error=error, exact=False)


def product(graph: Graph) -> None:
    """A product of two terms, or of a term and an input; batched, turned round, of vectors."""

    def fits(term: Term) -> bool:
        return multiplied(term) and tame(term) and term.size < 60

    a = graph.term(fits)
    inner = a.shape[-1]
    others = [t for t in graph.terms if fits(t) and t.dtype is a.dtype and t.rank > 1]
    others = [t for t in others if t.shape[-2] == inner and t.shape[:-2] in ((), a.shape[:-2])]
    if others and graph.chance(0.5):
        b = graph.rng.choice(others)
    else:
        shape = [inner, graph.rng.choice((1, 3, 8, 16, 33))]
        if a.rank > 2 and graph.chance(0.5):
            shape = [*a.shape[:-2], *shape]
        turned = graph.chance(0.4)
        drawn = graph.numbers([*shape[:-2], *reversed(shape[-2:])] if turned else shape, a.dtype)
        b = graph.add_input(drawn)
        if turned:
            order = [*range(b.rank - 2), b.rank - 1, b.rank - 2]
            b = graph.record("permute", b, order, error=b.error)
    rows = a.ref.numel() // inner
    if b.wild or inner * a.size * max(b.size, 1) > LARGEST or rows * b.shape[-1] > LIMIT:
        raise Unfit
    error = inner * (a.error * b.size + b.error * a.size + 1e-6 * a.size * b.size)
    made = graph.record("matmul", a, b, error=error, exact=False)
    if graph.chance(0.5) and made.dtype is not D.Double:
        graph.record("cast", made, dtype=D.Float, error=made.error)


def softmax(graph: Graph) -> None:
    """Exponentials over their sum, along any dims."""
    term = graph.term(lambda t: t.rank > 0 and tame(t) and t.size < 50 and 0 not in t.shape)
    dims = graph.dims(term)
    if not is_float(term):
        raise Unfit
    flags = [d in dims for d in range(term.rank)]
    top = graph.record("max", term, dims, error=term.error)
    top = graph.record("broadcast", top, flags, error=term.error)
    shifted = graph.record("sub", term, top, error=2 * term.error)
    exps = graph.record("exp", shifted, error=2.2 * shifted.error, exact=False)
    count = math.prod(term.shape[d] for d in dims)
    error = count * (exps.error + 1e-6)
    total = graph.record("sum", exps, dims, error=error)
    total = graph.record("broadcast", total, flags, error=error)
    graph.record("div", exps, total, error=2 * (exps.error + error), exact=False)


def normed(graph: Graph) -> None:
    """A norm over groups of the rows: cut, centred, scaled, joined again, weighted."""
    rows, groups, each = (graph.rng.choice(sizes) for sizes in ((2, 3, 8), (1, 2, 4), (4, 5, 16)))
    dtype = graph.rng.choice((D.Float, D.Half, D.BFloat16))
    x = graph.add_input(graph.numbers((rows, groups * each), dtype))
    weight = graph.add_input(graph.numbers((groups * each,), dtype))
    if x.wild or weight.wild or graph.dynamic:
        raise Unfit
    wide = graph.record("cast", x, dtype=D.Float, error=x.error)
    cut = graph.record("reshape", wide, [rows, groups, each], error=wide.error)
    var = graph.record("var", cut, [2], correction=0, keepdim=True, error=1e-4, exact=False)
    mean = graph.record("sum", cut, [2], keepdim=True, error=1e-5)
    mean = graph.record("mul", mean, 1 / each, error=1e-5, exact=False)
    scale = graph.record("rsqrt", graph.record("add", var, 1.0, error=1e-4), error=1e-4)
    out = graph.record("mul", graph.record("sub", cut, mean, error=1e-5), scale, error=1e-3)
    flat = graph.record("reshape", out, [rows, groups * each], error=1e-3)
    flat = graph.record("mul", flat, weight, error=8e-3)
    if graph.chance(0.7):
        graph.record("cast", flat, dtype=dtype, error=8e-3)


def rotated(graph: Graph) -> None:
    """Halves of the last dim swapped, one negated, and joined: rotary embeddings."""
    term = graph.term(lambda t: t.rank > 0 and t.shape[-1] % 2 == 0 and is_exact(t) and is_float(t))
    if graph.dynamic or 0 in term.shape:
        raise Unfit
    shape, half = list(term.shape), term.shape[-1] // 2
    zeros = [0] * term.rank
    left = graph.record("slice", term, zeros, [*shape[:-1], half])
    right = graph.record("slice", term, [*zeros[:-1], half], shape)
    negated = graph.record("neg", right)
    if left.dtype is not negated.dtype:
        left = graph.record("cast", left, dtype=negated.dtype)
    turned = graph.record("cat", [negated, left], -1)
    cos = graph.add_input(graph.numbers((shape[-1],), term.dtype))
    if cos.wild:
        raise Unfit
    a = graph.record("mul", term, cos)
    b = graph.record("mul", turned, cos)
    graph.record("add", a, b)


def picked_loss(graph: Graph) -> None:
    """Cross entropy: the exponentials of rows summed, one entry of each row picked."""
    rows, columns = graph.rng.choice((3, 8, 33)), graph.rng.choice((5, 16, 65))
    x = graph.add_input(graph.numbers((rows, columns), graph.rng.choice((D.Float, D.BFloat16))))
    labels = graph.numbers((rows, 1), D.Int) % columns
    if x.wild or graph.dynamic:
        raise Unfit
    at = graph.add_input(labels)
    top = graph.record("max", x, [1], keepdim=True)
    exps = graph.record("exp", graph.record("sub", x, top), error=1e-6, exact=False)
    total = graph.record("sum", exps, [1], error=1e-4, exact=False)
    logs = graph.record("log", total, error=2e-4, exact=False)
    logs = graph.record("add", logs, graph.record("squeeze", top, [1]), error=2e-4)
    own = graph.record("squeeze", graph.record("take_along_axis", x, at, 1), [1])
    loss = graph.record("sub", logs, own, error=3e-4)
    if graph.chance(0.6):
        graph.record("sum", loss, [0], error=3e-4 * rows)


def one_hot(graph: Graph) -> None:
    """A count compared with indices: what scatters are written as."""
    term = graph.term(lambda t: is_int(t) and t.rank < 3 and t.dtype is not D.UInt64)
    length = graph.rng.choice((2, 9, 16))
    if term.ref.numel() * length > LIMIT:
        raise Unfit
    count = graph.record("iota", length, 0, 1, dtype=term.dtype)
    column = graph.record("broadcast", term, [False] * term.rank + [True])
    graph.record("eq", column, count)


def running_stats(graph: Graph) -> None:
    """Moments over the outer dims, and a mix of them with numbers kept."""
    term = graph.term(lambda t: t.rank >= 2 and tame(t) and t.dtype is D.Float and t.size < 50)
    dims = [d for d in range(term.rank) if d != 1]
    count = math.prod(term.shape[d] for d in dims)
    if count < 2 or term.shape[1] == 0:
        raise Unfit
    kept = graph.add_input(graph.numbers((term.shape[1],), D.Float))
    if kept.wild:
        raise Unfit
    error = 8 * (term.size + 1) * (1e-6 * (term.size + 1) + term.error) * 2
    var = graph.record("var_mean", term, dims, correction=1, error=error, exact=False)
    mean = graph.terms[-1]
    mixed = graph.record("mul", graph.record("sub", mean, kept, error=error), 0.125, error=error)
    graph.record("add", kept, mixed, error=error)
    flags = [d != 1 for d in range(term.rank)]
    wide = graph.record("broadcast", var, flags, error=error)
    graph.record("mul", term, wide, error=error * (term.size + 1) + var.size * term.error)
