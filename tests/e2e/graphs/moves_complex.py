"""Moves between real and complex numbers."""

from __future__ import annotations

from tests.e2e.graphs.fits import is_complex, partner
from tests.e2e.graphs.graph import LARGEST, D, Graph, Term, Unfit


def _fits(term: Term) -> bool:
    """Complex or real, and not large."""
    return term.size <= LARGEST and not term.wild and term.dtype is not D.UInt64


def joined_parts(graph: Graph) -> None:
    """A complex number of two real ones."""
    real = graph.term(lambda t: t.dtype in (D.Float, D.Double) and not t.wild)
    other = partner(graph, real, lambda t: t.dtype is real.dtype and not t.wild)
    graph.record("complex", real, other, error=real.error + other.error)


def part(graph: Graph) -> None:
    """What is real of a complex number."""
    term = graph.thing(is_complex)
    name = graph.rng.choice(("real", "imag", "abs"))
    graph.record(name, term, error=term.error, exact=name != "abs")


def complex_arithmetic(graph: Graph) -> None:
    a = graph.thing(lambda t: is_complex(t) and _fits(t))
    shape = a.shape
    others = [t for t in graph.terms if _fits(t)]
    b = graph.rng.choice(others)
    pairs = zip(reversed(shape), reversed(b.shape), strict=False)
    if not all(m == n or 1 in (m, n) for m, n in pairs) or a.size * max(b.size, 1) > LARGEST:
        raise Unfit
    name = graph.rng.choice(("add", "sub", "mul"))
    error = a.error + b.error
    if name == "mul":
        error = 2 * (a.error * b.size + b.error * a.size + a.error * b.error)
    pair = (a, b) if graph.chance(0.5) else (b, a)
    graph.record(name, *pair, error=error)


def complex_unary(graph: Graph) -> None:
    term = graph.thing(lambda t: is_complex(t) and _fits(t))
    graph.record(graph.rng.choice(("neg", "set")), term, error=term.error)


def complex_sum(graph: Graph) -> None:
    term = graph.thing(lambda t: is_complex(t) and _fits(t) and t.rank > 0)
    dims = graph.dims(term)
    count = term.ref.numel()
    if count * term.size > LARGEST:
        raise Unfit
    error = count * (term.error + 1e-6 * term.size)
    graph.record("sum", term, dims, keepdim=graph.chance(0.4), error=error)


def complex_choice(graph: Graph) -> None:
    condition = graph.term(lambda t: t.dtype is D.Bool)
    term = graph.thing(lambda t: is_complex(t) and t.shape == condition.shape)
    number = graph.scalar(D.ComplexDouble, 0.5 - 1j)
    graph.record("where", condition, term, number, error=term.error)


def complex_cast(graph: Graph) -> None:
    term = graph.thing(lambda t: _fits(t) and (is_complex(t) or t.category.value < 3))
    dtype = graph.rng.choice((D.ComplexFloat, D.ComplexDouble))
    graph.record("cast", term, dtype=dtype, error=term.error)


def complex_test(graph: Graph) -> None:
    a = graph.thing(lambda t: is_complex(t) and t.error == 0)
    graph.record(graph.rng.choice(("isfinite", "isreal", "logical_not")), a)


COMPLEX = (
    joined_parts, part, complex_arithmetic, complex_arithmetic, complex_unary, complex_sum,
    complex_choice, complex_cast, complex_test,
)  # fmt: skip
