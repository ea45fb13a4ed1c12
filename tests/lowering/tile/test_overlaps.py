"""Last tiles of an axis that begin earlier, and where they must not."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonfuser import FusionDefinition

NAN = float("nan")


def definition(body: Any, *inputs: torch.Tensor) -> FusionDefinition:
    with FusionDefinition() as fd:
        body(fd, *map(fd.from_pytorch, inputs))
    return fd


def with_params(fd: FusionDefinition, inputs: Any, **fields: Any) -> dict[str, Any]:
    """The schedule of the only kernel, with other params: of a tile of two sides, those alone."""
    schedule = fd.schedule(inputs).to_dict()
    (segment,) = schedule["segments"]
    if "block_y" in fields:
        segment |= {"scheduler": "transpose", "params": {}}
    segment["params"] |= fields
    return schedule


def text_of(fd: FusionDefinition, inputs: Any, schedule: dict[str, Any]) -> str:
    (kernel,) = fd.kernels(inputs, schedule=schedule)
    return kernel.text


def norm(fd: Any, x: Any, y: Any) -> None:
    z = fd.ops.mul(x, y)
    fd.add_output(fd.ops.sum(z, [1]))
    fd.add_output(fd.ops.relu(z))


def chain(fd: Any, x: Any, y: Any) -> None:
    fd.add_output(fd.ops.add(fd.ops.mul(x, y), 1.0))


def turned(fd: Any, x: Any, y: Any) -> None:
    fd.add_output(fd.ops.add(fd.ops.permute(x, [1, 0]), fd.ops.permute(y, [1, 0])))
    fd.add_output(fd.ops.neg(y))


def expected(body: Any, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    if body is norm:
        return [(x * y).sum(1), (x * y).relu()]
    return [x * y + 1.0] if body is chain else [(x + y).T, -y]


CASES = [
    (norm, {"block_x": 8}),
    (chain, {"block_x": 64}),
    (turned, {"block_x": 8, "block_y": 16}),
]

SIZES = given(rows=st.integers(57, 97), columns=st.integers(113, 140))


def check(body: Any, fields: dict[str, int], rows: int, columns: int) -> None:
    x, y = torch.randn(rows, columns), torch.randn(rows, columns)
    x[-1, -1], x[0, 0], y[-1, 0] = NAN, -0.0, float("inf")
    fd = definition(body, x, y)
    found = fd.run([x, y], schedule=with_params(fd, [x, y], **fields))
    for one, other in zip(found, expected(body, x, y), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize(("body", "fields"), CASES)
@settings(max_examples=3)
@SIZES
def test_every_element_is_that_of_torch(body, fields, rows, columns):
    check(body, fields, rows, columns)


@pytest.mark.slow
@pytest.mark.parametrize(("body", "fields"), CASES)
@settings(max_examples=12)
@SIZES
def test_every_element_is_that_of_torch_at_more_sizes(body, fields, rows, columns):
    check(body, fields, rows, columns)


@pytest.mark.parametrize("rows", [15, 63, 71, 4097])
def test_a_tile_of_rows_has_no_mask(rows):
    inputs = [torch.empty(rows, 100), torch.empty(rows, 100)]
    fd = definition(norm, *inputs)
    text = text_of(fd, inputs, with_params(fd, inputs, block_x=8))
    assert f"x = tl.minimum(tl.program_id(0) * XBLOCK, {rows} - XBLOCK) + " in text
    assert "x_mask" not in text


@pytest.mark.parametrize(("rows", "masked"), [(7, True), (16, False), (9, True), (49, True)])
def test_one_tile_whole_tiles_and_much_twice_begin_where_they_did(rows, masked):
    inputs = [torch.empty(rows, 100), torch.empty(rows, 100)]
    fd = definition(norm, *inputs)
    text = text_of(fd, inputs, with_params(fd, inputs, block_x=8))
    assert "x = tl.program_id(0) * XBLOCK + " in text
    assert ("x_mask" in text) == masked


def test_a_result_that_replaces_its_input_is_computed_once():
    """The program of the last tile would load what another one has stored."""
    x = torch.randn(100, 70)

    def body(fd: Any, x: Any) -> None:
        fd.add_output(fd.ops.add(fd.ops.sum(x, [1], keepdim=True), x), alias_input=x)

    fd = definition(body, x)
    schedule = with_params(fd, [x], block_x=8)
    assert "x_mask = x < 100" in text_of(fd, [x], schedule)
    wanted = x.sum(1, keepdim=True) + x
    fd.run([x], schedule=schedule)
    torch.testing.assert_close(x, wanted)


def test_elements_that_are_scattered_are_written_once():
    x, index, src = torch.zeros(52, 33), torch.randint(0, 52, (40, 33)), torch.randn(40, 33)

    def body(fd: Any, x: Any, index: Any, src: Any) -> None:
        fd.add_output(fd.ops.scatter(x, index, fd.ops.mul(src, 2.0), 0))

    inputs = [x, index, src]
    fd = definition(body, *inputs)
    schedule = fd.schedule(inputs).to_dict()
    for segment in schedule["segments"]:
        segment["params"]["block_x"] = 128
    copied, scattered = fd.kernels(inputs, schedule=schedule)
    assert "tl.minimum(tl.program_id(0) * XBLOCK, 1716 - XBLOCK)" in copied.text
    assert "x_mask = x < 1320" in scattered.text
    (found,) = fd.run(inputs, schedule=schedule)
    # Of elements that go to one place any may be there.
    assert ((found == 0) == (x.scatter(0, index, src * 2.0) == 0)).all()


@pytest.mark.parametrize(("columns", "overlaps"), [(100, True), (99, False)])
def test_random_numbers_are_drawn_eight_at_a_time(columns, overlaps):
    """A tile that begins inside of eight of them would draw each by itself."""
    x = torch.empty(26, columns)

    def body(fd: Any, x: Any) -> None:
        seed, offset = fd.define_scalar(7), fd.define_scalar(8)
        drawn = fd.ops.uniform(0.0, 1.0, [26, columns], rng_seed=seed, rng_offset=offset)
        fd.add_output(fd.ops.mul(x, drawn))

    fd = definition(body, x)
    text = text_of(fd, [x], with_params(fd, [x], block_x=128))
    assert ("tl.minimum(tl.program_id" in text) == overlaps
    assert re.search(r"by_four|by_eight", text)


def test_sizes_that_vary_keep_their_mask():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), [1]))
    for rows in (100, 104, 111, 113):
        x = torch.randn(rows, 60)
        assert all("tl.minimum(tl.program_id" not in kernel.text for kernel in fd.kernels([x]))
        (out,) = fd.run([x])
        torch.testing.assert_close(out, x.exp().sum(1))
