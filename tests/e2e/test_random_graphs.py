"""Random definitions against torch, op by op, in float64; as run here and as a GPU would run them.

``TRITONFUSER_GRAPHS`` is how many the slow test tries, ``TRITONFUSER_GRAPHS_FROM`` the first seed.
A failure names its seed: ``grow(random.Random(seed))`` is the definition.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import hypothesis
import hypothesis.strategies as st
import pytest

from tests.e2e.growing import check, grow
from tests.e2e.moves import INDEXED, MOVES, POINTWISE, REDUCTIONS, VIEWS, Move

GRAPHS = int(os.environ.get("TRITONFUSER_GRAPHS", "1000"))
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


@pytest.mark.parametrize("kind", KINDS)
def test_graphs(kind: str) -> None:
    """Always the same few."""
    for seed in range(12):
        rng = random.Random(f"{kind} {seed}")
        check(grow(rng, KINDS[kind]), rng)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(FIRST, FIRST + GRAPHS, CHUNK))
def test_many_graphs(start: int) -> None:
    failed: dict[int, Exception] = {}
    for seed in range(start, min(start + CHUNK, FIRST + GRAPHS)):
        rng = random.Random(seed)
        try:
            check(grow(rng), rng)
        except Exception as error:
            failed[seed] = error
    if failed:
        texts = [f"seed {seed}: {type(e).__name__}: {e}" for seed, e in failed.items()]
        raise AssertionError("\n".join(texts)) from next(iter(failed.values()))


@pytest.mark.gpu
def test_graphs_on_a_gpu() -> None:
    """A few of them compiled, on inputs that lie there."""
    for seed in range(40):
        rng = random.Random(seed)
        check(grow(rng, device="cuda"), rng)
