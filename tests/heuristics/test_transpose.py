"""Tiles of transposes: what the order of programs changes, and what is predicted for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tritonfuser import FusionDefinition
from tritonfuser.device import known
from tritonfuser.heuristics import transpose
from tritonfuser.heuristics.cost import kernels
from tritonfuser.heuristics.cost.flat_traffic import flat_streams
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.cost.tiles import tile_of
from tritonfuser.heuristics.params import TransposeParams
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


def test_rereads_are_those_that_the_l2_cache_has_lost() -> None:
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
