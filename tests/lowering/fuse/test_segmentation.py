"""How definitions are cut into kernels: how many, by which scheduler, and that the cuts compute."""

from __future__ import annotations

import itertools

import pytest
import torch

from bench.cases import CASES
from bench.cases.case import Draw
from tests.lowering.graphs import (
    alternating,
    gelu,
    layer_norm,
    layer_norm_backward,
    noise,
    normalized,
    rms_norm,
    rms_norm_backward,
    row_mean,
    softmax,
)
from tests.lowering.harness import (
    BOTH,
    CPU,
    check,
    lowered,
    planned,
    schedulers,
    small,
    texts,
)
from tritonfuser import DataType, FusionDefinition, InnerOuterPersistentParams

ROWS = (8, 64)


def joined_with_transpose(fd, x):
    return fd.ops.add(x, fd.ops.permute(x, [1, 0]))


def outer_product(fd, x):
    return fd.ops.mul(fd.ops.broadcast(x, [False, True]), fd.ops.broadcast(x, [True, False]))


def dropout_of_softmax(fd, x):
    kept = fd.ops.lt(fd.ops.uniform(0.0, 1.0, [8, 64], dtype=DataType.Float), 0.9)
    return fd.ops.mul(softmax(fd, x), kept), kept


def dependent_reductions(fd, x):
    for _ in range(5):
        x = fd.ops.tanh(fd.ops.add(x, fd.ops.sum(x, [1], keepdim=True)))
    return x


def of_a_sum(view):
    """A view of row sums, next to the sums themselves."""

    def body(fd, x):
        total = fd.ops.sum(x, [1])
        return view(fd, total), total

    return body


def folded_sum(fd, x):
    """Halves of a reduction added: it is read at two indices that are not its own."""
    total = fd.ops.sum(x, [1])
    return fd.ops.add(fd.ops.slice(total, [0], [4]), fd.ops.slice(total, [4], [8]))


def column_as_row(fd, x):
    total = fd.ops.sum(x, [1], keepdim=True)
    return fd.ops.add(x, fd.ops.permute(total, [1, 0]))


def swapped_totals(fd, x):
    rows, columns = fd.ops.sum(x, [1]), fd.ops.sum(x, [0])
    return fd.ops.add(
        fd.ops.broadcast(rows, [True, False]), fd.ops.broadcast(columns, [False, True])
    )


def there_and_back(fd, x, y):
    """Rows of x need all of y's sums, rows of y all of x's."""
    of_x, of_y = fd.ops.sum(x, [0, 1]), fd.ops.sum(y, [0, 1])
    return (
        fd.ops.sum(fd.ops.mul(x, of_y), [1]),
        fd.ops.sum(fd.ops.mul(y, of_x), [1]),
        fd.ops.add(fd.ops.sum(fd.ops.mul(x, of_y), [1]), fd.ops.sum(y, [1])),
    )


def reshaped_then_added(fd, x, y):
    """[6, 4] and [4, 6] have no axes in common."""
    return fd.ops.add(fd.ops.reshape(fd.ops.tanh(x), [4, 6]), y), fd.ops.exp(x)


def reshaped_then_normalized(fd, x):
    y = fd.ops.reshape(fd.ops.tanh(x), [4, 6])
    return fd.ops.add(y, fd.ops.sum(y, [1], keepdim=True)), fd.ops.sum(fd.ops.sin(x), [1])


