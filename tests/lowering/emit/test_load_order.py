"""The order of loads: what is computed has the layout of the last one."""

from __future__ import annotations

import re

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, check, lowered, texts
from tritonfuser import DataType
from tritonfuser.lowering.build import compile_kernel
from tritonfuser.lowering.emit.lines import Block, Line
from tritonfuser.lowering.emit.load_order import crossing_first, loads_first


def loaded(text):
    """The tensors that are loaded, in order."""
    return re.findall(r"tl\.load\((?:tl\.trans\()?(\w+)_ptr", text)


def load(name, places, fastest, size, dtype=DataType.BFloat16):
    block = Block(frozenset(places), fastest, size, dtype)
    return Line(f"{name} = tl.load({name}_ptr + x, mask=m, other=0)", loads=name, block=block)


def names_of(lines):
    return [line.text.split(" = ")[0] for line in lines]


def test_the_layout_of_most_bytes_comes_last():
    tile, turned = load("tile", {0, 1}, 1, 4096), load("turned", {0, 1}, 0, 2048)
    row, column = load("row", {1}, 1, 512), load("column", {0}, 0, 64)
    assert names_of(loads_first([tile, row, turned, column])) == ["column", "row", "turned", "tile"]


def test_many_rows_outweigh_a_tile():
    rows = [load(f"row{n}", {1}, 1, 1024) for n in range(5)]
    assert names_of(loads_first([*rows, load("tile", {0, 1}, 1, 4096)]))[0] == "tile"


def test_what_is_stored_counts():
    one, two = load("one", {0, 1}, 0, 4096), load("two", {0, 1}, 1, 4096)
    block = Block(frozenset((0, 1)), 0, 4096, DataType.Float)
    lines = [one, two, Line("tl.store(o_ptr + x, one + two)", stores="o", block=block)]
    assert names_of(loads_first(lines))[:2] == ["two", "one"]


def test_rows_across_a_tile_come_before_it_where_other_loads_stay():
    tile, row = load("tile", {0, 1}, 0, 4096), load("row", {1}, 1, 512)
    column, turned = load("column", {0}, 0, 64), load("turned", {0, 1}, 1, 2048)
    lines = [Line("x = 1"), tile, Line("a = exp(tile)"), Line("y = 2"), row, column, turned]
    assert names_of(crossing_first(lines, 256)) == [
        "x",
        "row",
        "tile",
        "a",
        "y",
        "column",
        "turned",
    ]
    assert crossing_first(lines, 512) == lines


def test_rows_that_wait_for_something_stay():
    tile, row = load("tile", {0, 1}, 0, 4096), load("row", {1}, 1, 512)
    place = Line("x = tl.sum(tile, 0)")
    assert crossing_first([tile, place, row], 32) == [tile, place, row]


def norm_of_columns(fd, x, weight):
    """Two sums over columns, with a weight for each row."""
    squares = fd.ops.sum(fd.ops.mul(x, x), [0])
    scaled = fd.ops.mul(x, fd.ops.broadcast(fd.ops.rsqrt(squares), [True, False]))
    weighted = fd.ops.mul(scaled, fd.ops.broadcast(weight, [False, True]))
    return fd.ops.sum(weighted, [0])


def test_a_tile_whose_loads_stay_keeps_its_layout_too():
    inputs = (torch.empty(235, 1867776, device="meta"), torch.empty(235, device="meta"))
    (source,) = lowered(norm_of_columns, inputs, H200).sources
    assert loaded(source.text) == ["tv1", "tv0"]
    ir = compile_kernel(source, "sm_90", (True,) * len(source.args)).binary.asm["ttgir"]
    assert not re.findall(r"convert_layout .* -> tensor<[^1]\d*x\d\d+xf32", ir)


