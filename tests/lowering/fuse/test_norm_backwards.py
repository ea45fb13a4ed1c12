"""Backwards of norms with sums over rows of several dims: how rows are shared out, and the numbers.

Rows ``(n, t)`` are shared out over programs: all of them in a row, or those of each ``n`` apart
where that leaves the busiest multiprocessor with fewer. A sum may keep ``t``, as the gradient of
position embeddings does.
"""

from __future__ import annotations

import pytest
import torch

from tests.e2e.opened import compile_open
from tests.lowering.fuse.test_programs import normalized, over_rows, tensors
from tests.lowering.graphs import noise
from tests.lowering.harness import check, compare, lowered, record, schedulers, small
from tritonfuser import FusionDefinition
from tritonfuser.cache.keys.open_sizes import KeyReader
from tritonfuser.cache.keys.signature import key_maker


def norm_backward(like, *sums):
    """A layer norm's backward: its gradient, the sum over the rows of each kind, one that keeps a
    dim where that is a number."""

    def body(fd, g, x, mean, scale, weight):
        hat = normalized(fd, x, mean, scale, like)
        grad = fd.ops.mul(g, fd.ops.broadcast_in_dim(weight, list(like), [2]))
        mean_of = lambda v: over_rows(fd, fd.ops.mul(fd.ops.sum(v, [2]), 1 / like[2]), like)  # noqa: E731
        along = fd.ops.mul(hat, mean_of(fd.ops.mul(grad, hat)))
        dx = fd.ops.mul(
            fd.ops.sub(fd.ops.sub(grad, mean_of(grad)), along), over_rows(fd, scale, like)
        )
        whole = {"weight": fd.ops.mul(g, hat), "bias": g, "dx": dx}
        found = [fd.ops.sum(whole[name], [0, 1]) for name in sums if isinstance(name, str)]
        kept = [fd.ops.sum(dx, [dim]) for dim in sums if isinstance(dim, int)]
        return dx, *found, *kept

    return body, [like, like, like[:2], like[:2], like[2:]]


def inputs_of(shapes, seed=0):
    torch.manual_seed(seed)
    return [torch.randn(shape) for shape in shapes]


UNEVEN = {
    # One of the dims, and the place of the padded one: with other dims inside, of steps of one row
    # and of several, with peeled tiles, of rows that begin inside vectors.
    (5, 37, 24): ((-1, 10), 1),
    (61, 5, 1024): (16, 0),
    (29, 5, 1100): (15, 0),
    (2, 71, 513): ((-1, 16), 1),
}
"""Sizes -> parts and the place of the padded dim."""


@pytest.mark.parametrize("like", UNEVEN, ids=str)
def test_values_of_uneven_shares_of_several_dims(like):
    body, shapes = norm_backward(like, "weight", "bias")
    found = check(body, *inputs_of(shapes), facts=small(4), tolerance=1e-3)
    assert schedulers(found) == ["inner_outer_persistent", "reduction"]
    splits = found.segmented.rewrites.splits
    assert [(s.parts, s.padded) for s in splits] == [UNEVEN[like]] * 2
    first = found.segmented.segments[0]
    assert {len(share.inside) for share in first.shares} == {1 - UNEVEN[like][1]}


def test_rows_behind_the_last_share_do_not_count():
    """Each row is counted once: a sum of ones is exact."""
    like = (61, 5, 1024)
    body, shapes = norm_backward(like, "bias")
    ones = [torch.ones(shape) for shape in shapes]
    found = check(body, *ones, facts=small(4), tolerance=0)
    assert found.segmented.segments[0].shares


def test_infinite_and_missing_numbers_stay_in_their_columns():
    like = (5, 37, 24)
    body, shapes = norm_backward(like, "bias")
    g, *rest = inputs_of(shapes)
    g[4, 36, 3], g[0, 0, 5], g[2, 20, 7] = float("inf"), float("nan"), float("-inf")
    check(body, g, *rest, facts=small(4), tolerance=1e-3)


def test_the_last_programs_rows_of_steps_are_masked_on_a_gpu_too():
    like = (61, 5, 1024)
    body, shapes = norm_backward(like, "weight", "bias")
    given = tensors(shapes, torch.float32)
    reports = record(body, given).compile_for("sm_90", given)
    assert all(report.spill_bytes == 0 for report in reports)


KEPT = [
    ((16, 9, 48), ("weight", "bias", 0), 5),
    ((6, 50, 1024), ("weight", 0), 4),
    ((12, 7, 1100), ("weight", "dx", 0), 5),
    ((5, 37, 24), ("bias", 0), 4),
    ((5, 37, 24), (0,), 3),
]