# name: body, inputs, schedulers on an H200, on a CPU (None: the same)
PATTERNS = {
    "softmax": (softmax, [ROWS], ["inner_persistent"], None),
    "softmax of columns": (lambda fd, x: softmax(fd, x, 0), [ROWS], ["outer_persistent"], None),
    "softmax transposed": (
        lambda fd, x: softmax(fd, fd.ops.permute(x, [1, 0])),
        [(64, 8)],
        ["inner_persistent"],
        None,
    ),
    "layer norm": (layer_norm, [ROWS, (64,), (64,)], ["inner_persistent"], None),
    "rms norm": (rms_norm, [ROWS, (64,)], ["inner_persistent"], None),
    "batch norm [N, C]": (lambda fd, x: normalized(fd, x, [0]), [ROWS], ["outer_persistent"], None),
    "batch norm [N, C, H, W]": (
        lambda fd, x: normalized(fd, x, [0, 2, 3]),
        [(4, 6, 5, 7)],
        ["inner_persistent"],
        None,
    ),
    "group norm": (
        lambda fd, x: fd.ops.reshape(
            normalized(fd, fd.ops.reshape(x, [4, 2, 3, 5, 7]), [2, 3, 4]), [4, 6, 5, 7]
        ),
        [(4, 6, 5, 7)],
        ["inner_persistent"],
        None,
    ),
    "gelu": (gelu, [ROWS], ["pointwise"], None),
    "silu": (lambda fd, x: fd.ops.silu(x), [ROWS], ["pointwise"], None),
    "many pointwise results": (
        lambda fd, x, y: (fd.ops.add(x, y), fd.ops.exp(x), fd.ops.permute(fd.ops.sin(y), [1, 0])),
        [ROWS, ROWS],
        ["pointwise"],
        None,
    ),
    "few elements beside many": (
        lambda fd, x, y: (fd.ops.exp(x), fd.ops.exp(y)),
        [ROWS, (3, 5)],
        ["pointwise"],
        None,
    ),
    "dependent reductions": (dependent_reductions, [ROWS], ["inner_persistent"], None),
    "sum of a sum": (
        lambda fd, x, y: fd.ops.sum(fd.ops.sum(fd.ops.add(x, y), [0]), [0]),
        [(12, 40), (12, 40)],
        ["reduction", "reduction"],
        None,
    ),
    "several sums of one tensor": (
        lambda fd, x: (fd.ops.sum(x, [1]), fd.ops.max(x, [1]), fd.ops.sum(fd.ops.exp(x), [1])),
        [ROWS],
        ["reduction"],
        None,
    ),
    "rows and columns": (
        lambda fd, x: (fd.ops.sum(x, [0]), fd.ops.sum(x, [1])),
        [ROWS],
        ["reduction", "reduction"],
        ["inner_outer_persistent"],
    ),
    "t + t^T": (joined_with_transpose, [(64, 64)], ["pointwise"], None),
    "outer product": (outer_product, [(13,)], ["pointwise"], None),
    "sum of an outer product": (
        lambda fd, x: fd.ops.sum(outer_product(fd, x), [0, 1]),
        [(13,)],
        ["reduction"],
        None,
    ),
    "sums transposed": (
        of_a_sum(lambda fd, t: fd.ops.exp(fd.ops.permute(t, [1, 0]))),
        [(8, 9, 8)],
        ["reduction"],
        None,
    ),
    "s + s^T": (
        lambda fd, x: joined_with_transpose(fd, fd.ops.sum(x, [1])),
        [(16, 5, 16)],
        ["reduction", "pointwise"],
        None,
    ),
    "sums sliced": (
        of_a_sum(lambda fd, t: fd.ops.exp(fd.ops.slice(t, [2], [5]))),
        [ROWS],
        ["reduction", "pointwise"],
        None,
    ),
    "sums padded": (
        of_a_sum(lambda fd, t: fd.ops.pad(t, [1, 2])),
        [ROWS],
        ["reduction", "pointwise"],
        None,
    ),
    "sums folded": (folded_sum, [ROWS], ["reduction", "pointwise"], None),
    "sums gathered": (
        of_a_sum(lambda fd, t: fd.ops.cat([t, t], 0)),
        [(16, 64)],
        ["reduction"],
        None,
    ),
    "column as row": (column_as_row, [(16, 16)], ["reduction", "pointwise"], None),
    "rows and columns swapped": (
        swapped_totals,
        [(16, 16)],
        ["reduction", "inner_persistent"],
        ["inner_outer_persistent"],
    ),
    "kernels for each other": (
        there_and_back,
        [ROWS, ROWS],
        ["reduction", "reduction"],
        None,
    ),
    "reshape that divides": (
        lambda fd, x: fd.ops.add(fd.ops.reshape(fd.ops.tanh(x), [2, 4, 64]), 1.0),
        [ROWS],
        ["pointwise"],
        None,
    ),
    "reshape that does not": (reshaped_then_added, [(6, 4), (4, 6)], ["pointwise"], None),
    "reshape and rows": (
        reshaped_then_normalized,
        [(6, 4)],
        ["inner_persistent", "reduction"],
        None,
    ),
    "running sum": (lambda fd, x: fd.ops.cumsum(x, 1), [ROWS], ["scan"], None),
    "running sum of softmax": (
        lambda fd, x: fd.ops.cumsum(softmax(fd, x), 1),
        [ROWS],
        ["scan"],
        None,
    ),
    "softmax of running sum": (
        lambda fd, x: softmax(fd, fd.ops.cumsum(x, 1)),
        [ROWS],
        ["scan"],
        None,
    ),
    "softmax backward": (
        lambda fd, y, dy: fd.ops.mul(
            y, fd.ops.sub(dy, fd.ops.sum(fd.ops.mul(dy, y), [1], keepdim=True))
        ),
        [ROWS, ROWS],
        ["inner_persistent"],
        None,
    ),
    "layer norm backward": (
        layer_norm_backward,
        [(96, 64), (96, 64), (64,)],
        ["inner_outer_persistent", "reduction"],
        ["inner_outer_persistent"],
    ),
    "rms norm backward": (
        rms_norm_backward,
        [(96, 64), (96, 64), (64,)],
        ["inner_outer_persistent", "reduction"],
        ["inner_outer_persistent"],
    ),
    "layer norm backward, prime rows": (
        layer_norm_backward,
        [(97, 64), (97, 64), (64,)],
        ["inner_outer_persistent", "reduction"],
        ["inner_outer_persistent"],
    ),
    "layer norm backward, few rows": (
        layer_norm_backward,
        [(8, 64), (8, 64), (64,)],
        ["inner_persistent", "reduction"],
        ["inner_outer_persistent"],
    ),
}


