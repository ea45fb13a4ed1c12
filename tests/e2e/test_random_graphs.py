"""Random definitions against torch, op by op, in float64; as run here and as a GPU would run them.

``TRITONFUSER_GRAPHS`` is how many of each kind the slow test tries, ``TRITONFUSER_GRAPHS_FROM`` the
first number. A failure names its seed: ``grow(random.Random("views 7"), KINDS["views"])`` is the
definition.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence

import hypothesis
import hypothesis.strategies as st
import pytest

from tests.e2e.growing import check, grow
from tests.e2e.moves import INDEXED, MOVES, POINTWISE, REDUCTIONS, VIEWS, Move

GRAPHS = int(os.environ.get("TRITONFUSER_GRAPHS", "300"))
FIRST = int(os.environ.get("TRITONFUSER_GRAPHS_FROM", "0"))
CHUNK = 50

KINDS: dict[str, Sequence[Move]] = {
    "all": MOVES,
    "views": (*POINTWISE, *VIEWS, *VIEWS),
    "picks": (*POINTWISE, *VIEWS, *INDEXED, *INDEXED),
    "reductions": (*POINTWISE, *REDUCTIONS, *REDUCTIONS),
}


@hypothesis.settings(max_examples=12, derandomize=True, database=None)
@hypothesis.given(rng=st.randoms(use_true_random=False))
def test_graphs_that_shrink(rng: random.Random) -> None:
    """Choices are hypothesis's: what fails is made small."""
    check(grow(rng), rng)


def check_all(named: Iterable[str], moves: Sequence[Move] = MOVES, device: str = "cpu") -> None:
    """A graph for each seed; all that fail are named."""
    failed: dict[str, Exception] = {}
    for seed in named:
        rng = random.Random(seed)
        try:
            check(grow(rng, moves, device=device), rng)
        except Exception as error:
            failed[seed] = error
    if failed:
        texts = [f"seed {seed!r}: {type(e).__name__}: {e}" for seed, e in failed.items()]
        raise AssertionError("\n".join(texts)) from next(iter(failed.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_graphs(kind: str) -> None:
    """Always the same few."""
    check_all((f"{kind} {number}" for number in range(12)), KINDS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", range(FIRST, FIRST + GRAPHS, CHUNK))
def test_many_graphs(kind: str, start: int) -> None:
    last = min(start + CHUNK, FIRST + GRAPHS)
    check_all((f"{kind} {number}" for number in range(start, last)), KINDS[kind])


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_graphs_on_a_gpu(kind: str) -> None:
    """A few of them compiled, on inputs that lie there."""
    check_all((f"{kind} {number}" for number in range(12)), KINDS[kind], "cuda")
