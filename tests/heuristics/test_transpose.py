"""Tiles of transposes: what the order of programs changes, and what is predicted for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.lowering.harness import record
from tritonfuser import DataType, FusionDefinition
from tritonfuser.devices import known
from tritonfuser.heuristics import transpose
from tritonfuser.heuristics.cost import kernels
from tritonfuser.heuristics.cost.flat.traffic import FlatStreams, flat_streams
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.cost.tiles import tile_of
from tritonfuser.heuristics.params import PointwiseParams, TransposeParams
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.streams import Stream, StrideTerm

TILES = [
    TransposeParams(block_x=x, block_y=y, num_warps=4)
    for x, y in [(16, 64), (16, 128), (32, 32), (64, 16), (128, 16)]
]
WORK = ElementWork(before=3.0)


def transposed(rows: int, columns: int, kind: torch.dtype) -> Problem:
    x = torch.empty(rows, columns, dtype=kind, device="meta")
    y = torch.empty(columns, rows, dtype=kind, device="meta")
    with FusionDefinition() as fd:
        turned = fd.ops.permute(fd.from_pytorch(y), [1, 0])
        fd.add_output(fd.ops.add(fd.from_pytorch(x), turned))
    (piece,) = fd.segments([x, y], arch="sm_90").segments
    assert piece.scheduler == "transpose"
    problem = piece.problem
    assert problem is not None
    return problem


@pytest.mark.parametrize(("rows", "columns"), [(4096, 4100), (30000, 1003), (100, 200003)])
def test_the_order_of_programs_changes_nothing_but_bytes_in_vain(rows: int, columns: int) -> None:
    """So a tile is costed once for both orders."""
    problem = transposed(rows, columns, torch.bfloat16)
    streams, differ = flat_streams(problem), 0
    for tile in TILES:
        turned = replace(tile, first="y")
        programs = tile_of(problem, tile).programs
        more = streams.refetched_bytes(turned, programs) - streams.refetched_bytes(tile, programs)
        along_x, along_y = (predicted(problem, each, WORK) for each in (tile, turned))
        assert along_x is not None and along_y is not None
        found = along_x.with_more_bytes(more, problem.device)
        assert found.seconds == pytest.approx(along_y.seconds, rel=1e-9)
        assert found.resources == pytest.approx(along_y.resources, rel=1e-9)
        differ += more != 0
    assert differ


def test_rereads_are_those_that_miss_the_l2_cache() -> None:
    """A tensor of 64 MiB for each of a batch of 8, of which one with all else is 192 MiB."""
    elements = 1 << 24
    batch, shared = StrideTerm(0, 1, 8, elements), StrideTerm(1, 1, elements, 1)
    mask = Stream(item_bytes=4, total_bytes=4 * elements, stride_terms=(shared,))
    whole = Stream(item_bytes=4, total_bytes=32 * elements, stride_terms=(batch, shared))
    problem = Problem(
        parallel=8 * elements,
        axes=(8, elements),
        streams=(mask, whole, replace(whole, is_store=True)),
        across=(0,),
        crossing=8,
        device=known("sm_90"),
    )
    streams, one = flat_streams(problem), TransposeParams(block_x=512, block_y=1, num_warps=4)
    found = {
        (first, block_y): streams.refetched_bytes(params, tile_of(problem, params).programs)
        for first in ("x", "y")
        for block_y in (1, 8)
        for params in [replace(one, first=first, block_y=block_y)]
    }
    # All but the first of the batch, and nearly all is lost: 140 MB between.
    assert 0.85 * 7 * mask.total_bytes < found["x", 1] < 7 * mask.total_bytes
    assert found["y", 1] < 0.01 * mask.total_bytes
    assert found["x", 8] == found["y", 8] == 0


def test_a_tile_is_costed_once_for_both_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, asked = transposed(30000, 1003, torch.bfloat16), []

    class Counted(kernels.Times):
        def __call__(self, params):
            asked.append((params.block_x, params.block_y, params.num_warps))
            return super().__call__(params)

    monkeypatch.setattr(transpose, "Times", Counted)
    transpose._fastest.cache_clear()
    transpose.propose(problem)
    assert asked and len(asked) == len(set(asked))


@pytest.mark.parametrize("rows", [1000, 30280])
def test_programs_run_along_the_side_that_the_grid_has_room_for(rows: int) -> None:
    """The second axis of a grid has 65,535 programs at most."""
    x = torch.empty(rows, 17, 961, dtype=torch.bfloat16, device="meta")
    y = torch.empty(rows, 961, 17, dtype=torch.bfloat16, device="meta")
    with FusionDefinition() as fd:
        turned = fd.ops.permute(fd.from_pytorch(y), [0, 2, 1])
        fd.add_output(fd.ops.sub(fd.from_pytorch(x), turned))
    (piece,) = fd.segments([y, x], arch="sm_90").segments
    problem = piece.problem
    assert problem is not None and problem.crossing == 17
    params = transpose.propose(problem)
    assert isinstance(params, TransposeParams) and params.first == "y"
    assert rows * 961 <= 65535 * params.block_x


# --- how threads lie over a tile -----------------------------------------------------------------

ROWS, COLUMNS = 4096, 4104


def problem_of(body: Any, *given: torch.Tensor) -> Problem:
    """The facts of the only kernel of a definition."""
    (piece,) = record(body, given).segments(list(given), arch="sm_90").segments
    assert piece.problem is not None and piece.problem.across
    return piece.problem


def empty(*shape: int, kind: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=kind, device="meta")


def turned_sum(fd: Any, x: Any, y: Any, *along: Any) -> Any:
    """``x`` and the transpose of ``y``, times what lies along the rows of both."""
    both = (fd.ops.cast(value, dtype=DataType.Float) for value in (x, fd.ops.permute(y, [1, 0])))
    found = fd.ops.add(*both)
    for value in along:
        wide = fd.ops.broadcast(fd.ops.cast(value, dtype=DataType.Float), [True, False])
        found = fd.ops.mul(found, wide)
    return fd.ops.cast(found, dtype=DataType.BFloat16)


def test_stores_have_a_layout_of_their_own() -> None:
    """Rows of an odd length are stored element by element, whatever lies beside them in vectors."""
    odd = COLUMNS + 1
    plain = problem_of(turned_sum, empty(ROWS, odd), empty(odd, ROWS))
    mask = empty(odd, kind=torch.bool)
    masked = problem_of(turned_sum, empty(ROWS, odd), empty(odd, ROWS), mask)
    params = TransposeParams(block_x=64, block_y=64, num_warps=8)
    one, other = (FlatStreams(each).loads(params, 256) for each in (plain, masked))
    assert one.written_bytes == other.written_bytes


@pytest.mark.parametrize(("block_x", "warps"), [(64, 4), (64, 8), (32, 16), (128, 8)])
def test_each_warp_loads_what_has_fewer_elements_than_there_are_threads(
    block_x: int, warps: int
) -> None:
    """The L1 cache has it when the second warp does."""
    given = empty(ROWS, COLUMNS), empty(COLUMNS, ROWS), empty(COLUMNS, 8)[:, 0]
    problem = problem_of(turned_sum, *given)
    params = TransposeParams(block_x=block_x, block_y=64, num_warps=warps)
    found = FlatStreams(problem).loads(params, 32 * warps)
    assert 0 < found.hit_lines < found.lines


def test_a_tensor_of_as_many_elements_is_loaded_once() -> None:
    given = empty(ROWS, COLUMNS), empty(COLUMNS, ROWS), empty(COLUMNS, 8)[:, 0]
    problem = problem_of(turned_sum, *given)
    params = TransposeParams(block_x=256, block_y=16, num_warps=8)
    assert FlatStreams(problem).loads(params, 256).hit_lines == 0


@pytest.mark.parametrize(("width", "is_kept"), [(4096, True), (4097, True), (1 << 22, False)])
def test_weights_are_in_the_l1_cache_unless_too_much_passes_it(width: int, is_kept: bool) -> None:
    def scaled(fd: Any, x: Any, weight: Any) -> Any:
        return fd.ops.mul(x, fd.ops.broadcast(weight, [True, False]))

    given = [empty(max(1 << 24, 8 * width) // width, width), empty(width)]
    (piece,) = record(scaled, given).segments(given, arch="sm_90").segments
    assert piece.problem is not None
    params = PointwiseParams(block_x=1024, num_warps=4)
    loads = FlatStreams(piece.problem).loads(params, 128)
    found = FlatStreams(piece.problem).traffic(params, 128).windows.hit_lines
    share = found / sum(loads.shared)
    assert share > 0.9 if is_kept else share < 0.1


def across(rows: int, columns: int) -> Problem:
    """A transpose of so many rows, each of which becomes a column."""
    return problem_of(lambda fd, x: fd.ops.neg(fd.ops.permute(x, [1, 0])), empty(rows, columns))


@pytest.mark.parametrize("rows", [10602, 10608])
def test_rows_of_a_tile_share_the_sectors_that_warps_store_in_part(rows: int) -> None:
    """Rows of 10608 results in bfloat16 begin at sectors; of 10602, wider tiles cut fewer."""
    streams = FlatStreams(across(rows, 7512))
    wide, narrow = (
        streams.loads(TransposeParams(block_x=x, block_y=32, num_warps=8), 256).partial_sector_bytes
        for x in (256, 64)
    )
    assert wide == narrow == 0.0 if rows % 16 == 0 else wide == narrow > 0
    if rows % 16:
        each = wide / 256
        assert each < narrow / 64 / 3.9


def test_a_contiguous_result_is_stored_in_whole_sectors_however_long_its_rows_are() -> None:
    """Also where a weight along the rows keeps these from being one axis."""
    given = [empty(8192, 8193), empty(8193)]

    def scaled(fd: Any, x: Any, weight: Any) -> Any:
        return fd.ops.mul(x, fd.ops.broadcast(weight, [True, False]))

    (piece,) = record(scaled, given).segments(given, arch="sm_90").segments
    assert piece.problem is not None
    params = PointwiseParams(block_x=1024, num_warps=4)
    assert FlatStreams(piece.problem).loads(params, 128).partial_sector_bytes == 0.0


def test_short_runs_that_are_read_far_apart_cost_memory_time() -> None:
    """The next tile of a row of 256 elements comes when all rows had their first one."""
    problem = across(1 << 21, 256)
    streams = FlatStreams(problem)
    short, long = (
        streams.refetched_bytes(params, tile_of(problem, params).programs)
        for params in (TransposeParams(block_x=128, block_y=y, num_warps=8) for y in (32, 256))
    )
    assert short > 0.1 * problem.moved_bytes > 10 * long