@pytest.mark.covering
@pytest.mark.parametrize("facts", BOTH, ids=lambda f: f.arch)
@pytest.mark.parametrize("name", PATTERNS)
def test_kernels_of_a_pattern(name, facts):
    body, shapes, on_gpu, on_cpu = PATTERNS[name]
    inputs = [noise(*shape, seed=place) for place, shape in enumerate(shapes)]
    found = check(body, *inputs, facts=facts, tolerance=1e-4)
    assert schedulers(found) == (on_cpu or on_gpu if facts is CPU else on_gpu), found.segmented


@pytest.mark.parametrize("facts", BOTH, ids=lambda f: f.arch)
def test_softmax_with_dropout_is_one_kernel(facts):
    """The mask, which a backward needs, is stored by the kernel that draws it."""
    inputs = [noise(8, 64)]
    found = lowered(dropout_of_softmax, inputs, facts)
    assert schedulers(found) == ["inner_persistent"]
    assert len(found.seeds) == 1
    dropped, kept = planned(found, inputs, facts).run(inputs)
    assert 0.8 < kept.float().mean() < 0.97
    torch.testing.assert_close(dropped, torch.softmax(inputs[0], -1) * kept)


@pytest.mark.parametrize("steps", [2, 3, 4, 5])
def test_rows_and_columns_in_turn(steps):
    """A kernel on a CPU may do both; each reduction is written behind what it reads."""
    found = check(alternating(steps), noise(8, 64), facts=CPU)
    assert schedulers(found) == ["inner_outer_persistent"]
    check(alternating(steps), noise(8, 64), facts=small(4))


@pytest.mark.parametrize("facts", BOTH, ids=lambda f: f.arch)
def test_all_ways_to_reduce_one_tensor(facts):
    dims = [list(d) for n in (1, 2, 3) for d in itertools.combinations(range(3), n)]
    body = lambda fd, x: [fd.ops.sum(x, d) for d in dims]  # noqa: E731
    check(body, noise(4, 5, 6), facts=facts)


# --- the edges of the graph --------------------------------------------------------------