@pytest.mark.parametrize(("like", "sums", "members"), KEPT)
def test_sums_that_keep_a_dim_are_done_with_those_that_do_not(like, sums, members):
    """The kernel of the rows has the two sums along them too."""
    body, shapes = norm_backward(like, *sums)
    found = check(body, *inputs_of(shapes), facts=small(4), tolerance=1e-3)
    first, *rest = found.segmented.segments
    assert first.scheduler == "inner_outer_persistent"
    assert len(first.members) == members
    assert all(piece.bytes_read < first.bytes_read for piece in rest)


def test_sums_that_keep_different_dims():
    body, shapes = norm_backward((12, 7, 110), "bias", 0, 1)
    check(body, *inputs_of(shapes), facts=small(4), tolerance=1e-3)


@pytest.mark.parametrize("like", [(16, 5, 1), (3, 5, 1), (16, 5, 2)])
def test_a_sum_over_a_dim_of_one_position_keeps_all_rows(like):
    """It reduces none of the axes that rows are reduced over, so nothing is split for it."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1, -1], contiguity=True)
        sums = fd.ops.sum(x, [2])
        below = fd.ops.sub(sums, fd.ops.max(sums, [1], keepdim=True))
        fd.add_output(fd.ops.sum(below, [0]))
    (x,) = given = inputs_of([like])
    assert not lowered(fd, given).segmented.rewrites.splits
    sums = x.sum(2)
    torch.testing.assert_close(fd.run(given)[0], (sums - sums.amax(1, keepdim=True)).sum(0))


def weighted_rows(fd):
    """Rows times their sum, and sums over the rows: of both dims, and of the first alone."""
    x = fd.define_tensor([-1, -1, -1], contiguity=True)
    rows = fd.ops.mul(x, fd.ops.sum(x, [2], keepdim=True))
    for result in (rows, fd.ops.sum(rows, [0, 1]), fd.ops.sum(fd.ops.tanh(rows), [0])):
        fd.add_output(result)


@pytest.mark.parametrize("batches", [(61, 48, 57, 33), (1024, 512, 700, 3000), (2048, 3001, 2000)])
def test_sums_of_rows_in_two_dims_and_in_one_where_the_second_has_one_position(batches):
    """Their rows are the same ones, shared out alike at all sizes of one variant."""
    with FusionDefinition() as fd:
        weighted_rows(fd)
    first, *others = inputs = [[noise(batch, 1, 24)] for batch in batches]
    made = compile_open(fd, first, others[:1], small(4))
    key, reader = key_maker(fd.fusion.ir), KeyReader(fd.fusion.ir)
    plans = [made.at(reader.split(key(given))) for given in inputs]
    assert plans[0] is not None
    for plan, (x,) in zip(plans, inputs, strict=True):
        if plan is not None:
            rows = x * x.sum(2, keepdim=True)
            wanted = rows, rows.sum((0, 1)), rows.tanh().sum(0)
            compare(plan.run([x]), wanted, tolerance=1e-3)


def softmax_and_sum(fd, x):
    """Rows whose result needs a sum over the rows: ``softmax(x, 1) * sum(x, 0)``."""
    like = x.shape()
    most = fd.ops.broadcast_in_dim(fd.ops.max(x, [1]), like, [0])
    weights = fd.ops.exp(fd.ops.sub(x, most))
    total = fd.ops.broadcast_in_dim(fd.ops.sum(weights, [1]), like, [0])
    sums = fd.ops.broadcast_in_dim(fd.ops.sum(x, [0]), like, [1])
    return fd.ops.mul(fd.ops.div(weights, total), sums)


def test_rows_are_reduced_where_their_results_are_used():
    """With the sum over rows they would be read by both kernels, as they are anyhow."""
    found = lowered(softmax_and_sum, [torch.empty(1 << 20, 85, device="meta")])
    assert schedulers(found) == ["reduction", "reduction", "inner_persistent"]


@pytest.mark.parametrize("first", [True, False])
def test_sums_over_rows_join_the_kernel_that_has_loaded_these(first):
    """Not one of another tensor's sum over as many rows, whether that is recorded before or not."""
    like = (512, 8, 1024)
    body, shapes = norm_backward(like, "weight", "bias")

    def with_other(fd, other, *given):
        whole = fd.ops.sum(other, [0])
        found = body(fd, *given)
        return (whole, *found) if first else (*found, whole)

    inputs = [torch.empty(shape, device="meta") for shape in ((4096, 1024), *shapes)]
    segments = lowered(with_other, inputs).segmented.segments
    (rows,) = (s for s in segments if s.scheduler == "inner_outer_persistent")
    assert len(rows.members) == 4  # two of them over rows
    assert "tv0" not in {value.name for value in rows.inputs}
