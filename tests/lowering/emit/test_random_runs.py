"""Four neighbours are drawn from one counter along a dim of a tile that runs over several."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
import torch

from tritonfuser import FusionDefinition
from tritonfuser.ops.creation import philox

SEEDS = {"rng_seed": 5, "rng_offset": 2}
TILE = {"block_x": 32, "block_y": 16, "axes": [0, 2, 3], "across": [1]}


def crossing(sizes: tuple[int, int, int, int]) -> tuple[FusionDefinition, list[Any]]:
    """A draw of [a * b, h, w] that multiplies ones which lie the other way round.

    A view splits its first dim, so that a tile crosses ``b``, and runs over a, h and w.
    """
    a, b, h, w = sizes
    x = torch.ones(w, h, a * b).permute(2, 1, 0)
    y = torch.ones(a, b, h, w)
    with FusionDefinition() as fd:
        t, u = fd.from_pytorch(x), fd.from_pytorch(y)
        drawn = fd.ops.uniform(0.0, 1.0, [a * b, h, w], **SEEDS)
        product = fd.ops.mul(drawn, t)
        fd.add_output(fd.ops.mul(fd.ops.reshape(product, [a, b, h, w]), u))
    return fd, [x, y]


def schedule_of(fd: FusionDefinition, inputs: list[Any]) -> dict[str, Any]:
    schedule = fd.schedule(inputs).to_dict()
    (segment,) = schedule["segments"]
    segment |= {"scheduler": "transpose", "params": dict(TILE)}
    return schedule


@pytest.mark.parametrize(("row", "together"), [(8, True), (12, True), (9, False), (6, False)])
def test_rows_of_whole_counters_are_drawn_together(row: int, together: bool) -> None:
    fd, inputs = crossing((3, 10, 5, row))
    (kernel,) = fd.kernels(inputs, schedule=schedule_of(fd, inputs))
    assert ("philox_uniform_by_four(" in kernel.text) == together
    assert ("philox_uniform(" in kernel.text) == (not together)


@hypothesis.settings(max_examples=20, deadline=None)
@hypothesis.given(st.tuples(*(st.integers(2, most) for most in (3, 18, 4))), st.integers(1, 5))
def test_numbers_are_those_of_the_positions(sizes: tuple[int, int, int], fours: int) -> None:
    fd, inputs = crossing((*sizes, 4 * fours))
    (found,) = fd.run(inputs, schedule=schedule_of(fd, inputs))
    wanted = philox.uniform((found.numel(),), *SEEDS.values())
    assert torch.equal(found.flatten(), wanted)
