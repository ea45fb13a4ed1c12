"""The cost model of short rows that are whole in threads, and where it chooses them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tests.schedules.test_staged import norm_backward, softmax, sums
from tritonfuser import DataType
from tritonfuser.heuristics.search.candidates import Candidates
from tritonfuser.heuristics.search.spaces import SPACES
from tritonfuser.heuristics.search.warps import Kernels
from tritonfuser.lowering.cost import segment_element_work, segment_time


def segments(body: Any, rows: int, row: int, dtype: torch.dtype = torch.bfloat16) -> Any:
    shapes = [(rows, row)] if body is not norm_backward else [(rows, row), (rows, row), (row,)]
    given = [torch.empty(shape, dtype=dtype, device="meta") for shape in shapes]
    return record(body, given).segments(given, arch="sm_90").segments


@pytest.mark.parametrize(
    ("body", "row"),
    [
        *((body, row) for body in (softmax, sums) for row in (13, 21)),
        (sums, 49),
        (norm_backward, 9),
        (norm_backward, 13),
    ],
)
def test_it_is_chosen_for_short_rows_that_begin_inside_vectors(body: Any, row: int) -> None:
    """H200, sums of rows of 13, 21 and 49: 0.39, 0.27 and 0.24 of the time of other tiles, and a
    softmax of 13 and 21 0.60 and 0.47. Sums over rows stay in registers too: longer ones are not
    chosen."""
    piece = segments(body, 50_000_000 // row, row)[0]
    assert piece.params.row_tiling.staged
    staged = segment_time(piece)
    rows = "block_m" if body is norm_backward else "block_x"
    other = segment_time(piece, replace(piece.params, staged=False, num_warps=2, **{rows: 16}))
    assert staged is not None and other is not None
    assert staged.seconds < 0.8 * other.seconds


def test_it_is_chosen_for_cheap_norms_too() -> None:
    """H200, an RMS norm in float16 of 29.9 million rows of 31: 943 us, and 1474 by other tiles."""

    def body(fd: Any, x: Any) -> Any:
        x = fd.ops.cast(x, DataType.Float)
        mean = fd.ops.mul(fd.ops.sum(fd.ops.mul(x, x), [1], True), 1 / 31)
        scale = fd.ops.rsqrt(fd.ops.add(mean, 1e-5))
        return fd.ops.cast(fd.ops.mul(x, scale), DataType.Half), fd.ops.cast(scale, DataType.Half)

    given = [torch.empty(29_908_800, 31, dtype=torch.float16, device="meta")]
    (piece,) = record(body, given).segments(given, arch="sm_90").segments
    assert piece.params.row_tiling.staged


@pytest.mark.parametrize("row", [32, 64, 1000])
def test_other_rows_are_loaded_as_they_were(row: int) -> None:
    assert not segments(softmax, 50_000_000 // row, row)[0].params.row_tiling.staged


def test_bounds_are_not_above_times() -> None:
    for body in (softmax, sums, norm_backward):
        piece = segments(body, 400_000, 21)[0]
        space = SPACES[piece.scheduler](piece.problem)
        only = replace(
            space, alternatives=tuple(a for a in space.alternatives if a.fixed.get("staged"))
        )
        assert only.alternatives
        found = Candidates(Kernels(piece.problem, segment_element_work(piece)), only)
        for number in found.numbers():
            timed = found.time(number)
            assert timed is None or found.bound(number) <= timed.time.seconds * (1 + 1e-9)


def test_other_orders_of_axes_are_not_tried() -> None:
    """Rows are no runs of memory there."""
    given = [torch.empty(100, 60, 31, device="meta")]
    piece = record(sums, given).segments(given, arch="sm_90").segments[0]
    staged = [
        a for a in SPACES[piece.scheduler](piece.problem).alternatives if a.fixed.get("staged")
    ]
    assert len(staged) == 1 and "axes" not in staged[0].fields


def test_threads_reduce_rows_by_themselves() -> None:
    """Nothing behind the end of a row is computed, and no lanes are exchanged."""
    piece = segments(sums, 2_000_000, 21)[0]
    staged = segment_time(piece, replace(piece.params, staged=True, block_x=128, num_warps=4))
    padded = segment_time(piece, replace(piece.params, staged=False, block_x=128, num_warps=4))
    assert staged is not None and padded is not None
    assert staged.resources["instructions"] < 0.5 * padded.resources["instructions"]
