"""Bytes of a segment, refusals and cuts: what segmenting keeps for reports."""

from __future__ import annotations

import pytest
import torch

from tests.lowering.graphs import meta, noise
from tests.lowering.harness import CPU, H200, check, lowered, small
from tritonfuser.heuristics.schedulers import SCHEDULERS


def softmax(fd, x):
    top = fd.ops.broadcast(fd.ops.max(x, [1]), [False, True])
    exps = fd.ops.exp(fd.ops.sub(x, top))
    return fd.ops.div(exps, fd.ops.broadcast(fd.ops.sum(exps, [1]), [False, True]))


def moved(body, *inputs, facts=H200):
    found = lowered(body, list(inputs), facts).segmented.segments
    return [(piece.bytes_read, piece.bytes_written) for piece in found]


def test_a_row_read_three_times_counts_once():
    assert moved(softmax, meta(64, 1000, dtype=torch.float32)) == [(256_000, 256_000)]
    assert moved(softmax, meta(64, 1000, dtype=torch.float64)) == [(512_000, 512_000)]


def test_a_stretched_input_counts_as_the_memory_it_has():
    add = lambda fd, x, y: fd.ops.add(x, y)  # noqa: E731
    assert moved(add, meta(4, 100), meta(1, 100).expand(4, 100)) == [(1600 + 400, 1600)]


def test_a_slice_reads_its_elements_alone():
    body = lambda fd, x: fd.ops.neg(fd.ops.slice(x, [0, 10], [8, 30], [1, 1]))  # noqa: E731
    assert moved(body, meta(8, 100)) == [(8 * 20 * 4, 8 * 20 * 4)]


def test_halves_of_a_row_read_apart_make_the_row():
    def rotated(fd, x):
        left = fd.ops.slice(x, [0, 0], [8, 50], [1, 1])
        right = fd.ops.slice(x, [0, 50], [8, 100], [1, 1])
        return fd.ops.cat([fd.ops.neg(right), left], 1)

    assert moved(rotated, meta(8, 100)) == [(3200, 3200)]


@pytest.mark.parametrize(("rows", "picked"), [(10, 10 * 64 * 4), (1000, 100 * 64 * 4)])
def test_of_a_table_what_is_picked_counts_and_at_most_all_of_it(rows, picked):
    body = lambda fd, t, i: fd.ops.neg(fd.ops.index_select(t, i, 0))  # noqa: E731
    found = moved(body, meta(100, 64), meta(rows, dtype=torch.int64))
    assert found == [(picked + 8 * rows, rows * 64 * 4)]


@pytest.mark.parametrize("rows", [10, 1000])
def test_what_two_reads_of_a_table_have_in_common_is_at_most_all_of_it(rows):
    """Both halves of picked rows, as for a rotation: more often than there are rows."""

    def rotated(fd, t, i):
        picked = fd.ops.index_select(t, i, 0)
        left = fd.ops.slice(picked, [0, 0], [rows, 32], [1, 1])
        right = fd.ops.slice(picked, [0, 32], [rows, 64], [1, 1])
        return fd.ops.add(picked, fd.ops.cat([fd.ops.neg(right), left], 1))

    given = [meta(100, 64), meta(rows, dtype=torch.int64)]
    streams = [s for p in lowered(rotated, given).segmented.segments for s in p.problem.streams]
    assert sum(stream.known_bytes > 0 for stream in streams) == (rows == 1000)
    assert all(0 <= stream.fresh_share <= 1 for stream in streams)


def test_what_torch_runs_reads_its_operands():
    body = lambda fd, x, w: fd.ops.argsort(fd.ops.add(x, w), 1)  # noqa: E731
    first, second = moved(body, meta(32, 16), meta(32, 16))
    assert first == (4096, 2048)
    assert second == (2048, 32 * 16 * 8)


def test_nothing_is_moved_of_no_elements():
    assert moved(lambda fd, x: fd.ops.neg(x), meta(0, 5)) == [(0, 0)]


# --- why -----------------------------------------------------------------------------------------


def test_every_scheduler_before_the_chosen_one_has_refused():
    (piece,) = lowered(softmax, [noise(8, 40)]).segmented.segments
    names = [s.name for s in SCHEDULERS]
    before = names[: names.index("inner_persistent")]
    assert [r.split(":")[0] for r in piece.refusals] == before
    assert "scan: it has no scan" in piece.refusals


def column_as_row(fd, x):
    total = fd.ops.broadcast(fd.ops.sum(x, [0]), [False, True])
    return fd.ops.add(x, total)


def test_a_segment_knows_why_it_was_cut_off():
    found = lowered(column_as_row, [noise(16, 16)]).segmented
    first, second = found.segments
    assert first.cut == ""
    assert second.cut.startswith("tv")
    assert "starts s1; not in s0: " in second.cut
    assert found.cuts == (second.cut,)


def test_reductions_done_in_two_steps_say_so():
    body = lambda fd, x: (fd.ops.sum(x, [0]), fd.ops.sum(fd.ops.exp(x), [0]))  # noqa: E731
    cuts = lowered(body, [noise(1 << 16)], small(2)).segmented.cuts
    assert cuts == (
        "tv1 is done in two steps, to share it out over programs",
        "tv3 is done in two steps, to share it out over programs",
        "tv1 starts s1; not in s0: it runs over other axes",
    )
    assert lowered(body, [noise(64)], small(2)).segmented.cuts == ()


