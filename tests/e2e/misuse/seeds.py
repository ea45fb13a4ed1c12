"""One misuse a seed: a wrong call while recording, a wrong run, a wrong call beside them."""

from __future__ import annotations

import contextlib
import io
import random
import warnings

from tests.e2e.graphs.test_random_graphs import KINDS
from tests.e2e.misuse import api_calls, recording, running
from tests.e2e.misuse.tracing import Traced

WAYS = ("recorded", "recorded", "run", "run", "called")


def misuse(number: int) -> str:
    """Make the misuse of a number, and say in a word what came of it.

    Raises
    ------
    Wrong
        It was not refused as it should be.
    """
    rng = random.Random(f"misuse {number}")
    way = WAYS[number % len(WAYS)]
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if way == "called":
            return f"{way}: {api_calls.misuse(rng)}"
        kind = sorted(KINDS)[number // len(WAYS) % len(KINDS)]
        grown = KINDS[kind].grow(rng, made_by=Traced)
        misused = recording.misuse if way == "recorded" else running.misuse
        return f"{way}: {misused(rng, grown)}"
