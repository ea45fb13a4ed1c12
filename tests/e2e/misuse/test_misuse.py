"""Wrong calls made by changing right programs: each is refused by an error of ours, or is right.

A seed changes one thing: an argument of a call while recording, the inputs, params, options or
``out`` of a run, or a call of caches, profilers, handles, schedules and compat. The error has to
name the op or the argument and the user's line, and nothing may be half done after it.
``TRITONFUSER_GRAPHS_FROM`` is the first seed of the slow test. A failure names its seed:
``tests.e2e.misuse.seeds.misuse(7)`` makes it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.e2e.misuse import child
from tests.e2e.misuse.child import Outcome, outcomes

FIRST = int(os.environ.get("TRITONFUSER_GRAPHS_FROM", "0"))
COUNT, CHUNK = 200, 50


def refuse(found: Iterable[Outcome]) -> None:
    faults = [f"seed {one.seed}: {one.word}: {one.fault}" for one in found if one.fault]
    assert not faults, "\n".join(faults)


def test_misuse():
    """Always the same few."""
    found = outcomes(0, 30)
    assert [one.seed for one in found] == list(range(30))
    refuse(found)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(FIRST, FIRST + COUNT, CHUNK))
def test_much_misuse(start):
    """``make test-random``: 200 wrong calls, from the seeds that the test's name says."""
    refuse(outcomes(start, CHUNK))


def test_crashes_and_hangs_have_a_seed(monkeypatch, tmp_path: Path):
    """Of six seeds the second crashes, the fourth hangs and the fifth is wrong."""
    script = tmp_path / "child.py"
    script.write_text(
        "import json, os, sys, time\n"
        "first, count = map(int, sys.argv[1:])\n"
        "for seed in range(first, first + count):\n"
        "    if seed == 11: os.abort()\n"
        "    if seed == 13: time.sleep(60)\n"
        "    print(json.dumps([seed, 'refused', 'bare' if seed == 14 else '']), flush=True)\n"
    )
    monkeypatch.setattr(child, "SECONDS", 3.0)
    found = outcomes(10, 6, [str(script)])
    assert [one.seed for one in found] == list(range(10, 16))
    assert [one.word for one in found] == [
        "refused",
        "died",
        "refused",
        "died",
        "refused",
        "refused",
    ]
    with pytest.raises(AssertionError, match=r"seed 11: died.*\n.*seed 13: died.*\n.*seed 14"):
        refuse(found)