def test_cuts_that_only_the_first_grouping_made_are_kept():
    """In one step the two sums were apart; their second steps share a kernel."""
    body = lambda fd, x, y: (fd.ops.sum(x, [0]), fd.ops.sum(y, [0]))  # noqa: E731
    cuts = lowered(body, [noise(1 << 16), noise(1 << 15)], small(2)).segmented.cuts
    (earlier,) = [cut for cut in cuts if cut.startswith("in one step ")]
    assert earlier == (
        "in one step tv3 starts the kernel of tv3; "
        "not in the kernel of tv2: it runs over other axes"
    )


# --- one step ------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["sum", "max", "prod"])
def test_a_long_reduction_may_be_asked_for_in_one_kernel(op):
    body = lambda fd, x: getattr(fd.ops, op)(x, [0])  # noqa: E731
    x = 1 + noise(1 << 16) * 1e-4 if op == "prod" else noise(1 << 16)
    assert len(lowered(body, [x], small(2)).segmented.segments) == 2
    (piece,) = check(body, x, facts=small(2), tolerance=1e-3, two_steps=False).segmented.segments
    assert piece.scheduler == "reduction"


def test_a_norm_backward_in_one_kernel_is_one_program():
    def body(fd, x, dy):
        rows = fd.ops.broadcast(fd.ops.sum(fd.ops.mul(x, dy), [1]), [False, True])
        return fd.ops.sub(dy, fd.ops.mul(x, rows)), fd.ops.sum(dy, [0])

    inputs = noise(256, 64), noise(256, 64, seed=1)
    assert len(lowered(body, inputs, H200).segmented.segments) == 2
    found = check(body, *inputs, facts=H200, tolerance=1e-3, two_steps=False)
    (piece,) = found.segmented.segments
    assert piece.scheduler == "inner_outer_persistent"
    assert found.sources[0].grid == (1, 1, 1)


def test_on_a_cpu_nothing_takes_two_steps():
    body = lambda fd, x: fd.ops.sum(x, [0])  # noqa: E731
    one, two = (lowered(body, [noise(1 << 16)], CPU, two_steps=n) for n in (False, True))
    assert str(one.segmented) == str(two.segmented)


def streams(body, *inputs):
    (piece,) = lowered(body, list(inputs), H200).segmented.segments
    return [s for s in piece.problem.streams if not s.is_store]


def test_what_is_read_again_near_by_comes_from_memory_once():
    def rotated(fd, x):
        low, high = (fd.ops.slice(x, [0, at], [4096, at + 64], [1, 1]) for at in (0, 64))
        turned = fd.ops.cat([fd.ops.neg(high), low], 1)
        return fd.ops.mul(turned, fd.ops.sum(fd.ops.mul(x, turned), [1], keepdim=True))

    found = streams(rotated, meta(4096, 128))
    whole = 4096 * 128 * 4
    # Each half of a row is read once for itself and once, masked, for the other half.
    assert sorted(s.total_bytes for s in found) == [whole // 2, whole // 2, whole]
    assert sum(s.fetched_bytes for s in found) == whole


@pytest.mark.parametrize(("dim", "times"), [(1, 1), (0, 2)])
def test_what_is_read_again_behind_a_jump(dim, times):
    """A tensor beside its own halves in the other order: of half a row, or of half of all rows."""

    def rolled(fd, x):
        halves = []
        for part in (1, 0):
            starts, ends = [0, 0], [8192, 128]
            starts[dim], ends[dim] = part * ends[dim] // 2, (part + 1) * ends[dim] // 2
            halves.append(fd.ops.slice(x, starts, ends, [1, 1]))
        return fd.ops.sum(fd.ops.mul(x, fd.ops.cat(halves, dim)), [1])

    found = streams(rolled, meta(8192, 128))
    assert sum(s.fetched_bytes for s in found) == times * 8192 * 128 * 4


def test_what_is_read_again_far_away_comes_from_memory_twice():
    def both(fd, x):
        first, last = (fd.ops.slice(x, [at, 0], [at + 6000, 8192], [1, 1]) for at in (0, 2000))
        return fd.ops.sum(fd.ops.mul(first, last), [1])

    found = streams(both, meta(8000, 8192))
    assert [s.known_bytes for s in found] == [0, 0]


def test_rows_that_share_an_element_load_it_once():
    def scaled(fd, x, w):
        both = fd.ops.mul(x, fd.ops.broadcast(w, [False, True, False]))
        return fd.ops.mul(both, fd.ops.sum(both, [2], keepdim=True))

    found = streams(scaled, meta(512, 16, 128), meta(512, 128))
    assert [s.x_same for s in found] == [1, 16]


def test_what_rides_along_counts_by_its_share_of_positions():
    def body(fd, x, y):
        return fd.ops.add(x, 1.0), fd.ops.exp(y)

    x, y = meta(1 << 12, 1 << 10), meta(1 << 10)
    (piece,) = lowered(body, [x, y], H200).segmented.segments
    parts = [s for s in piece.problem.streams if s.accessed != (1, 1)]
    assert [s.is_store for s in parts] == [False, True]
    assert all(s.total_bytes == 4 << 10 and s.accessed_share == 2.0**-12 for s in parts)
    assert piece.problem.moved_bytes == 2 * (4 << 22) + 2 * (4 << 10)


def test_of_a_tensor_that_is_indexed_no_more_is_read_than_it_has():
    def body(fd, table, index):
        return fd.ops.take_along_axis(table, index, dim=0)

    for entries in (1 << 10, 1 << 24):
        table, index = meta(entries), meta(1 << 20, dtype=torch.int64)
        (piece,) = lowered(body, [table, index], H200).segmented.segments
        (read,) = (s for s in piece.problem.streams if s.held_bytes)
        assert read.held_bytes == 4 * entries
        assert read.total_bytes == 4 * min(entries, 1 << 20)
