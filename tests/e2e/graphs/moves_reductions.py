"""Moves that reduce and scan."""

from __future__ import annotations

import math

from tests.e2e.graphs.fits import is_exact, is_float, is_number, summable, tame
from tests.e2e.graphs.graph import EPS, LARGEST, D, Graph, Unfit
from tritonfuser.dtypes import Category


def summed(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0 and summable(t))
    dims = graph.dims(term)
    count = math.prod(term.shape[d] for d in dims)
    if count * term.size > 4 * LARGEST:
        raise Unfit
    error = count * term.error
    quarters = bool((term.ref.double() * 256 == (term.ref.double() * 256).round()).all())
    if is_float(term) and (term.error or not quarters):
        error += 1e-6 * count * term.size
    dtype = graph.rng.choice((D.Null, D.Null, D.Float, D.Double, D.Int, D.Half))
    if dtype is D.Int and is_float(term):
        dtype = D.Null
    if dtype is D.Half and (term.error or not bool((term.ref.half() == term.ref).all())):
        error += count * EPS[D.Half] * term.size  # each operand is rounded before it is added
    graph.record("sum", term, dims, keepdim=graph.chance(0.4), dtype=dtype, error=error)


def multiplied(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0 and tame(t))
    dims = graph.dims(term)
    count = math.prod(term.shape[d] for d in dims)
    top = max(term.size, 1.0)
    if count > 8 or top**count > LARGEST:
        raise Unfit
    error = count * top ** (count - 1) * (term.error + 1e-6 * top) if count else 0.0
    error = error if is_float(term) else 0.0
    graph.record("prod", term, dims, keepdim=graph.chance(0.4), error=error)


def extremum(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0)
    name, keepdim = graph.rng.choice(("max", "min")), graph.chance(0.4)
    dims = graph.dims(term)
    if any(term.shape[d] == 0 for d in dims) and not is_float(term):
        raise Unfit
    graph.record(name, term, dims, keepdim=keepdim, error=term.error)


def moments(graph: Graph) -> None:
    term = graph.term(
        lambda t: t.rank > 0 and tame(t) and t.dtype in (D.Float, D.Double) and t.size < 100
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
    name = graph.rng.choice(("cumsum", "cumsum", "cummax", "cummin", "cumprod"))
    if name == "cumprod":
        running_product(graph)
        return
    if name == "cumsum":
        term = graph.term(lambda t: t.rank > 0 and is_number(t) and is_exact(t))
    else:
        term = graph.term(lambda t: t.rank > 0)
    place = graph.rng.randrange(term.rank)
    if name == "cumsum" and term.shape[place] * term.size > LARGEST:
        raise Unfit
    if 0 in term.shape:
        raise Unfit
    error = term.error
    if name == "cumsum" and is_float(term):
        error = 1e-6 * term.shape[place] * term.size
    first = None
    if graph.chance(0.3) and not term.wild:
        kind = {Category.FLOAT: D.Double, Category.INT: D.Int}.get(term.category, D.Bool)
        first = graph.scalar(kind, {D.Double: 1.5, D.Int: 2, D.Bool: True}[kind])
    graph.record(name, term, dim=place, init=first, error=error)


def running_product(graph: Graph) -> None:
    term = graph.term(lambda t: t.rank > 0 and tame(t) and 0 not in t.shape and t.size < 8)
    place = graph.rng.randrange(term.rank)
    count, top = term.shape[place], max(term.size, 1.0)
    if count > 64 or top**count > LARGEST:
        raise Unfit
    error = count * top ** (count - 1) * (term.error + 1e-6 * top) if is_float(term) else 0.0
    graph.record("cumprod", term, dim=place, error=error)
