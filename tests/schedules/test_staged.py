"""Short rows whole in threads, loaded as one run through shared memory: values, text, refusals."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from tests.lowering.harness import compare, framed, lowered, planned, poisoned, record
from tritonfuser import DataType, ParamsError
from tritonfuser.frontend.inspect.oracle import reference
from tritonfuser.heuristics.params import HeuristicParams

ROWS = {"staged": True, "block_r": 32, "tails": (), "align": 1, "prefetch": False}


def softmax(fd: Any, x: Any) -> Any:
    wide = fd.ops.cast(x, DataType.Float)
    top = fd.ops.max(wide, [-1], keepdim=True)
    powers = fd.ops.exp(fd.ops.sub(wide, top))
    return fd.ops.div(powers, fd.ops.sum(powers, [-1], keepdim=True)), top


def sums(fd: Any, x: Any) -> Any:
    wide = fd.ops.cast(x, DataType.Float)
    var, mean = fd.ops.var_mean(wide, [-1], correction=0)
    return fd.ops.sum(fd.ops.mul(wide, wide), [-1]), var, mean


def norm_backward(fd: Any, x: Any, y: Any, weight: Any) -> Any:
    """Sums along rows and over them, with a weight of each column."""
    x, y, weight = (fd.ops.cast(v, DataType.Float) for v in (x, y, weight))
    product = fd.ops.mul(fd.ops.mul(x, y), fd.ops.broadcast(weight, [True, False]))
    mean = fd.ops.mul(fd.ops.sum(product, [-1], keepdim=True), 0.1)
    return fd.ops.sub(y, fd.ops.mul(x, mean)), fd.ops.sum(y, [0]), fd.ops.sum(product, [0])


def random_inputs(body: Any, rows: int, row: int, dtype: torch.dtype) -> list[torch.Tensor]:
    torch.manual_seed(rows + row)
    shapes = [(rows, row)] if body is not norm_backward else [(rows, row), (rows, row), (row,)]
    if dtype is torch.bool:
        return [torch.rand(shape) < 0.5 for shape in shapes]
    return [torch.randn(shape).mul(4).to(dtype) for shape in shapes]


def under(
    body: Any, inputs: list[torch.Tensor], **fields: Any
) -> tuple[list[HeuristicParams], list[str], list[torch.Tensor]]:
    """Params, texts and results of kernels whose rows are staged; these are compared."""
    given = [framed(x) for x in inputs]
    fd = record(body, given)
    changes = {"persistent": True, "block_x": 64, "block_m": 64, "num_warps": 4, **ROWS, **fields}
    found = lowered(fd, given, two_steps=False, **changes)
    with poisoned():
        results = planned(found, given).run(given)
    compare(results, reference(fd.fusion.ir, given))
    params = [piece.params for piece in found.segmented.segments]
    return params, [source.text for source in found.sources if source is not None], list(results)


@pytest.mark.parametrize("body", [softmax, sums, norm_backward])
@pytest.mark.parametrize("row", [17, 21, 32])
@pytest.mark.parametrize("rows", [1, 7, 64, 300])
def test_values_of_rows_that_tiles_hold_or_reach_past(body: Any, rows: int, row: int) -> None:
    params, texts, _ = under(body, random_inputs(body, rows, row, torch.bfloat16))
    assert all(getattr(p, "staged", False) for p in params)
    assert ("rows_of(" in texts[0]) == (rows > 1)


@pytest.mark.parametrize(
    "dtype", [torch.half, torch.float, torch.double, torch.int32, torch.int64, torch.bool]
)
def test_dtypes(dtype: torch.dtype) -> None:
    _, (text,), _ = under(sums, random_inputs(sums, 100, 19, dtype))
    assert "rows_of(tv0_run, 19, " in text


@pytest.mark.parametrize("row", [2, 3, 5, 49])
def test_lengths(row: int) -> None:
    """The element behind a row of 49 is the next row's."""
    block = 1 << (row - 1).bit_length()
    _, (text,), _ = under(softmax, random_inputs(softmax, 130, row, torch.float), block_r=block)
    assert f"rows_of(tv0_run, {row}, " in text and "run_of(" in text


def test_nan_and_infinity_stay_in_their_rows() -> None:
    x = torch.randn(70, 21)
    x[3, 20], x[4, 0], x[5] = float("nan"), float("inf"), float("-inf")
    x[6, 5] = -0.0
    _, (text,), _ = under(softmax, [x])
    assert "masked_rows_of(" in text


@pytest.mark.parametrize("rows", [50, 64, 333])
def test_stores_of_other_dtypes_and_of_one_number_a_row(rows: int) -> None:
    def body(fd: Any, x: Any) -> Any:
        top = fd.ops.max(x, [1], keepdim=True)
        spread = fd.ops.expand(top, [rows, 21])
        narrow = fd.ops.cast(fd.ops.sub(x, top), DataType.Half)
        across = fd.ops.permute(fd.ops.mul(x, top), [1, 0])
        return fd.ops.eq(x, top), spread, narrow, fd.ops.cast(x, DataType.Double), across

    _, (text,), _ = under(body, [torch.randn(rows, 21)])
    stores = [line for line in text.splitlines() if "tl.store(" in line]
    assert len(stores) == 5
    assert sum("_ptr + x_run, 1), run_of(" in line for line in stores) == 4


