"""Which terms a move may take: without nans, exact, of which kind, broadcasting with another."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tests.e2e.graphs.graph import LARGEST, LIMIT, Graph, Term
from tritonfuser.dtypes import Category


def is_float(term: Term) -> bool:
    return term.category is Category.FLOAT


def is_int(term: Term) -> bool:
    return term.category is Category.INT


def tame(term: Term) -> bool:
    return not term.wild and term.size <= LARGEST


def is_complex(term: Term) -> bool:
    return term.is_complex


def is_exact(term: Term) -> bool:
    return term.error == 0 and not term.wild


def summable(term: Term) -> bool:
    """As ``tame``; also with nan and infinities, if the rest is exact."""
    return term.size <= LARGEST and (not term.wild or term.error == 0)


def is_number(term: Term) -> bool:
    return term.category is not Category.BOOL and tame(term)


def partner(graph: Graph, term: Term, fits: Callable[[Term], bool]) -> Term:
    """A term that broadcasts with another one, a new input at need."""

    def joins(other: Term) -> bool:
        pairs = zip(reversed(term.shape), reversed(other.shape), strict=False)
        if not fits(other) or not all(a == b or 1 in (a, b) for a, b in pairs):
            return False
        return torch.broadcast_shapes(term.shape, other.shape).numel() <= LIMIT

    return graph.term(joins)
