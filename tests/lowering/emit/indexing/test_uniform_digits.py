"""What lies along the batch of a tile's columns is loaded once, and not for each of them."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.harness import check, small, texts
from tritonfuser.heuristics.params import ReductionParams


def scaled_sum(like):
    """``sum(x * scale[:, :, None], 1)``: the scale is of the batch and of the rows."""

    def body(fd, x, scale):
        spread = fd.ops.broadcast_in_dim(scale, list(like), [0, 1])
        scaled = fd.ops.mul(x, spread)
        return scaled, fd.ops.sum(scaled, [1])

    return body, [like, like[:2]]


def text_of(like, block_x, stages=1):
    body, shapes = scaled_sum(like)
    torch.manual_seed(0)
    drawn = [torch.randn(shape) for shape in shapes]
    params = [ReductionParams(block_x=block_x, block_r=16, persistent=False, num_stages=stages)]
    found = check(body, *drawn, facts=small(1), params=params, two_steps=False)
    (text,) = texts(found)
    return text


@pytest.mark.covering
@pytest.mark.parametrize("like", [(3, 40, 64), (2, 33, 48), (5, 70, 16)])
@pytest.mark.parametrize(("block_x", "stages"), [(2, 1), (16, 1), (16, 3)])
def test_a_tile_inside_one_position_of_the_batch(like, block_x, stages):
    text = text_of(like, block_x, stages)
    assert f"x0 = tl.program_id(0) * XBLOCK // {like[2]}\n" in text


@pytest.mark.parametrize(
    ("like", "block_x"), [((3, 40, 24), 16), ((2, 33, 7), 4), ((3, 40, 16), 32)]
)
def test_a_tile_of_several_positions_has_one_for_each_column(like, block_x):
    assert f"x0 = x // {like[2]}\n" in text_of(like, block_x)


def test_rows_of_memory_have_one_for_each():
    def body(fd, x, mask):
        masked = fd.ops.add(x, fd.ops.broadcast_in_dim(mask, [3, 32, 40], [0, 2]))
        return (fd.ops.sum(masked, [2]),)

    torch.manual_seed(0)
    params = [ReductionParams(block_x=16, block_r=64, persistent=True)]
    drawn = torch.randn(3, 32, 40), torch.randn(3, 40)
    (text,) = texts(check(body, *drawn, facts=small(1), params=params, two_steps=False))
    assert "x0 = x // 32\n" in text
