"""Results of fewer elements that join a flat kernel to save a launch: not if they delay it."""

from __future__ import annotations

from typing import Any

import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, record, schedulers


def beside(heavy: int) -> Any:
    """A large result, and one of 4096 elements that takes ``heavy`` cosines."""

    def body(fd: Any, x: Any, y: Any) -> Any:
        for _ in range(heavy):
            y = fd.ops.cos(y)
        return fd.ops.neg(x), fd.ops.abs(y)

    return body


def test_a_light_result_rides() -> None:
    found = check(beside(0), noise(64, 512), noise(4096))
    assert schedulers(found) == ["pointwise"]


def test_a_result_that_delays_a_large_kernel_does_not() -> None:
    """All programs compute it, for positions that it does not have too."""
    given = noise(4096).expand(4096, 4096), noise(4096)
    for heavy, kernels in ((0, 1), (20, 2)):
        found = lowered(record(beside(heavy), given), given)
        assert len(schedulers(found)) == kernels
    given = noise(64, 512), noise(4096)
    assert schedulers(check(beside(20), *given)) == ["pointwise"]


def test_a_result_that_a_large_kernel_spreads_does_not_ride_in_it() -> None:
    """The kernel has the same ops, but at the positions of its elements: all programs would compute
    the result for positions of its own beside them."""

    def body(fd: Any, x: Any, w: Any) -> Any:
        factor = fd.ops.rsqrt(fd.ops.add(fd.ops.mul(w, w), 1.0))
        rows = fd.ops.broadcast_in_dim(factor, [*x.shape()], [0])
        return fd.ops.mul(x, rows), factor

    given = noise(16384, 1).expand(16384, 4096), noise(16384)
    assert len(schedulers(lowered(record(body, given), given))) == 2
    assert schedulers(check(body, noise(64, 512), noise(64))) == ["pointwise"]


def test_boxes_ride_in_kernels_of_their_own_size() -> None:
    """A shift has seven boxes, and halves that change places two large ones. Another result is cut
    into seven as well: beside the shift, since seven of them would leave most positions of the
    large ones idle."""
    rows, width = 3094, 97
    half = width // 2

    def body(fd: Any, x: Any, y: Any, z: Any) -> Any:
        shape = [7, rows, width]
        last = fd.ops.slice(x, [0, 0, 0], [6, rows, width])
        shifted = fd.ops.sub(x, fd.ops.pad(last, [0, 0, 0, 0, 1, 0]))
        right = fd.ops.slice(y, [0, 0, half], shape)
        left = fd.ops.slice(y, [0, 0, 0], [7, rows, half])
        turned = fd.ops.cat([fd.ops.neg(right), left], 2)
        return [shifted, fd.ops.mul(turned, z), fd.ops.tanh(fd.ops.mul(fd.ops.sigmoid(z), z))]

    given = [torch.empty(7, rows, width, device="meta") for _ in range(3)]
    cut = record(body, given).segments(given, arch="sm_90")
    shifted, turned, other = (out.value.name for out in cut.fusion.outputs)
    kernels = [{store.value.name for store in piece.stores} for piece in cut.segments]
    assert {shifted, other} in kernels or {other} in kernels, kernels
    assert not any({turned, other} <= kernel for kernel in kernels)
