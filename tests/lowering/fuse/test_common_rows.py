"""Reductions that begin along rows which they have in common: groups of channels, and channels."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import group_norm_backward, noise
from tests.lowering.harness import CPU, H200, check, lowered, schedulers, small
from tritonfuser.errors import ParamsError

FEW = small(4)
DEVICES = pytest.mark.parametrize("facts", [FEW, H200, CPU], ids=["few", "h200", "cpu"])
TWO = ["inner_persistent", "reduction"]


def drawn(n, g, c, h, w):
    """An image, its gradient, weights and the statistics of groups of channels."""
    x, grad, weight = noise(n, g * c, h, w), noise(n, g * c, h, w, seed=1), noise(g * c)
    rows = x.reshape(n, g, c * h * w)
    mean = rows.mean(2)
    return [x, grad, weight, mean, 1 / ((rows**2).mean(2) - mean**2 + 1e-5).sqrt()]


def backward(shape, facts=H200, **changes):
    body = group_norm_backward(shape)
    return check(body, *drawn(*shape), facts=facts, tolerance=2e-4, **changes)


def reads(found):
    """How many kernels read the image."""
    return sum(v.name == "tv0" for piece in found.segmented.segments for v in piece.inputs)


SHAPES = [
    (8, 4, 2, 8, 16),
    (8, 4, 3, 5, 7),
    (6, 5, 5, 9, 9),
    (3, 1, 8, 6, 6),
    (8, 4, 3, 57, 57),
    (64, 4, 7, 1, 3),
    (4, 33, 64, 2, 4),
]


@pytest.mark.covering
@DEVICES
@pytest.mark.parametrize("shape", SHAPES)
def test_images_are_read_once(shape, facts):
    found = backward(shape, facts)
    assert schedulers(found) == TWO
    assert reads(found) == 1
    rows = found.segmented.segments[0]
    assert rows.co_reduced and all(axis.extent == shape[2] for axis in rows.co_reduced)


@pytest.mark.parametrize("shape", [(8, 4, 2, 90, 90), (8, 4, 3, 70, 90)])
def test_long_rows_are_walked_over_side_by_side(shape):
    found = backward(shape, FEW)
    assert schedulers(found) == TWO
    assert found.segmented.segments[0].params.persistent is False


@pytest.mark.parametrize("block_r", [16, 32, 64])
def test_pieces_of_rows(block_r):
    """Loops with and without tails, of channels that leave part of the block empty."""
    shape = (4, 4, 3, 5, 10)
    changes = {"block_r": block_r, "persistent": False}
    for tails in ((), (16,), (32, 16)):
        if 50 % block_r <= sum(tails) or not tails:
            backward(shape, **changes, tails=tails)


def test_one_channel_a_group_needs_no_second_step_of_its_rows():
    found = backward((16, 32, 1, 4, 4))
    assert schedulers(found) == TWO
    assert not found.segmented.segments[0].co_reduced


@DEVICES
@pytest.mark.parametrize("shape", [(0, 4, 2, 4, 4), (4, 4, 2, 0, 4), (4, 0, 2, 3, 4)])
def test_no_elements(shape, facts):
    backward(shape, facts)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -0.0])
def test_what_is_no_number_stays_in_its_group_and_its_channel(value):
    shape = (4, 3, 3, 5, 6)
    inputs = drawn(*shape)
    inputs[1][1, 4, 2, 3] = value
    check(group_norm_backward(shape), *inputs, tolerance=2e-4)


def test_sums_of_half_are_two_kernels():
    inputs = drawn(8, 4, 3, 9, 11)
    halves = [x.bfloat16() for x in inputs[:3]]
    found = check(group_norm_backward((8, 4, 3, 9, 11)), *halves, *inputs[3:])
    assert schedulers(found) == TWO


def test_images_that_lie_otherwise_in_memory():
    """Channels last: the rows lie across memory, of which a program takes none together."""
    shape = (8, 4, 2, 9, 10)
    x, grad, *rest = drawn(*shape)
    last = [t.to(memory_format=torch.channels_last) for t in (x, grad)]
    found = check(group_norm_backward(shape), *last, *rest, tolerance=2e-4)
    assert not any(piece.co_reduced for piece in found.segmented.segments)
    apart = [t.transpose(2, 3).contiguous().transpose(2, 3) for t in (x, grad)]
    check(group_norm_backward(shape), *apart, *rest, tolerance=2e-4)


def test_too_many_channels_a_group_are_left_apart():
    found = backward((8, 4, 100, 3, 3))
    assert not any(piece.co_reduced for piece in found.segmented.segments)


def test_rows_of_which_nothing_is_saved_are_left_whole():
    """Sums of one pixel's channels are as large as what they are sums of."""
    found = backward((64, 4, 7, 1, 1))
    assert not any(piece.co_reduced for piece in found.segmented.segments)


def with_statistics(shape):
    """The group's mean and spread are computed in the same kernel."""
    n, g, c, h, w = shape

    def body(fd, x, grad, weight):
        rows = fd.ops.reshape(x, [n, g, c, h, w])
        var, mean = fd.ops.var_mean(rows, [2, 3, 4], correction=0)
        rstd = fd.ops.rsqrt(fd.ops.add(var, 1e-5))
        return group_norm_backward(shape)(fd, x, grad, weight, mean, rstd)

    return body


