"""Both elements of interleaved pairs are loaded and stored as runs along one side of a tile."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, H200, check, lowered, schedulers, small, texts


def body_of(batch: int, rows: int, width: int) -> Any:
    """Rotated pairs, as they lie and with the dims of a batch turned around."""

    def body(fd: Any, x: Any, cos: Any, sin: Any) -> Any:
        second, first = (
            fd.ops.slice(x, [0, 0, 0, n], [batch, rows, width, n + 1], [1, 1, 1, 1]) for n in (1, 0)
        )
        cos, sin = (fd.ops.broadcast(v, [True, True, False, False]) for v in (cos, sin))
        swapped = fd.ops.cat([fd.ops.neg(second), first], 3)
        turned = fd.ops.add(fd.ops.mul(x, cos), fd.ops.mul(swapped, sin))
        x, across = (fd.ops.permute(v, [0, 3, 2, 1]) for v in (x, turned))
        return turned, fd.ops.add(across, x)

    return body


def given(batch: int, rows: int, width: int) -> list[torch.Tensor]:
    return [noise(batch, rows, width, 2), noise(width, 2, seed=1), noise(width, 2, seed=2)]


@pytest.mark.parametrize("sizes", [(1, 1, 2), (1, 5, 3), (2, 64, 32), (1, 65, 33), (3, 301, 40)])
def test_rotated_pairs_and_their_transpose(sizes):
    for facts in (H200, small(1), CPU):
        check(body_of(*sizes), *given(*sizes), facts=facts)


def test_runs_along_a_side_are_loaded_and_stored():
    found = lowered(body_of(1, 305, 6880), given(1, 305, 6880), H200)
    assert schedulers(found) == ["transpose"]
    (text,) = texts(found)
    assert len(re.findall(r"tl\.load\(tv0_ptr", text)) == 1 and "_transposed" not in text
    assert "tv0, tv0_1 = split_row_pairs(tv0_pair)" in text
    assert text.count("tl.store(") == 3 and text.count("tl.interleave(") == 1


@pytest.mark.covering
@pytest.mark.parametrize("first", ["x", "y"])
@pytest.mark.parametrize(
    ("sizes", "form"), [((1, 130, 70), "row"), ((2, 64, 320), "row"), ((3, 301, 69), "column")]
)
def test_pairs_along_either_dim_of_a_block(first, sizes, form):
    changes: dict[str, Any] = {"first": first, "block_x": 32, "block_y": 32}
    found = check(body_of(*sizes), *given(*sizes), facts=small(1), **changes)
    assert f"split_{form}_pairs" in "".join(texts(found))
    assert form == "row" or "interleave_columns(" in "".join(texts(found))