EDGES = {
    "constant": (lambda fd: fd.ops.full([3, 4], 2.0, DataType.Float), []),
    "constants": (lambda fd: fd.ops.add(fd.ops.full([3, 4], 2.0, DataType.Float), 1.0), []),
    "no inputs": (lambda fd: fd.ops.iota(7, 1, 2, DataType.Int), []),
    "sum of a constant": (lambda fd: fd.ops.sum(fd.ops.full([3, 4], 2.0, DataType.Half), [0]), []),
    "0-dim": (lambda fd, x: fd.ops.tanh(x), [()]),
    "0-dim and others": (
        lambda fd, x, y: (fd.ops.add(x, y), fd.ops.sum(y), fd.ops.mul(fd.ops.sum(y), x), x),
        [(), (3, 4)],
    ),
    "scalar result spread": (lambda fd, x: fd.ops.broadcast(fd.ops.sum(x), [True, True]), [(3, 4)]),
    "sizes of one": (
        lambda fd, x: (fd.ops.sum(x, [0, 2]), fd.ops.exp(x), fd.ops.cumsum(x, 1)),
        [(1, 1, 1)],
    ),
    "one row": (lambda fd, x: softmax(fd, x), [(1, 37)]),
    "one column": (lambda fd, x: softmax(fd, x), [(37, 1)]),
    "rank 8": (
        lambda fd, x: (
            fd.ops.sum(x, [0, 2, 4, 6]),
            fd.ops.tanh(fd.ops.permute(x, [7, 6, 5, 4, 3, 2, 1, 0])),
            fd.ops.add(x, fd.ops.sum(x, [1, 3, 5, 7], keepdim=True)),
        ),
        [(2, 3, 2, 1, 2, 3, 1, 2)],
    ),
    "rank 12": (
        lambda fd, x: fd.ops.add(x, fd.ops.sum(x, [0, 3, 7, 11], keepdim=True)),
        [(2, 1, 3, 2, 1, 1, 2, 3, 1, 1, 1, 2)],
    ),
    "no rows": (
        lambda fd, x: (fd.ops.tanh(x), fd.ops.sum(x, [0]), fd.ops.sum(x, [1]), fd.ops.sum(x)),
        [(0, 5)],
    ),
    "no columns": (lambda fd, x: (softmax(fd, x), fd.ops.max(x, [1])), [(5, 0)]),
    "no rows, running": (lambda fd, x: (fd.ops.max(x, [0]), fd.ops.cumsum(x, 0)), [(0, 5)]),
    "variance of nothing": (lambda fd, x: fd.ops.var_mean(x, [0]), [(0, 5)]),
    "empty cat": (lambda fd, x, y: fd.ops.cat([x, y], 0), [(0, 5), (3, 5)]),
    "empty pad": (lambda fd, x: fd.ops.tanh(fd.ops.pad(x, [1, 1, 1, 1], 2.0)), [(0, 5)]),
    "empty slice": (
        lambda fd, x: (
            fd.ops.slice(fd.ops.tanh(x), [2, 0], [2, 4]),
            fd.ops.sum(fd.ops.slice(x, [2, 0], [2, 4]), [0]),
            fd.ops.tanh(x),
        ),
        [(3, 4)],
    ),
}


@pytest.mark.parametrize("facts", BOTH, ids=lambda f: f.arch)
@pytest.mark.filterwarnings("ignore:var_mean")
@pytest.mark.parametrize("name", EDGES)
def test_values_of_rare_shapes(name, facts):
    body, shapes = EDGES[name]
    check(body, *[noise(*shape, seed=i) for i, shape in enumerate(shapes)], facts=facts)


def test_sums_over_no_rows_are_written():
    """They are no part of a kernel over these rows, which has no programs."""
    found = check(lambda fd, x: (fd.ops.sum(x, [1]), fd.ops.sum(x, [0])), noise(0, 5))
    assert sorted(schedulers(found)) == ["no_op", "pointwise"]


# --- two steps ---------------------------------------------------------------------------


def test_a_long_sum_is_done_in_two_steps():
    body = lambda fd, x: fd.ops.sum(x, [0])  # noqa: E731
    assert schedulers(check(body, noise(1 << 16), facts=small(2), tolerance=1e-3)) == [
        "reduction",
        "reduction",
    ]
    assert schedulers(check(body, noise(1 << 16), facts=CPU, tolerance=1e-3)) == ["reduction"]


