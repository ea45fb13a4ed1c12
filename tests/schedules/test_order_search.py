"""Orders of axes are searched: in the space, near a schedule, told apart by the cost model."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.lowering.harness import lowered, record, texts
from tritonfuser.frontend.tune.candidates import candidates, neighbours
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.params import TransposeParams
from tritonfuser.heuristics.problem import ElementWork
from tritonfuser.heuristics.search.choice import chosen
from tritonfuser.heuristics.search.spaces import SPACES
from tritonfuser.lowering.axis_order import ordered, runs_along_y
from tritonfuser.lowering.segments.segment import Segment
from tritonfuser.symbolic.index_expr import extent

WORK = ElementWork(before=4.0)


def turned(fd: Any, x: Any) -> Any:
    return fd.ops.neg(fd.ops.permute(x, [0, 2, 1]))


def added(fd: Any, x: Any, y: Any) -> Any:
    return fd.ops.add(x, y)


def columns(fd: Any, x: Any) -> Any:
    return fd.ops.sum(x, [1])


def crossed(fd: Any, x: Any, y: Any) -> Any:
    made = fd.ops.mul(x, fd.ops.permute(y, [0, 2, 3, 1]))
    return fd.ops.sub(made, fd.ops.max(made, [3], keepdim=True))


CASES: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "turned": (turned, [(64, 1024, 2048)]),
    "added": (added, [(64, 1024, 2048), (1024, 1)]),
    "columns": (columns, [(64, 1024, 2048)]),
    "crossed": (crossed, [(64, 28, 28, 256), (64, 256, 28, 28)]),
}


def segmented(name: str) -> Any:
    body, shapes = CASES[name]
    inputs = [torch.empty(*shape, device="meta", dtype=torch.bfloat16) for shape in shapes]
    return lowered(record(body, inputs), inputs).segmented


def segment(name: str) -> Segment:
    found: Segment = segmented(name).segments[0]
    return found


def orders(params: Any) -> tuple[Any, ...]:
    return params.axes, getattr(params, "across", ()), getattr(params, "first", "")


@pytest.mark.parametrize("name", CASES)
def test_the_space_has_other_orders(name: str) -> None:
    piece = segment(name)
    assert piece.problem is not None
    space = SPACES[piece.scheduler](piece.problem)
    rng = random.Random(name)
    drawn = {orders(params) for params in filter(None, (space.draw(rng) for _ in range(60)))}
    assert len(drawn) > 2 or name == "columns"
    assert len({axes for axes, _, _ in drawn}) > 1
    assert '"axes"' in json.dumps(space.to_dict())


@pytest.mark.parametrize("name", CASES)
def test_a_tuner_tries_them(name: str) -> None:
    found = segmented(name)
    own = orders(found.segments[0].params)
    near = {orders(one.segments[0].params) for one in neighbours(found)}
    assert near - {own}
    drawn = candidates(found, random.Random(name))
    assert {orders(next(drawn).segments[0].params) for _ in range(20)} - {own}
    if name == "turned":
        assert {first for _, _, first in near} == {"x", "y"}
        assert {across for _, across, _ in near} == {(1,), (2,)}


@pytest.mark.parametrize(
    ("name", "axes"), [("added", (0, 2, 1)), ("columns", (1, 0)), ("crossed", (0, 2, 1))]
)
def test_the_model_counts_sectors_of_tiles_along_another_axis(name: str, axes: Any) -> None:
    piece = segment(name)
    assert piece.problem is not None
    params: Any = piece.params
    times = []
    for order in (params.axes, axes):
        time = predicted(piece.problem, replace(params, axes=order), WORK)
        assert time is not None
        times.append(time.seconds)
    assert times[1] > 2 * times[0]


def test_the_model_knows_that_outer_axes_in_any_order_touch_the_same_sectors() -> None:
    piece = segment("crossed")
    assert piece.problem is not None
    params: Any = piece.params
    found = []
    for order in ((0, 1, 2), (1, 0, 2)):
        time = predicted(piece.problem, replace(params, axes=order), WORK)
        assert time is not None
        found.append([time.resources[name] for name in ("memory", "L2 cache", "L1 cache")])
    assert found[0] == found[1]


def test_what_is_fetched_in_vain_is_there_for_the_next_program_along_a_sector() -> None:
    """Of rows of 64 a program has 8: the rest of what it fetches is for the next one along y."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.neg(fd.ops.permute(x, [1, 0]))

    inputs = [torch.empty(64, 1 << 24, device="meta", dtype=torch.bfloat16)]
    problem = lowered(record(body, inputs), inputs).segmented.segments[0].problem
    assert problem is not None
    tile = TransposeParams(block_x=256, block_y=8, num_warps=4, axes=(0,), across=(1,))
    x, y = (predicted(problem, replace(tile, first=side), WORK) for side in ("x", "y"))
    assert x is not None and y is not None
    assert y.resources["memory"] < 0.8 * x.resources["memory"]


@pytest.mark.parametrize("name", CASES)
def test_the_choice_leaves_the_order_of_axes_to_the_rules(name: str) -> None:
    piece = segment(name)
    assert piece.problem is not None
    assert orders(chosen(piece.problem, WORK))[:2] == ((), ())


@pytest.mark.parametrize(
    ("rows", "row", "side"),
    [(150528, 392, "y"), (150528, 512, "y"), (196, 300000, "x")],
    ids=["share sectors", "fewer along y", "fewer along x"],
)
def test_programs_run_along_the_side_whose_tiles_share_sectors(
    rows: int, row: int, side: str
) -> None:
    """Rows of 784 bytes begin inside sectors: what tiles along one fetch is read while it is there.

    Programs along x would come back to a row after the whole tensor. Where tiles share no sectors,
    they run along the side of fewer tiles.
    """
    width = min(row, 196) if rows > row else row // 2

    def body(fd: Any, x: Any, y: Any) -> Any:
        part = fd.ops.slice(x, [0, 0], [rows, width], [1, 1])
        return fd.ops.mul(fd.ops.permute(part, [1, 0]), y)

    sizes = (rows, row), (width, rows)
    inputs = [torch.empty(each, device="meta", dtype=torch.bfloat16) for each in sizes]
    (piece,) = lowered(record(body, inputs), inputs).segmented.segments
    assert isinstance(piece.params, TransposeParams) and piece.params.first == side


@pytest.mark.parametrize("sizes", [(64, 1 << 24), (1 << 24, 64)])
def test_programs_run_along_y_where_the_grid_has_room_for_that(sizes: tuple[int, int]) -> None:
    """Tiles along x are then on the second axis of the grid, which ends at 65,535."""
    inputs = [torch.empty(sizes, device="meta", dtype=torch.bfloat16)]
    body = record(lambda fd, x: fd.ops.neg(fd.ops.permute(x, [1, 0])), inputs)
    piece = lowered(body, inputs).segmented.segments[0]
    assert isinstance(piece.params, TransposeParams)
    wide = extent(ordered(piece, piece.params))
    for block_x in (2, 128, 1024):
        params = replace(piece.params, first="y", block_x=block_x)
        assert runs_along_y(piece, params) == (wide <= 65535 * block_x)


def test_the_order_of_a_kernel_is_that_of_memory() -> None:
    found = lowered(record(added, given := [torch.empty(5, 7, 9), torch.empty(7, 1)]), given)
    assert "tv0_ptr + x" in texts(found)[0]