def test_what_lies_otherwise_is_loaded_as_in_any_tile() -> None:
    """A transposed tensor has no runs of rows, nor has every second column of one."""

    def body(fd: Any, x: Any, y: Any, z: Any) -> Any:
        return fd.ops.sum(fd.ops.mul(fd.ops.mul(x, y), z), [1])

    x, y, z = torch.randn(100, 21), torch.randn(21, 100).t(), torch.randn(100, 42)[:, ::2]
    _, (text,), _ = under(body, [x, y, z])
    assert len(re.findall(r"= masked_rows_of\(tv0_run, ", text)) == text.count("rows_of(") == 1


def test_shifted_rows_have_guards() -> None:
    """What is padded in front of a row is no run of memory."""

    def body(fd: Any, x: Any) -> Any:
        return fd.ops.sum(fd.ops.mul(x, fd.ops.pad(x, [1, -1, 0, 0])), [1])

    _, (text,), _ = under(body, [torch.randn(100, 21)])
    assert text.count("masked_rows_of(") == 1


def test_the_text_says_what_it_does() -> None:
    _, (text,), _ = under(softmax, random_inputs(softmax, 300, 21, torch.bfloat16))
    lines = [line.strip() for line in text.splitlines()]
    for line in (
        "x_first = tl.minimum(tl.program_id(0) * XBLOCK, 300 - XBLOCK)",
        "x_run = x_first * 21 + tl.arange(0, XBLOCK * RBLOCK)",
        "x_run_mask = tl.arange(0, XBLOCK * RBLOCK) < XBLOCK * 21",
        "tv0_run = tl.load(tv0_ptr + x_run, mask=x_run_mask, other=0)",
        'tv0 = masked_rows_of(tv0_run, 21, RBLOCK, XBLOCK, r_mask, other=float("-inf"))',
    ):
        assert line in lines
    assert (
        "tl.store(tl.max_contiguous(tv8_ptr + x_run, 1), run_of(tv8, 21), mask=x_run_mask)" in lines
    )


def test_numbers_of_rows_that_vary() -> None:
    fd = record(sums, [torch.randn(200, 21)])
    data = fd.schedule([torch.empty(200, 21, device="meta")], arch="sm_90").to_dict()
    fields = {**ROWS, "tails": [], "persistent": True, "block_x": 64, "num_warps": 4}
    del fields["prefetch"]
    data["segments"][0]["params"].update(fields)
    for rows in (200, 333, 5, 1):
        x = torch.randn(rows, 21)
        found = fd.run([x], schedule=data)
        compare(found, reference(fd.fusion.ir, [x]))


@pytest.mark.parametrize(
    ("body", "fields", "message"),
    [
        (sums, {"persistent": False, "block_r": 16}, "rows in loops, in tiles with tails"),
        (sums, {"block_r": 16, "tails": [8]}, "rows in loops, in tiles with tails"),
        (sums, {"block_x": 1}, r"several rows of several elements.*block_x=1 and block_r=32"),
        (norm_backward, {"prefetch": True}, "loaded a step ahead into registers"),
        (norm_backward, {"parts": 2, "block_m": 1, "block_r": 16}, "rows that programs share"),
        (sums, {"block_r": 16}, "block_r=16 is too small"),
    ],
)
def test_rows_that_are_not_whole_in_a_thread_are_refused(
    body: Any, fields: dict[str, Any], message: str
) -> None:
    inputs = random_inputs(body, 5000, 21, torch.bfloat16)
    fd = record(body, inputs)
    given = [torch.empty_like(x, device="meta") for x in inputs]
    data = fd.schedule(given, arch="sm_90").to_dict()
    rows = {"block_m": 64} if body is norm_backward else {"block_x": 64, "persistent": True}
    changes = {"staged": True, "block_r": 32, "tails": [], "num_warps": 4, **rows}
    data["segments"][0]["params"].update(changes)
    if body is norm_backward:
        data["segments"][0]["params"]["prefetch"] = False
    data["segments"][0]["params"].update(fields)
    with pytest.raises(ParamsError, match=message):
        fd.run(inputs, schedule=data)
    assert not fd.is_legal(data, given, arch="sm_90")


def test_a_search_has_it_for_short_rows_that_begin_inside_vectors() -> None:
    def tried(*shape: int) -> bool:
        given = [torch.empty(shape, dtype=torch.bfloat16, device="meta")]
        space = record(softmax, given).search_space(given, arch="sm_90")
        return '"staged": true' in str(space).replace("'", '"').replace("True", "true")

    assert tried(100_000, 21) and tried(100_000, 63)
    assert not tried(100_000, 24) and not tried(100_000, 77)