@pytest.mark.parametrize(
    ("dtype", "bits", "value"),
    [
        (DataType.Bool, "int8", "tv0_bits != 0"),
        (DataType.Float, "int32", "tv0_bits.to(tl.float32, bitcast=True)"),
        (DataType.Double, "int64", "tv0_bits.to(tl.float64, bitcast=True)"),
    ],
)
def test_what_changes_its_layout_is_used_behind_all_loads(dtype, bits, value):
    lines = [load("tv0", {0, 1}, 0, 1024, dtype), load("tv1", {0, 1}, 1, 4096)]
    first, second, third = [line.text for line in loads_first(lines)]
    pointer = f"tv0_ptr.to(tl.pointer_type(tl.{bits}))"
    assert first == f"tv0_bits = tl.load({pointer} + x, mask=m, other=0)"
    assert second == lines[1].text
    assert third == f"tv0 = {value}"


@pytest.mark.parametrize(("dtype", "bits"), [("Float", 0x3F800000), ("Double", 0x3FF0000000000000)])
def test_ones_beyond_a_mask_are_the_bits_of_a_one(dtype, bits):
    line = load("tv0", {0, 1}, 0, 1024, DataType[dtype])
    one = Line(line.text.replace("=0", "=1.0"), loads="tv0", block=line.block)
    assert f"other={bits})" in loads_first([one, load("tv1", {0, 1}, 1, 4096)])[0].text


def test_infinities_are_no_integers():
    line = load("tv0", {0, 1}, 0, 1024, DataType.Float)
    low = Line(line.text.replace("=0", '=float("-inf")'), loads="tv0", block=line.block)
    assert loads_first([low, load("tv1", {0, 1}, 1, 4096)])[0] == low


def softmax_of_columns(fd, x, row):
    """Online softmax over columns of a tensor, with a number for each row."""
    x = fd.ops.maximum(x, fd.ops.broadcast(row, [False, True]))
    top = fd.ops.broadcast(fd.ops.max(x, [0]), [True, False])
    return fd.ops.sum(fd.ops.exp(fd.ops.sub(x, top)), [0])


def test_a_tile_keeps_its_layout_beside_a_row():
    """H200, 11241 x 791 in float32 with what is around it: 136 us with the row loaded last, whose
    layout then was that of the tile, 81 with the tile loaded last."""
    inputs = torch.empty(11241, 791, device="meta"), torch.empty(11241, device="meta")
    source = lowered(softmax_of_columns, inputs, H200).sources[0]
    assert loaded(source.text) == ["tv1", "tv0"]
    ir = compile_kernel(source, "sm_90", (True,) * len(source.args)).binary.asm["ttgir"]
    tiles = re.findall(r"convert_layout .* -> tensor<(\d+)x(\d+)xf32", ir)
    rows = max(int(x) * int(y) for x, y in re.findall(r"tt\.load .*tensor<(\d+)x(\d+)x!tt", ir))
    assert all(int(x) * int(y) < rows for x, y in tiles)


def masked_norm(fd, x, mask):
    """Sums of squares of rows, with a mask that lies across."""
    kept = fd.ops.where(fd.ops.permute(mask, [1, 0]), x, 0.0)
    return fd.ops.sum(fd.ops.mul(kept, kept), [1])


def test_a_mask_that_lies_across_is_loaded_as_bytes():
    inputs = noise(40, 70), noise(70, 40, seed=1) > 0
    (text,) = texts(check(masked_norm, *inputs, block_x=8, num_warps=4))
    assert "tv1_ptr.to(tl.pointer_type(tl.int8))" in text
    assert loaded(text)[0] == "tv1"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_numbers_that_lie_across_are_loaded_as_words(dtype):
    def across(fd, x, y):
        return fd.ops.sum(fd.ops.mul(x, fd.ops.permute(y, [1, 0])), [1]), fd.ops.exp(x)

    x, y = noise(40, 70).to(dtype), noise(70, 40, seed=1).to(dtype)
    x[0, 0], y[0, 1], y[2, 0] = float("nan"), float("inf"), -0.0
    (text,) = texts(check(across, x, y, block_x=8, num_warps=4))
    word = "int32" if dtype is torch.float32 else "int64"
    assert f"tv1_ptr.to(tl.pointer_type(tl.{word}))" in text
