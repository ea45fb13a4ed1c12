"""Bounds of flat kernels: many at once count what each of them counts, or a bound of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.lowering.harness import record
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.least.counting import LeastCounting
from tritonfuser.heuristics.cost.least.launches import launches_of
from tritonfuser.heuristics.params import KernelParams, PointwiseParams, TransposeParams
from tritonfuser.heuristics.problem import ElementWork, Problem

EQUAL = (
    "programs",
    "accesses",
    "lines",
    "addresses",
    "written_bytes",
    "fetched_bytes",
    "stored_bytes",
    "sector_bytes",
    "register_limit",
)
"""Counts that are known of many kernels at once."""

WORK = ElementWork(before=4.0)
TILES = [
    TransposeParams(block_x=x, block_y=y, num_warps=warps)
    for x, y in ((16, 16), (256, 16), (64, 64), (16, 256))
    for warps in (1, 4, 16)
]
BLOCKS = [
    PointwiseParams(block_x=block, num_warps=warps, vectorization_factor=factor)
    for block in (32, 1024, 4096)
    for warps in (1, 4)
    for factor in (0, 1, 4)
]


def flat(body: Any, *shapes: tuple[int, ...], index: int = 0) -> Problem:
    """The facts of the only kernel of a definition of bfloat16 tensors, and of one of indices."""
    given = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    if index:
        given.append(torch.empty(index, dtype=torch.long, device="meta"))
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    assert piece.problem is not None and piece.problem.is_flat
    return piece.problem


def turned(fd: Any, x: Any, y: Any, row: Any) -> Any:
    """A transpose beside what lies along one side, which has fewer elements than threads."""
    both = fd.ops.add(x, fd.ops.permute(y, [1, 0]))
    return fd.ops.mul(both, fd.ops.broadcast(row, [True, False]))


def picked(fd: Any, x: Any, y: Any, row: Any, index: Any) -> Any:
    """The same with a row that is read at indices."""
    return turned(fd, x, y, fd.ops.index_select(row, index, 0))


def scaled(fd: Any, x: Any, row: Any) -> Any:
    return fd.ops.mul(x, fd.ops.broadcast(row, [True, False]))


ACROSS = flat(turned, (1000, 2056), (2056, 1000), (2056,))
GATHER = flat(picked, (1000, 2056), (2056, 1000), (3000,), index=2056)
ALONG = flat(scaled, (4096, 1001), (1001,))


@pytest.mark.parametrize(
    ("problem", "params"), [(ACROSS, TILES), (GATHER, TILES), (ALONG, BLOCKS), (ACROSS, BLOCKS)]
)
def test_many_kernels_count_what_each_counts(problem: Problem, params: list[KernelParams]) -> None:
    least = LeastCounting(problem, WORK).least_of(launches_of(problem, params))
    counting = Counting(problem, WORK)
    for place, each in enumerate(params):
        counts = counting.counts(each)
        for field in EQUAL:
            numbers = np.broadcast_to(getattr(least, field), len(params))
            assert numbers[place] == pytest.approx(getattr(counts, field), rel=1e-12), (each, field)
        for field in ("hit_lines", "hit_bytes"):
            numbers = np.broadcast_to(getattr(least, field), len(params))
            assert numbers[place] >= getattr(counts, field) * (1 - 1e-12), (each, field)


def test_the_row_of_a_transpose_hits_in_part() -> None:
    """Else the test above would say nothing of hits."""
    least = LeastCounting(ACROSS, WORK).least_of(launches_of(ACROSS, TILES))
    assert 0 < least.hit_lines.max() < least.lines.max()
