"""Tiles with a second side along axes that a tensor is broadcast along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, schedulers, small, texts
from tritonfuser import DataType
from tritonfuser.heuristics.params import TransposeParams


def rotation(batch: int, heads: int, tokens: int, width: int) -> Callable[..., Any]:
    """A rotary embedding of ``[batch, heads, tokens, width]``."""
    half = width // 2

    def rotated(fd: Any, x: Any, cos: Any, sin: Any) -> Any:
        x, cos, sin = (fd.ops.cast(each, DataType.Float) for each in (x, cos, sin))
        low = fd.ops.slice(x, [0, 0, 0, 0], [batch, heads, tokens, half])
        high = fd.ops.slice(x, [0, 0, 0, half], [batch, heads, tokens, width])
        cos, sin = (fd.ops.broadcast(each, [True, True, False, False]) for each in (cos, sin))
        turned = fd.ops.mul(fd.ops.cat([fd.ops.neg(high), low], 3), sin)
        return fd.ops.cast(fd.ops.add(fd.ops.mul(x, cos), turned), DataType.BFloat16)

    return rotated


def rotary(batch: int, heads: int, tokens: int, width: int, device: str) -> list[torch.Tensor]:
    shapes = (batch, heads, tokens, width), (tokens, width), (tokens, width)
    made = [
        noise(*shape, seed=n) if device == "cpu" else torch.empty(shape, device=device)
        for n, shape in enumerate(shapes)
    ]
    return [each.to(torch.bfloat16) for each in made]


def test_heads_share_what_is_loaded_of_sines() -> None:
    sizes = 12, 4, 1920, 442
    given = rotary(*sizes, "meta")
    found = lowered(record(rotation(*sizes), given), given)
    (segment,) = found.segmented.segments
    assert isinstance(segment.params, TransposeParams)
    # A block of sines along the width alone, for several heads.
    assert "YBLOCK" in texts(found)[0]


def test_the_numbers() -> None:
    sizes = 2, 4, 240, 96
    found = check(rotation(*sizes), *rotary(*sizes, "cpu"), facts=small(2), tolerance=2e-2)
    assert schedulers(found) == ["transpose"]


def scaled(fd: Any, x: Any, y: Any, weight: Any) -> Any:
    """Rows of two tensors, with a weight of each column."""
    return fd.ops.mul(fd.ops.mul(x, y), fd.ops.broadcast(weight, [True, False]))


def test_rows_at_odd_elements_stay_one_run() -> None:
    """H200, a softmax backward of 8192 x 8193 in bfloat16 took 166 us, and 184 by tiles of two
    sides, whose loads are of 2 bytes."""
    shapes = ((8192, 8193), (8192, 8193), (8193,))
    given = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    assert schedulers(lowered(record(scaled, given), given)) == ["pointwise"]


def shifted(fd: Any, x: Any, weight: Any, each: Any) -> Any:
    """Products with a weight of each position, and a number for each batch."""
    made = fd.ops.mul(x, fd.ops.broadcast(weight, [True, False, False]))
    return fd.ops.add(made, fd.ops.broadcast(each, [False, True, True]))


def test_a_number_for_each_batch_is_no_reason_for_short_pieces() -> None:
    """H200, a rotary embedding of 41038 x 64 x 174 and such numbers: 2.0 ms by tiles of 64 x 16
    along the batches, 1.22 by tiles of one side."""
    shapes = ((41038, 64, 174), (64, 174), (41038,))
    given = [torch.empty(shape, dtype=torch.bfloat16, device="meta") for shape in shapes]
    assert schedulers(lowered(record(shifted, given), given)) == ["pointwise"]
