"""No kernel that moves much leaves the device idle, whatever dims its results keep."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.lowering.harness import H200, check, lowered, record, small
from tritonfuser import DataType
from tritonfuser.errors import ParamsError
from tritonfuser.heuristics import schedulers
from tritonfuser.lowering.cost import segment_time
from tritonfuser.lowering.emission import tile

SUBSTANCE = 1 << 20
"""Bytes moved by a kernel from which its programs are counted."""

PROGRAM_BYTES = 64 << 10
"""Bytes of a program that may be split further: what one of 16 warps has in flight at once."""


def wide(fd, *values):
    return [fd.ops.cast(v, dtype=DataType.Float) for v in values]


def over_rows(fd, value, like):
    return fd.ops.broadcast_in_dim(value, list(like), [0, 1])


def over_batch(fd, value, like):
    return fd.ops.broadcast_in_dim(value, list(like), [0, 2])


def normalized(fd, x, mean, scale, like):
    return fd.ops.mul(fd.ops.sub(x, over_rows(fd, mean, like)), over_rows(fd, scale, like))


def adaptive_norm_backward(like):
    """Layer norm with a scale and a shift for each of a batch: their gradients keep the batch."""

    def body(fd, g, x, mean, scale, weight):
        g, x, weight = wide(fd, g, x, weight)
        hat = normalized(fd, x, mean, scale, like)
        grad = fd.ops.mul(g, over_batch(fd, weight, like))
        mean_of = lambda v: over_rows(fd, fd.ops.mul(fd.ops.sum(v, [2]), 1 / like[2]), like)  # noqa: E731
        along = fd.ops.mul(hat, mean_of(fd.ops.mul(grad, hat)))
        dx = fd.ops.sub(fd.ops.sub(grad, mean_of(grad)), along)
        dx = fd.ops.mul(dx, over_rows(fd, scale, like))
        return fd.ops.cast(dx, dtype=DataType.BFloat16), *(
            fd.ops.sum(v, [1]) for v in (fd.ops.mul(g, hat), g)
        )

    batch, rows, columns = like
    return body, [like, like, (batch, rows), (batch, rows), (batch, columns)]


def weight_and_batch_sums(like):
    """An RMS norm backward whose sums over rows keep the batch in one case and not in the other."""

    def body(fd, g, x, scale):
        g, x = wide(fd, g, x)
        hat = fd.ops.mul(x, over_rows(fd, scale, like))
        along = over_rows(fd, fd.ops.sum(fd.ops.mul(g, hat), [2]), like)
        dx = fd.ops.sub(g, fd.ops.mul(hat, along))
        return dx, fd.ops.sum(fd.ops.mul(g, hat), [0, 1]), fd.ops.sum(g, [1])

    return body, [like, like, like[:2]]


def bias_gradient(like):
    return lambda fd, g: fd.ops.sum(*wide(fd, g), [1]), [like]


def maximum(like):
    return lambda fd, x: fd.ops.max(x, [1]), [like]


def variance(like):
    return lambda fd, x: fd.ops.var_mean(*wide(fd, x), [1], correction=1), [like]


def gate_backward(like):
    def body(fd, g, h, gate):
        g, h, gate = wide(fd, g, h, gate)
        return fd.ops.mul(g, over_batch(fd, gate, like)), fd.ops.sum(fd.ops.mul(g, h), [1])

    return body, [like, like, (like[0], like[2])]


BODIES = {
    made.__name__: made
    for made in (
        adaptive_norm_backward,
        weight_and_batch_sums,
        bias_gradient,
        maximum,
        variance,
        gate_backward,
    )
}


def programs(found):
    """The segments, each with the number of its programs."""
    for piece in found.segmented.segments:
        if piece.launched_by:  # its programs are among those of another kernel
            continue
        made = tile(found.segmented, piece)
        assert made is not None
        split = made.nest.row_split
        yield piece, prod(n for _, n in made.nest.grid) * (split.parts if split else 1)


def tensors(shapes, dtype, device="meta"):
    return [
        torch.empty(shape, dtype=dtype if len(shape) == 3 else torch.float32, device=device)
        for shape in shapes
    ]


SHAPES = st.tuples(st.integers(1, 64), st.integers(77, 4096), st.integers(384, 4096))


@settings(max_examples=60, deadline=None)
@example("gate_backward", (8, 263, 552), torch.float32)
@given(
    st.sampled_from(sorted(BODIES)),
    SHAPES.filter(lambda s: prod(s) < 1 << 28),
    st.sampled_from([torch.bfloat16, torch.float32]),
)
def test_kernels_of_substance_fill_the_device(name, shape, dtype):
    body, shapes = BODIES[name](shape)
    found = lowered(body, tensors(shapes, dtype))
    for piece, count in programs(found):
        if piece.bytes_read + piece.bytes_written >= SUBSTANCE:
            wanted = min(H200.sm_count, piece.bytes_read // PROGRAM_BYTES)
            assert 4 * count >= 3 * wanted or is_searched(piece), (piece, count)


def is_searched(piece):
    """Whether its params take less time by the model, which counts idle SMs, than the rules' do."""
    by_rules = schedulers.propose(piece.problem)
    return segment_time(piece).seconds < segment_time(piece, by_rules).seconds


