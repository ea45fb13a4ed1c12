"""Rows whose length varies, in several tiles and in tiles that begin at vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.e2e.checking import gpu
from tests.e2e.opened import compile_open
from tests.lowering.graphs import layer_norm_backward, noise, softmax
from tests.lowering.harness import compare, framed, poisoned, record
from tests.lowering.tile.test_aligned_rows import dropped, maxima, widened
from tritonfuser import DataType
from tritonfuser.cache.executor import FusionExecutorCache
from tritonfuser.cache.keys.open_sizes import KeyReader
from tritonfuser.cache.keys.signature import key_maker
from tritonfuser.lowering.run_options import RunOptions


def backward(fd: Any, x: Any, w: Any, b: Any) -> Any:
    kind = DataType.Double if x.dtype() is DataType.Double else DataType.Float
    wide = fd.ops.cast(x, kind)
    found = layer_norm_backward(fd, wide, wide, fd.ops.cast(w, kind))
    return tuple(fd.ops.cast(item, x.dtype()) for item in found)


BODIES = {
    "layer norm": widened,
    "softmax": lambda fd, x, w, b: softmax(fd, x),
    "reduction": maxima,
    "layer norm backward": backward,
}

LENGTHS = {
    "short": (393, 448, 385, 400, 384, 449, 512),
    "one block": (2000, 1984, 1800, 2048, 2001, 1024),
    "one tail": (2300, 2304, 2250, 2560, 2100, 2049, 4096),
    "two tails": (3500, 3328, 3100, 3584, 3073, 3585),
    "odd": (2701, 2707, 2699, 3071, 2563, 2559, 1500),
    "odd, one block": (3999, 3585, 4095, 3583, 3001),
}
"""The length that is compiled for, and others, of which its kernels take some."""


def tensors(kind: str, rows: int, columns: int, dtype: torch.dtype) -> list[torch.Tensor]:
    count = 70 if "backward" in kind else rows
    given = [noise(count, columns), noise(columns, seed=3), noise(columns, seed=4)]
    return [framed(x.to(dtype)) for x in given]


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("kind", BODIES)
def test_other_lengths(kind: str, lengths: str, dtype: torch.dtype) -> None:
    given = [tensors(kind, 5, length, dtype) for length in LENGTHS[lengths]]
    fd = record(BODIES[kind], given[0])
    made = compile_open(fd, given[0], given[1:], gpu(1))
    assert made is not None and made.conditions.is_open
    key, reader = key_maker(fd.fusion.ir), KeyReader(fd.fusion.ir)
    served = [(plan, x) for x in given if (plan := made.at(reader.split(key(x)))) is not None]
    assert len(served) > 1
    for plan, inputs in served:
        doubled = [x.double() for x in inputs]
        expected = record(BODIES[kind], doubled).run(doubled)
        with poisoned():
            compare(plan.run(inputs), expected, tolerance=1e-4)


def tiles(*lengths: int) -> Any:
    """The tiles of a softmax of 2048 rows at the first length, where others were run before."""
    given = [[torch.empty(2048, length, device="meta")] for length in lengths]
    fd = record(lambda fd, x: softmax(fd, x), given[0])
    (kernel,) = fd.kernels(given[0], arch="sm_90", varying=given[1:])
    assert kernel.sizes
    return dict(kernel.constants), "whole_vectors" in kernel.text


def test_the_tiles_are_those_of_the_length() -> None:
    assert tiles(2000, 1984, 1800) == ({"RBLOCK": 2048}, False)
    assert tiles(2300, 2304, 2100) == ({"RBLOCK": 2048, "TBLOCK": 512}, False)
    assert tiles(2701, 2707, 2563) == ({"RBLOCK": 2048, "TBLOCK": 1024, "UBLOCK": 16}, True)
    assert tiles(3999, 3585, 4095) == ({"RBLOCK": 4096, "TBLOCK": 16}, True)


def test_a_length_that_tiles_hold_exactly_is_not_the_only_one() -> None:
    """5120 is a block of 4096 and a tail of 1024."""
    fd = record(lambda fd, x: softmax(fd, x), [torch.empty(2048, 5120, device="meta")])
    given = [[torch.empty(2048, length, device="meta")] for length in (5120, 5000, 4800)]
    (kernel,) = fd.kernels(given[0], arch="sm_90", varying=given[1:])
    assert kernel.sizes and "t_mask = t < size0" in kernel.text


@pytest.mark.covering
@pytest.mark.parametrize(
    "changes",
    [
        {"persistent": False, "block_r": 16, "tails": (32,)},
        {"persistent": False, "block_r": 16, "tails": (16, 8)},
        {"persistent": False, "block_r": 16, "tails": (16,), "backwards": True},
        {"persistent": True, "block_r": 64, "tails": (16, 8)},
        {"persistent": True, "block_r": 64, "tails": (32, 16), "align": 4},
        {"persistent": False, "block_r": 16, "tails": (16, 16), "align": 4},
        {"persistent": False, "block_r": 16, "tails": (16, 16, 8), "align": 4},
        {"persistent": False, "block_r": 16, "tails": (16,), "align": 4, "backwards": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["layer norm", "softmax", "dropout"])
def test_given_tiles(kind: str, changes: dict[str, Any]) -> None:
    """Loops whose ends vary, too: a loop reads what its tails leave."""
    body = {**BODIES, "dropout": dropped}[kind]
    fd = record(body, tensors(kind, 5, 75, torch.float32))
    cache = FusionExecutorCache(fd.fusion.ir)
    (first,) = fd.heuristics(tensors(kind, 5, 75, torch.float32))
    options = RunOptions(params=(replace(first, **changes),))
    for length in (75, 77, 79, 73, 81, 70, 83, 87):
        given = tensors(kind, 5, length, torch.float32)
        doubled = [x.double() for x in given]
        with poisoned():
            found = cache.execute(given, options)
        if kind == "dropout":
            expected = fd.run(given)
        else:
            expected = [x.float() for x in record(body, doubled).run(doubled)]
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
    opened = [made for made in cache.recompiles() if made.dynamic]
    assert sum(made.served for made in opened) > len(opened)
