"""Reads at indices of other tensors: the windows that they are from, and the caches."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tests.heuristics.test_schedulers import H200
from tests.lowering.graphs import meta
from tests.lowering.harness import lowered
from tritonfuser.heuristics.cost.constants import miss_rate
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.flat.traffic import FlatStreams
from tritonfuser.heuristics.cost.kernels import predicted
from tritonfuser.heuristics.cost.memory.footprint import Side
from tritonfuser.heuristics.cost.memory.gathered import concurrent_tile
from tritonfuser.heuristics.cost.numbers import PLAIN
from tritonfuser.heuristics.params import PointwiseParams, ReductionParams
from tritonfuser.heuristics.problem import ElementWork, Problem
from tritonfuser.heuristics.search.model_space import limited_to_rules
from tritonfuser.heuristics.search.spaces import SPACES
from tritonfuser.heuristics.streams import Stream, StrideTerm

WORK = ElementWork(before=2)


def picked(rows, columns, count):
    """``x[i, index[j]]`` in float32: each row of ``x`` is a window."""
    total = rows * count
    index = Stream(item_bytes=8, total_bytes=8 * count, stride_terms=(StrideTerm(1, 1, count, 1),))
    read = Stream(
        item_bytes=4,
        x_stride=None,
        total_bytes=4 * min(rows * columns, total),
        held_bytes=4 * rows * columns,
        stride_terms=(
            StrideTerm(0, 1, rows, columns),
            StrideTerm(1, 1, count, 1009, is_indexed=True),
        ),
    )
    axes = (rows, count)
    return Problem(parallel=total, reduced=1, axes=axes, streams=(index, read), device=H200)


def with_own_indices(problem):
    """The same with an index for each element: the L1 cache has nothing else again."""
    (rows, count), (index, *reads) = problem.axes, problem.streams
    terms = StrideTerm(0, 1, rows, count), StrideTerm(1, 1, count, 1)
    index = replace(index, total_bytes=8 * rows * count, stride_terms=terms)
    return replace(problem, streams=(index, *reads))


def memory_bytes(problem, params):
    time = predicted(problem, params, WORK).resources["memory"]
    nothing = Problem(parallel=1, axes=(1,), streams=(), device=H200)
    assert predicted(nothing, params, WORK).resources["memory"] < 1e-9
    return time * H200.bandwidth_bytes_per_s


def counts(problem, params):
    return Counting(problem, WORK).counts(params)


def test_what_others_fetched_of_a_window_is_found_while_the_windows_of_all_programs_fit():
    """Fewer elements in flight have fewer windows open: 1 MB each, of 16 K elements.

    Reads at random places of windows that fit are all found, of larger ones as many as fit.
    """
    problem = picked(1 << 9, 1 << 18, 1 << 14)
    all_params = [PointwiseParams(block_x=n, num_warps=4) for n in (128, 256, 1024, 4096)]
    open_bytes = [counts(problem, params).window_bytes for params in all_params]
    assert open_bytes == pytest.approx([open_bytes[0] * n for n in (1, 2, 8, 32)])
    least, fitting, some, many = (memory_bytes(problem, params) for params in all_params)
    assert fitting == least
    assert many > 1.4 * least and some > 1.2 * least


def test_a_window_is_at_most_the_whole_tensor():
    problem = picked(4, 1 << 10, 1 << 20)
    params = PointwiseParams(block_x=1024, num_warps=4)
    found = counts(problem, params)
    assert found.opened_bytes == 4 << 10
    assert found.window_bytes * 132 * 16 == pytest.approx(3 * (4 << 10), rel=0.4)
    # All are in the L2 cache: memory moves each element once.
    assert memory_bytes(problem, params) < 1.1 * problem.moved_bytes


def test_two_tensors_that_are_read_alike_have_two_windows():
    one = with_own_indices(picked(1 << 11, 1 << 16, 1 << 14))
    two = replace(one, streams=(*one.streams, one.streams[1]))
    params = PointwiseParams(block_x=1024, num_warps=4)
    once, twice = counts(one, params), counts(two, params)
    for name in ("opened_bytes", "window_bytes", "repeat_request_bytes", "hit_bytes", "hit_lines"):
        assert getattr(twice, name) == pytest.approx(2 * getattr(once, name))


def test_few_programs_open_as_many_windows_as_they_have_rows():
    """128 programs of 16 rows: all rows are open, however many programs could run."""
    problem = picked(1 << 11, 1 << 16, 1 << 13)
    problem = replace(problem, parallel=1 << 11, reduced=1 << 13, row_axes=1, reduction_depth=1)
    work = ElementWork(before=2, reducing=1, reductions=1, carried=1)
    params = ReductionParams(block_x=16, block_r=64, persistent=False, num_warps=2)
    found = Counting(problem, work).counts(params)
    assert found.programs == 128
    assert found.window_bytes * 128 == pytest.approx(4 << 27)
    assert found.opened_bytes == pytest.approx((4 << 27) / 128)


def test_the_l1_cache_has_what_a_program_reads_again():
    """A program reads 4,096 elements of a row: of 8 KB a sector is read again often, of 1 MB
    hardly."""
    params = PointwiseParams(block_x=4096, num_warps=8)
    small, large = (
        with_own_indices(picked(1 << 12, columns, 1 << 12)) for columns in (1 << 11, 1 << 18)
    )
    hits = [counts(problem, params).hit_bytes / (32 * 4096) for problem in (small, large)]
    assert hits[0] > 0.9
    assert hits[1] < 0.1
    times = [predicted(problem, params, WORK).resources for problem in (small, large)]
    for resource in ("L2 cache", "L1 cache"):
        assert times[0][resource] < 0.5 * times[1][resource]


@pytest.mark.parametrize(("columns", "most"), [(16, 1), (256, 8), (512, 16), (1 << 15, 32)])
def test_a_load_touches_the_lines_of_its_windows(columns, most):
    """32 reads of a row of 1 KB are of 8 lines at most, those of 128 KB of nearly as many."""
    problem = with_own_indices(picked(1 << 12, columns, 1 << 12))
    read = Counting(replace(problem, streams=problem.streams[1:]), WORK)
    found = read.counts(PointwiseParams(block_x=1024, num_warps=4))
    assert 0.6 * most <= found.lines / found.accesses <= most


def test_rows_of_a_load_have_windows_of_their_own():
    problem = with_own_indices(picked(1 << 12, 256, 16))
    read = Counting(replace(problem, streams=problem.streams[1:]), WORK)
    found = read.counts(PointwiseParams(block_x=1024, num_warps=4))
    assert 8 < found.lines / found.accesses <= 16


def test_gathers_miss_if_the_windows_of_a_multiprocessors_programs_do_not_fit():
    """16 programs of 4 warps have a window of 64 KB each, two of 32 warps have two."""
    problem = picked(1 << 12, 1 << 14, 1 << 14)
    many, few = (PointwiseParams(block_x=32 * 8 * n, num_warps=n) for n in (4, 32))
    time = [predicted(problem, params, WORK).resources["L2 cache"] for params in (many, few)]
    share = [counts(problem, params).hit_bytes for params in (many, few)]
    assert share[1] / (32 * 8192) > share[0] / (32 * 1024)
    assert time[1] < 0.8 * time[0]


def test_positions_of_programs_that_run_at_a_time():
    rows, columns = Side((0,), 4), Side((1,), 16)
    assert concurrent_tile((100, 100), (columns, rows), 3) == ((4, 48), 3)
    # Programs go on along the second side where the first one ends.
    assert concurrent_tile((100, 100), (columns, rows), 12.5) == ((8, 100), 12.5)
    assert concurrent_tile((100, 100), (Side((0, 1), 64),), 10) == ((6.4, 100), 10)
    # There are no more than 25 * 6.25.
    assert concurrent_tile((100, 100), (columns, rows), 1000) == ((100, 100), 156.25)


def streams(body, *inputs):
    (piece,) = lowered(body, inputs, H200).segmented.segments
    return piece.problem.streams


@pytest.mark.parametrize("dim", [0, 1])
def test_the_axes_that_an_index_is_read_along_are_marked(dim):
    def body(fd, table, index):
        return fd.ops.gather(table, index, dim)

    table, index = meta(1 << 10, 1 << 11), meta(1 << 10, 1 << 11, dtype=torch.int64)
    (read,) = (s for s in streams(body, table, index) if s.held_bytes)
    direct = [term for term in read.stride_terms if not term.is_indexed]
    assert [term.extent for term in direct] == [table.shape[1 - dim]]
    others = [s for s in streams(body, table, index) if not s.held_bytes]
    assert not any(term.is_indexed for s in others for term in s.stride_terms)


def test_what_is_read_nowhere_opens_no_window():
    problem = picked(4, 1 << 10, 1 << 20)
    index, read = problem.streams
    problem = replace(problem, streams=(index, replace(read, accessed=(0, 1 << 20))))
    found = counts(problem, PointwiseParams(block_x=1024, num_warps=4))
    assert (found.opened_bytes, found.repeat_request_bytes, found.hit_lines) == (0, 0, 0)
    assert memory_bytes(problem, PointwiseParams(block_x=1024)) < 1.1 * problem.moved_bytes


def test_few_reads_of_a_large_table_are_of_elements_of_their_own():
    problem = picked(1, 1 << 28, 1 << 16)
    found = counts(problem, PointwiseParams(block_x=1024))
    assert found.repeat_request_bytes < 0.01 * 64 * (1 << 16)
    assert math.isclose(found.moved_bytes, (8 + 64) * (1 << 16), rel_tol=0.01)


def test_gathers_may_have_many_warps():
    """A program of 32 warps has its window open alone, and others have fewer of its elements."""
    few, many = (
        {value for (value,) in choice.values}
        for problem in (flat(), with_own_indices(picked(1 << 11, 1 << 15, 1 << 13)))
        for space in [SPACES["pointwise"](problem)]
        for choice in limited_to_rules(space, problem, PointwiseParams(block_x=1024))
        .alternatives[0]
        .choices
        if choice.fields == ("num_warps",)
    )
    assert max(few) == 16 and max(many) == 32


def flat():
    return replace(picked(1 << 11, 1 << 15, 1 << 13), streams=(Stream(item_bytes=4),))


@pytest.mark.parametrize("block", [4096, 8192])
def test_windows_are_open_by_the_programs_that_threads_have_room_for(block):
    """H200, 11192 indices in each of 4592 rows of 44768 in bfloat16: 290 us by 16 warps and tiles
    of 8192, whose 44 predicted registers are 32, so that four programs run and not two; 222 by 32
    warps."""
    problem = with_own_indices(picked(1 << 12, 1 << 15, 1 << 13))
    sixteen, many = (
        predicted(problem, PointwiseParams(block_x=block, num_warps=warps), WORK).resources
        for warps in (16, 32)
    )
    assert many["L1 cache"] < 0.9 * sixteen["L1 cache"]


def test_a_window_that_is_larger_than_a_cache_is_found_in_part():
    found = [miss_rate(window, 100.0, PLAIN) for window in (0.0, 50.0, 100.0, 200.0, 1000.0)]
    assert found == pytest.approx([0, 0, 0, 0.5, 0.9])


def test_no_more_lines_are_in_the_cache_than_are_loaded():
    """A row read at indices, beside tensors of which one lies across: warps have it again, and
    neighbours do."""

    def body(fd, x, y, row, index):
        picked = fd.ops.index_select(row, index, 0)
        return fd.ops.add(fd.ops.add(x, fd.ops.permute(y, [1, 0])), picked)

    inputs = [torch.empty(1024, 1024, device="meta") for _ in range(2)]
    inputs += [torch.empty(1024, device="meta"), torch.empty(1024, dtype=torch.long, device="meta")]
    (piece,) = lowered(body, inputs).segmented.segments
    streams = FlatStreams(piece.problem)
    tiles = [(32, 32, 4), (64, 16, 8), (64, 64, 4), (16, 64, 8)]
    for x, y, warps in tiles:
        params = replace(piece.params, block_x=x, block_y=y, num_warps=warps)
        found = streams.traffic(params, 32 * warps)
        assert found.windows.hit_lines <= found.lines