@pytest.mark.parametrize(("batch", "parts"), [(1, 256), (4, 128), (16, 32), (64, 8)])
def test_rows_of_each_batch_are_shared_out(batch, parts):
    body, shapes = adaptive_norm_backward((batch, 1024, 1152))
    found = lowered(body, tensors(shapes, torch.bfloat16))
    (first, count), *_ = programs(found)
    assert first.scheduler == "inner_outer_persistent"
    assert count >= H200.sm_count
    assert [split.parts for split in found.segmented.rewrites.splits] == [parts] * 2


@pytest.mark.covering
@pytest.mark.parametrize("shape", [(3, 40, 48), (2, 64, 33), (5, 37, 24), (2, 97, 31)])
@pytest.mark.parametrize("name", BODIES)
def test_values_are_those_of_torch(name, shape):
    body, shapes = BODIES[name](shape)
    torch.manual_seed(0)
    check(body, *(torch.randn(s) for s in shapes), facts=small(4), tolerance=2e-3)


@pytest.mark.parametrize("rows", [1021, 257, 1000])
def test_the_last_share_may_be_shorter(rows):
    """Rows that no parts divide are read once, as those that some do."""
    body, shapes = adaptive_norm_backward((4, rows, 1152))
    found = lowered(body, tensors(shapes, torch.bfloat16))
    assert [s.scheduler for s in found.segmented.segments] == [
        "inner_outer_persistent",
        "reduction",
    ]
    (_, count), *_ = programs(found)
    assert count >= H200.sm_count


@pytest.mark.covering
@pytest.mark.parametrize("columns", [24, 1100])
@pytest.mark.parametrize("rows", [59, 67, 71, 127])
def test_values_of_uneven_shares(rows, columns):
    """Steps of one row and of several, peeled tiles, loads a step ahead."""
    body, shapes = adaptive_norm_backward((2, rows, columns))
    torch.manual_seed(0)
    inputs = [torch.randn(s) for s in shapes]
    found = check(body, *inputs, facts=small(4), tolerance=2e-3)
    assert found.segmented.segments[0].shares
    reports = record(body, inputs).compile_for("sm_90", inputs)
    assert all(report.spill_bytes == 0 for report in reports)


def test_rows_of_few_divisors_are_shared_by_as_many_programs():
    """Eight even shares would be the most, of a prime number of rows each."""
    body, shapes = adaptive_norm_backward((1, 8 * 227347, 40))
    found = lowered(body, tensors(shapes, torch.bfloat16))
    (_, count), *_ = programs(found)
    assert count >= 8 * H200.sm_count


def test_a_schedule_with_uneven_shares_is_taken():
    body, shapes = adaptive_norm_backward((4, 1021, 1024))
    fd, inputs = record(body, tensors(shapes, torch.bfloat16)), tensors(shapes, torch.bfloat16)
    given = fd.schedule(inputs, arch="sm_90")
    first = given.segments[0]
    parts = {"block_m": 1, "block_r": 128, "parts": 2, "prefetch": False}
    cooperative = replace(first, params=replace(first.params, **parts))
    wrong = replace(given, segments=(cooperative, *given.segments[1:]))
    with pytest.raises(ParamsError, match="which 2 parts of 128 do not cut up"):
        fd.kernels(inputs, arch="sm_90", schedule=wrong)
    assert fd.kernels(inputs, arch="sm_90", schedule=given) == fd.kernels(inputs, arch="sm_90")


def test_rows_are_not_padded_where_programs_are_enough():
    """Padded rows would be read by a kernel for the sums and by one for the results."""
    body, shapes = gate_backward((60, 179, 448))
    found = lowered(body, tensors(shapes, torch.bfloat16))
    assert [s.scheduler for s in found.segmented.segments] == ["reduction"]


@pytest.mark.parametrize("batch", [1, 2])
def test_uneven_shares_of_rows_that_begin_inside_vectors(batch):
    """Shares take rows in turn, so that those of a share begin at the same place of a vector."""
    body, shapes = adaptive_norm_backward((batch, 67, 513))
    torch.manual_seed(0)
    found = check(body, *(torch.randn(s) for s in shapes), facts=small(4), tolerance=2e-3)
    first = found.segmented.segments[0]
    assert all(share.interleaved for share in first.shares) and first.shares
    assert first.params.align == 8
