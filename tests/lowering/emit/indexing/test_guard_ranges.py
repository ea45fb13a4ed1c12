"""Guards that a tile's positions, or other guards, decide are not checked."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, check, lowered, texts
from tritonfuser.lowering.emit.indexing.guard_ranges import GuardRanges
from tritonfuser.lowering.tile.tile import Tile
from tritonfuser.shapes.index_map import Guard
from tritonfuser.symbolic.index_expr import Axis, digit
from tritonfuser.symbolic.shape_env import ShapeEnv
from tritonfuser.symbolic.sizes import symbol

R, T = Axis("r", 3080), Axis("t", 3080)
TILES = GuardRanges(
    {
        "r": Tile(R, "RBLOCK", masked=False, width=2048, stop=2048),
        "t": Tile(T, "TBLOCK", masked=True, width=1024, start=2048),
    }
)


def test_a_tile_decides_guards_of_its_positions():
    assert not TILES.remaining([Guard(digit(R), 0, 2464)])
    assert TILES.remaining([Guard(digit(R), 1, 2464)]) == [(digit(R), 1, None)]
    assert TILES.remaining([Guard(digit(T) - 1, 0, 2463)]) == [(digit(T), None, 2464)]
    assert TILES.never([Guard(digit(T), 0, 1233)]) and not TILES.never([Guard(digit(R), 0, 1233)])


def test_digits_of_a_tile():
    assert TILES.never([Guard(digit(T, 1024), 0, 2)])
    assert not TILES.remaining([Guard(digit(T, 1024), 2, 4)])
    assert TILES.never([Guard(digit(R, 1, 4096), 2048, 4096)])
    assert not TILES.never([Guard(digit(R, 1, 1000), 999, 1000)])


def test_guards_of_one_position_are_one():
    guards = [Guard(digit(R) - 1, 0, 2463), Guard(digit(R) - 616, 0, 617)]
    assert TILES.remaining(guards) == [(digit(R), 616, 1233)]
    assert TILES.never([Guard(digit(R) - 1233, 0, 5), Guard(digit(R), 0, 1233)])


def test_what_is_given_is_not_checked_again():
    given = [Guard(digit(R), 1, 2000)]
    assert not TILES.remaining([Guard(digit(R) - 1, 0, 3000)], given)
    assert TILES.remaining([Guard(digit(R) - 7, 0, 3000)], given) == [(digit(R), 7, None)]


def shifted(fd: Any, x: Any) -> Any:
    """Rows moved by one, and behind them rotated halves: sums of both along the rows."""
    moved = fd.ops.pad(fd.ops.slice(x, [0, 0], [8, 1539]), [1, 500])
    halves = [fd.ops.slice(moved, [0, a], [8, b]) for a, b in ((1020, 2040), (0, 1020))]
    turned = fd.ops.mul(fd.ops.cat([fd.ops.neg(halves[0]), halves[1]], 1), fd.ops.exp(moved))
    return fd.ops.sub(turned, fd.ops.sum(turned, [1], keepdim=True))


def test_tiles_of_a_row_load_only_what_they_may_read():
    changes: dict[str, Any] = {"block_x": 1, "block_r": 1024, "persistent": True}
    changes |= {"tails": (512, 256, 256), "align": 1}
    inputs = [noise(8, 1540)]
    (text,) = texts(lowered(shifted, inputs, H200, **changes))
    assert "t = 1024 +" in text
    masks = re.findall(r"inside\d+ = (.*)", text)
    decided = re.compile(r"r < 1540|t >= 1\b|<.* <")
    assert masks and not list(filter(decided.search, masks))
    check(shifted, *inputs, **changes)


@pytest.mark.parametrize("rows", [1, 8])
def test_rows_of_padding_alone(rows):
    def body(fd: Any, x: Any) -> Any:
        moved = fd.ops.pad(fd.ops.slice(x, [0, 3], [rows, 40]), [0, 1500])
        return fd.ops.sum(fd.ops.add(moved, 2.0), [1]), fd.ops.relu(moved)

    check(body, noise(rows, 64))


def test_positions_of_open_sizes_are_not_compared_with_zero():
    env = ShapeEnv()
    rows, columns, part = (symbol(env, n) for n in (64, 128, 32))
    x, y = Axis("x", rows), Axis("y", columns)
    ranges = GuardRanges({axis.name: Tile(axis, "XBLOCK", masked=False) for axis in (x, y)})
    for place in (digit(x), digit(x) * columns + digit(y)):
        assert ranges.remaining([Guard(place, 0, part)]) == [(place, None, part)]
