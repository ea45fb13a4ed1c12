"""Rows pieced together of parts are computed in the kernel that reduced them."""

from __future__ import annotations

from typing import Any

import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import H200, check, lowered, schedulers, texts

ROWS, WIDTH = 24, 32


def scaled(fd: Any, x: Any) -> Any:
    """Rows over their root mean square."""
    total = fd.ops.sum(fd.ops.mul(x, x), [1], keepdim=True)
    return fd.ops.mul(x, fd.ops.rsqrt(fd.ops.add(fd.ops.mul(total, 1 / WIDTH), 1e-6)))


def turned(fd: Any, x: Any) -> Any:
    """Both halves of rows changed over, the second one negated."""
    low = fd.ops.slice(x, [0, 0], [ROWS, WIDTH // 2], [1, 1])
    high = fd.ops.slice(x, [0, WIDTH // 2], [ROWS, WIDTH], [1, 1])
    return fd.ops.cat([fd.ops.neg(high), low], 1)


def rotated_norm(fd: Any, x: Any, cos: Any, sin: Any) -> Any:
    y = scaled(fd, x)
    return fd.ops.add(fd.ops.mul(y, cos), fd.ops.mul(turned(fd, y), sin))


def test_a_norm_and_the_rotary_embedding_of_it_are_one_kernel():
    found = check(rotated_norm, *(noise(ROWS, WIDTH, seed=n) for n in range(3)), tolerance=1e-5)
    assert schedulers(found) == ["inner_persistent"]


def test_nan_and_infinity_stay_in_their_rows():
    x = noise(ROWS, WIDTH)
    x[3, 5], x[7, 20], x[9] = torch.nan, torch.inf, -0.0
    check(rotated_norm, x, noise(ROWS, WIDTH, seed=1), noise(ROWS, WIDTH, seed=2), tolerance=1e-5)


def share_of_parts(rows: int) -> Any:
    """A softmax over rows of two tensors, one of which is multiplied by a number of its row."""

    def body(fd: Any, x: Any, y: Any, scale: Any) -> Any:
        left = fd.ops.mul(x, fd.ops.expand(fd.ops.broadcast(scale, [False, True]), [rows, 20]))
        both = fd.ops.cat([left, y], 1)
        exps = fd.ops.exp(fd.ops.sub(both, fd.ops.max(both, [1], keepdim=True)))
        return fd.ops.div(exps, fd.ops.sum(exps, [1], keepdim=True))

    return body


def test_a_number_of_a_row_that_a_part_needs_is_loaded_once_a_row():
    def given(rows: int) -> list[torch.Tensor]:
        return [noise(rows, 20), noise(rows, 12, seed=1), noise(rows, seed=2)]

    check(share_of_parts(ROWS), *given(ROWS), tolerance=1e-5)
    (text,) = texts(lowered(share_of_parts(4096), given(4096), H200))
    (load,) = (line for line in text.splitlines() if "tl.load(tv2_ptr" in line)
    assert load.endswith("tl.load(tv2_ptr + x)")


def norm_behind_a_norm(fd: Any, x: Any) -> Any:
    """Rows less their mean, shifted by one and divided by what they vary then."""
    mean = fd.ops.mul(fd.ops.sum(x, [1], keepdim=True), 1 / WIDTH)
    rest = fd.ops.slice(fd.ops.sub(x, mean), [0, 0], [ROWS, WIDTH - 1], [1, 1])
    moved = fd.ops.pad(rest, [1, 0])
    var, center = fd.ops.var_mean(moved, [1], 0, True)
    return fd.ops.div(fd.ops.sub(moved, center), fd.ops.sqrt(fd.ops.add(var, 1e-5))), moved


def test_what_is_stored_of_rows_follows_a_reduction_that_was_moved_to_their_axes():
    found = check(norm_behind_a_norm, noise(ROWS, WIDTH), tolerance=1e-5)
    assert schedulers(found) == ["inner_persistent"]