def test_a_long_row_is_normalized_by_several_kernels():
    """One program would leave a GPU idle."""
    inputs = [torch.empty(1, 1 << 20, device="meta")]
    found = lowered(softmax, inputs)
    assert len(found.segmented.segments) > 1
    assert found.segmented.cuts
    assert schedulers(lowered(softmax, inputs, small(1))) == ["inner_persistent"]


@pytest.mark.covering
@pytest.mark.parametrize("rows", [64, 96, 200])
@pytest.mark.parametrize("multiprocessors", [1, 4, 132])
def test_norm_backward_shares_rows_out(rows, multiprocessors):
    inputs = noise(rows, 64), noise(rows, 64, seed=1), noise(64)
    found = check(layer_norm_backward, *inputs, facts=small(multiprocessors), tolerance=1e-4)
    assert schedulers(found) == ["inner_outer_persistent", "reduction"]
    first = found.sources[0]
    assert first is not None
    assert 1 < first.grid[0] <= max(rows // 2, 2)


# --- what is kept ------------------------------------------------------------------------


def test_cuts_say_why():
    found = lowered(column_as_row, [noise(16, 16)])
    assert found.segmented.cuts == (
        "tv4 starts s1; not in s0: it reads tv1 at another index than where the kernel computes it",
    )
    text = str(found.segmented)
    assert "s0 reduction [" in text
    assert "cut: " in text


def test_equal_definitions_are_cut_equally():
    """Names and order are those of the recording, not of memory addresses."""
    inputs = [noise(96, 64), noise(96, 64), noise(64)]
    first = lowered(layer_norm_backward, inputs)
    second = lowered(layer_norm_backward, inputs)
    assert str(first.segmented) == str(second.segmented)
    assert texts(first) == texts(second)


def test_a_value_is_computed_where_it_is_needed_and_stored_once():
    def body(fd, x):
        y = fd.ops.exp(x)
        return y, fd.ops.permute(y, [1, 0]), fd.ops.reshape(y, [512]), y

    (segment,) = check(body, noise(8, 64)).segmented.segments
    assert len(segment.outputs) == 1


def test_a_stored_row_value_is_loaded_by_later_kernels():
    """64 columns need each row's sum: it is not summed up again for each."""

    def body(fd, x):
        mean = row_mean(fd, x, 64)
        return fd.ops.squeeze(mean, [1]), fd.ops.add(fd.ops.permute(mean, [1, 0]), x)

    found = check(body, noise(64, 64))
    assert sum("tl.sum" in text for text in texts(found)) == 1


@pytest.mark.parametrize("count", [40, 60])
def test_a_long_graph_is_one_kernel(count):
    def body(fd, x):
        for _ in range(count):
            x = fd.ops.add(fd.ops.tanh(x), fd.ops.sum(x, [1], keepdim=True))
        return x

    assert schedulers(lowered(body, [noise(8, 64)])) == ["inner_persistent"]


def test_results_at_other_rows_are_not_taken_for_those_of_the_row():
    """Sums of columns beside as many sums of rows: row i of the kernel has column i's sum."""

    def body(fd, x):
        return fd.ops.sum(x, [1, 2]), fd.ops.sub(x, fd.ops.sum(x, [0, 2], keepdim=True))

    def swapped(fd, x):
        found = fd.ops.sum(x, [1, 2])
        spread = fd.ops.sub(x, fd.ops.sum(x, [1, 2], keepdim=True))
        return found, spread, fd.ops.sub(x, fd.ops.sum(x, [0, 2], keepdim=True))

    for shape in ((5, 5, 33), (5, 5, 4), (16, 16, 70)):
        check(body, noise(*shape))
        check(swapped, noise(*shape))


def test_rows_of_odd_length_begin_at_vectors_in_their_shares():
    """A norm backward over rows that begin inside vectors: shares take rows that begin alike."""
    (case,) = (case for case in CASES if case.name == "layernorm_bwd")
    size = (8192, 8193)
    with FusionDefinition() as fd:
        case.define(fd, size, torch.bfloat16)
    inputs = case.draw(Draw(torch.bfloat16, "meta"), size)
    first = fd.heuristics(inputs, arch="sm_90")[0]
    assert isinstance(first, InnerOuterPersistentParams)
    assert first.align == 8