@pytest.mark.covering
@DEVICES
@pytest.mark.parametrize("shape", [(8, 4, 2, 8, 16), (8, 4, 3, 5, 7), (4, 2, 3, 57, 57)])
def test_statistics_too(shape, facts):
    found = check(with_statistics(shape), *drawn(*shape)[:3], facts=facts, tolerance=5e-4)
    assert schedulers(found) == TWO
    assert reads(found) == 1


def test_statistics_in_a_loop():
    shape = (4, 2, 3, 7, 10)
    for tails in ((), (16,)):
        check(
            with_statistics(shape),
            *drawn(*shape)[:3],
            tolerance=5e-4,
            block_r=32,
            persistent=False,
            tails=tails,
        )


@pytest.mark.parametrize("shape", [(6, 3, 2, 8, 20), (5, 4, 3, 7, 9)])
def test_rows_that_are_given_as_one_dim(shape):
    """Groups as [n, g, c * h * w], channels as [n, g * c, h * w]."""
    n, g, c, h, w = shape

    def body(fd, x):
        rows = fd.ops.reshape(x, [n, g, c * h * w])
        total = fd.ops.sum(rows, [2], keepdim=True)
        return fd.ops.sub(rows, total), fd.ops.sum(fd.ops.reshape(x, [n, g * c, h * w]), [0, 2])

    found = check(body, noise(n, g * c, h, w), tolerance=1e-4)
    assert schedulers(found) == TWO
    assert reads(found) == 1


@DEVICES
@pytest.mark.parametrize("shape", [(6, 3, 2, 8, 20), (5, 4, 3, 7, 9)])
def test_extrema_and_reductions_that_depend_on_one_another(shape, facts):
    """A softmax over the channels of a group, and the greatest of each channel."""

    def body(fd, x):
        top = fd.ops.max(x, [2, 3, 4], keepdim=True)
        powers = fd.ops.exp(fd.ops.sub(x, top))
        share = fd.ops.div(powers, fd.ops.sum(powers, [2, 3, 4], keepdim=True))
        return share, fd.ops.max(x, [0, 3, 4]), fd.ops.min(x, [0, 3, 4])

    found = check(body, noise(*shape), facts=facts)
    assert schedulers(found) == TWO
    assert reads(found) == 1


def test_a_softmax_in_a_loop():
    def body(fd, x):
        top = fd.ops.max(x, [2, 3], keepdim=True)
        powers = fd.ops.exp(fd.ops.sub(x, top))
        share = fd.ops.div(powers, fd.ops.sum(powers, [2, 3], keepdim=True))
        return share, fd.ops.max(x, [0, 3])

    for tails in ((), (16,), (32, 16)):
        check(body, noise(6, 5, 3, 75), block_r=32, persistent=False, tails=tails)


def test_results_of_the_groups_are_stored_by_the_same_kernel():
    def body(fd, x):
        total = fd.ops.sum(x, [2, 3], keepdim=True)
        return fd.ops.sub(x, total), fd.ops.exp(total), total, fd.ops.sum(x, [0, 3])

    found = check(body, noise(6, 5, 3, 70), tolerance=1e-4)
    assert schedulers(found) == TWO


def sums_alone(fd, x):
    """Sums of groups and of channels, and nothing that needs the groups' sums."""
    return fd.ops.sum(x, [2, 3]), fd.ops.sum(fd.ops.exp(x), [0, 3])


def test_reductions_alone_begin_in_one_kernel():
    found = check(sums_alone, noise(16, 5, 3, 70), tolerance=1e-4)
    assert reads(found) == 1
    assert not any(piece.co_reduced for piece in found.segmented.segments)


def test_sums_of_parts_of_rows_need_no_second_step():
    """Beside rows over channels and pixels, a sum over the pixels of each channel."""

    def body(fd, x):
        total = fd.ops.sum(x, [1, 2], keepdim=True)
        return fd.ops.sub(x, total), fd.ops.sum(x, [2])

    found = check(body, noise(200, 3, 70), tolerance=1e-4)
    assert schedulers(found) == ["inner_persistent"]


def test_reasons():
    found = backward((8, 4, 2, 8, 16))
    assert "along with other reductions of the same rows" in found.segmented.cuts[0]


def test_params_must_hold_the_rows_that_are_together():
    shape = (4, 4, 3, 5, 10)
    with pytest.raises(ParamsError, match="reduces 3 rows together, block_x=2"):
        lowered(group_norm_backward(shape), drawn(*shape), block_x=2)
    backward(shape, block_x=8)


@DEVICES
def test_of_no_rows_together_there_is_still_a_sum(facts):
    """The second step is over a dim of no elements."""

    def body(fd, x):
        total = fd.ops.sum(x, [0, 2], keepdim=True)
        return fd.ops.sub(x, total), total, fd.ops.sum(x, [1, 2])

    check(body, torch.empty(0, 5, 4), facts=facts)


@DEVICES
def test_others_of_as_many_rows(facts):
    """Sums of (0, 1) have as many rows as those of the kernel of (1, 3), which has two together."""

    def body(fd, x):
        along = fd.ops.sum(x, [0, 1, 2, 4], keepdim=True)
        other = fd.ops.sum(x, [2, 3, 4], keepdim=True)
        least = fd.ops.min(x, [0, 2, 3, 4])
        return least, fd.ops.sub(x, along), fd.ops.sub(x, other)

    check(body, noise(2, 8, 5, 2, 33), facts=facts)
