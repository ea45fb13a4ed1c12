"""Whether two flat kernels are one: second sides of tiles are chosen only where that decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser.heuristics import pointwise, transpose
from tritonfuser.heuristics.problem import Problem
from tritonfuser.lowering.fuse import joined_kernels
from tritonfuser.lowering.fuse.flat_kernels import flat_time
from tritonfuser.lowering.fuse.joined_kernels import JoinedKernels, is_slower_joined
from tritonfuser.lowering.fuse.second_sides import with_second_side

ROWS, COLUMNS = 4096, 4104


def facts(body: Any, *shapes: tuple[int, ...]) -> Problem:
    """The facts of the only kernel of a definition, before its tiles get a second side."""
    given = [torch.empty(shape, device="meta") for shape in shapes]
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    assert piece.problem is not None
    return replace(piece.problem, across=(), crossing=1)


PLAIN = facts(lambda fd, x: fd.ops.exp(x), (ROWS, COLUMNS))
TURNED = facts(lambda fd, x: fd.ops.exp(fd.ops.permute(x, [1, 0])), (COLUMNS, ROWS))
BOTH = facts(
    lambda fd, x, y: fd.ops.add(fd.ops.exp(x), fd.ops.permute(y, [1, 0])),
    (ROWS, COLUMNS),
    (COLUMNS, ROWS),
)


def is_slower(joined: Problem, *alone: Problem) -> bool:
    """The same from the times of all three kernels."""
    first, second = (_busy(with_second_side(each)) for each in alone)
    return _busy(joined) > first + second + joined.device.launch_s


def _busy(problem: Problem) -> float:
    made = transpose if problem.across else pointwise
    return float(flat_time(problem, made.propose(problem)).busy)


@pytest.mark.parametrize("joined", [BOTH, with_second_side(BOTH), TURNED, PLAIN])
@pytest.mark.parametrize("first", [PLAIN, TURNED])
@pytest.mark.parametrize("second", [PLAIN, TURNED])
def test_the_answer_is_that_of_all_times(joined: Problem, first: Problem, second: Problem) -> None:
    assert is_slower_joined(JoinedKernels(joined, first, second)) == is_slower(
        joined, first, second
    )


def test_some_are_slower_and_some_are_not() -> None:
    assert is_slower_joined(JoinedKernels(BOTH, PLAIN, TURNED))
    assert not is_slower_joined(JoinedKernels(with_second_side(BOTH), PLAIN, TURNED))


def test_sides_are_not_chosen_where_bounds_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Problem] = []

    def choose(problem: Problem) -> Problem:
        asked.append(problem)
        return with_second_side(problem)

    monkeypatch.setattr(joined_kernels, "with_second_side", choose)
    assert not is_slower_joined(JoinedKernels(with_second_side(BOTH), PLAIN, TURNED))
    assert not asked
    assert is_slower_joined(JoinedKernels(BOTH, PLAIN, TURNED))
    assert asked == [PLAIN, TURNED]
