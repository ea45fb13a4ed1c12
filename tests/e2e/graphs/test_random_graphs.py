"""Random definitions against torch, op by op, in float64; as run here and as a GPU would run them.

``TRITONFUSER_GRAPHS`` is how many of each kind the slow test tries, ``TRITONFUSER_GRAPHS_FROM`` the
first number. A failure names its seed: ``KINDS["views"].grow(random.Random("views 7"))`` is the
definition.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import hypothesis
import hypothesis.strategies as st
import pytest

from tests.e2e.graphs.graph import DTYPES, SIZES, D
from tests.e2e.graphs.growing import Grown, grow
from tests.e2e.graphs.grown_checks import check
from tests.e2e.graphs.moves import (
    COMPLEX,
    INDEXED,
    MOVES,
    POINTWISE,
    PRODUCTS,
    REDUCTIONS,
    VIEWS,
    Move,
)
from tritonfuser import DataType, FusionDefinition

GRAPHS = int(os.environ.get("TRITONFUSER_GRAPHS", "400"))
FIRST = int(os.environ.get("TRITONFUSER_GRAPHS_FROM", "0"))
CHUNK = 50

EIGHTS = (*DTYPES, D.Float8_e4m3fn, D.Float8_e5m2)
NARROW = (D.Float, D.Half, D.Half, D.BFloat16, D.BFloat16)
COMPLEXES = (*DTYPES, *[D.ComplexFloat, D.ComplexDouble] * 3)


@dataclass(frozen=True)
class Kind:
    """What the definitions of a kind are grown from."""

    moves: Sequence[Move] = MOVES
    dtypes: Sequence[DataType] = DTYPES
    dynamic: bool = False
    most: int = 14
    sizes: Sequence[int] = SIZES

    def grow(
        self,
        rng: random.Random,
        device: str = "cpu",
        made_by: Callable[[], FusionDefinition] = FusionDefinition,
    ) -> Grown:
        return grow(
            rng, self.moves, self.most, self.sizes, device, self.dtypes, self.dynamic, made_by
        )


KINDS = {
    "all": Kind(),
    "views": Kind((*POINTWISE, *VIEWS, *VIEWS)),
    "picks": Kind((*POINTWISE, *VIEWS, *INDEXED, *INDEXED)),
    "reductions": Kind((*POINTWISE, *REDUCTIONS, *REDUCTIONS)),
    "dynamic": Kind(dynamic=True, most=9),
    "dynamic views": Kind((*POINTWISE, *VIEWS, *VIEWS), dynamic=True, most=7),
    "dynamic reductions": Kind((*POINTWISE, *REDUCTIONS, *REDUCTIONS), dynamic=True, most=8),
    "eights": Kind(dtypes=EIGHTS),
    "complex": Kind((*MOVES, *COMPLEX * 5), COMPLEXES),
    "long": Kind(most=40),
    "products": Kind((*POINTWISE, *VIEWS, *REDUCTIONS, *PRODUCTS * 14), NARROW, most=9),
    "long rows": Kind(most=10, sizes=(1, 2, 3, 300, 1000, 1023, 2048)),
    "small dims": Kind(most=20, sizes=(1, 2, 3, 4)),
}


@hypothesis.settings(max_examples=12, derandomize=True, database=None)
@hypothesis.given(rng=st.randoms(use_true_random=False))
def test_graphs_that_shrink(rng: random.Random) -> None:
    """Choices are hypothesis's: what fails is made small."""
    check(grow(rng), rng)


def check_all(kind: str, numbers: Iterable[int], device: str = "cpu") -> None:
    """A definition for each number; all that fail are named."""
    failed: dict[str, Exception] = {}
    for number in numbers:
        seed = f"{kind} {number}"
        rng = random.Random(seed)
        try:
            check(KINDS[kind].grow(rng, device), rng)
        except Exception as error:
            failed[seed] = error
    if failed:
        texts = [f"seed {seed!r}: {type(e).__name__}: {e}" for seed, e in failed.items()]
        raise AssertionError("\n".join(texts)) from next(iter(failed.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_graphs(kind: str) -> None:
    """Always the same few, of those of the slow test."""
    check_all(kind, range(3))


@pytest.mark.parametrize("kind", ["views", "picks"])
def test_a_seed_names_one_definition(kind: str) -> None:
    """Whatever the memory that things of earlier definitions left holds by then."""
    for number in range(14):
        grown = {repr(KINDS[kind].grow(random.Random(f"{kind} {number}")).fd) for _ in range(5)}
        assert len(grown) == 1, f"{kind} {number}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", range(FIRST, FIRST + GRAPHS, CHUNK))
def test_many_graphs(kind: str, start: int) -> None:
    """``make test-random``: some 5,000 of them, from the seeds that the test's name says."""
    check_all(kind, range(start, min(start + CHUNK, FIRST + GRAPHS)))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_graphs_on_a_gpu(kind: str) -> None:
    """A few of them compiled, on inputs that lie there."""
    check_all(kind, range(8), "cuda")
