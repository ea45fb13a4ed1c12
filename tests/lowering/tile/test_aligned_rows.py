"""Rows that begin inside of vectors, in tiles that begin at vectors: numbers, texts, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bench.cases import BY_NAME
from tests.lowering.emit import integer_terms
from tests.lowering.graphs import layer_norm, layer_norm_backward, noise, softmax
from tests.lowering.harness import (
    H200,
    check,
    framed,
    lowered,
    planned,
    poisoned,
    record,
    schedulers,
    small,
    texts,
)
from tritonfuser.dtypes import DataType
from tritonfuser.errors import ParamsError
from tritonfuser.heuristics.params import InnerPersistentParams
from tritonfuser.heuristics.schedulers import propose
from tritonfuser.lowering.emit.indexing import term_bounds
from tritonfuser.lowering.passes.splits.factors import interleaved_factors


def widened(fd, x, w, b):
    """A layer norm, computed in float32 or wider."""
    wide = DataType.Double if x.dtype() is DataType.Double else DataType.Float
    made = layer_norm(fd, *(fd.ops.cast(item, wide) for item in (x, w, b)))
    return fd.ops.cast(made, x.dtype())


def dropped(fd, x, w, b):
    """With random numbers, which neighbours share counters of."""
    sizes = [fd.ops.size(x, dim) for dim in range(2)]
    unit = fd.ops.uniform(0.0, 1.0, sizes, rng_seed=5, rng_offset=3)
    kept = fd.ops.mul(x, fd.ops.cast(fd.ops.lt(unit, 0.7), x.dtype()))
    return fd.ops.sub(kept, fd.ops.max(kept, [-1], keepdim=True)), kept


def maxima(fd, x, w, b):
    """Nothing but a result a row."""
    return fd.ops.max(fd.ops.mul(x, w), [-1]), fd.ops.sum(x, [-1])


def one_number(fd, x, w, b):
    """Rows of one number, which runs along them by the mask of their edges alone."""
    sizes = [fd.ops.size(x, dim) for dim in range(2)]
    row = fd.ops.expand(fd.ops.broadcast(fd.ops.select(b, 0, 0), [True, True]), sizes)
    var, mean = fd.ops.var_mean(fd.ops.cast(row, DataType.Float), [1], keepdim=True)
    most = fd.ops.max(fd.ops.add(fd.ops.add(row, mean), var), [1], keepdim=True)
    return fd.ops.mul(x, most), softmax(fd, row)


BODIES = {
    "layer norm": widened,
    "softmax": lambda fd, x, w, b: softmax(fd, x),
    "dropout": dropped,
    "reduction": maxima,
    "one number": one_number,
}
ROWS = [
    # columns, vector, block, tails, rows of a program
    (67, 4, 64, (16,), 1),
    (67, 4, 64, (8,), 4),
    (69, 8, 64, (16,), 2),
    (69, 8, 64, (16,), 1),
    (66, 8, 64, (32,), 1),
    (103, 8, 64, (32, 16), 2),
    (95, 8, 64, (32, 16), 1),
    (128, 8, 128, (16,), 1),
    (33, 16, 32, (32,), 4),
]


def aligned(fd, inputs, **changes):
    """What comes out where the first kernel's tiles begin at vectors."""
    first, *rest = fd.heuristics(inputs)
    chosen = replace(first, persistent=True, **changes)
    with poisoned():
        return fd.run(inputs, params=[chosen, *rest])


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("columns", "vector", "block", "tails", "rows"), ROWS)
@pytest.mark.parametrize("kind", BODIES)
def test_the_same_numbers(kind, columns, vector, block, tails, rows, dtype):
    given = [noise(11, columns), noise(columns, seed=3), noise(columns, seed=4)]
    inputs = [framed(x.to(dtype)) for x in given]
    fd = record(BODIES[kind], inputs)
    changes = {"block_x": rows, "block_r": block, "tails": tails, "align": vector}
    found = aligned(fd, inputs, **changes)
    doubled = [x.double() for x in inputs]
    exact = record(BODIES[kind], doubled).run(doubled)
    for one, same, true in zip(found, fd.run(inputs), exact, strict=True):
        torch.testing.assert_close(one, same)
        torch.testing.assert_close(one.double(), true, rtol=1e-2, atol=1e-2)


def test_results_lie_amid_what_is_not_touched():
    """The edges of a row share vectors with the rows beside it, and with what is no row."""
    buffer = torch.full((13 * 67 + 9,), 7.0)
    out = buffer[4 : 4 + 11 * 67].view(11, 67)
    x = noise(11, 67)
    fd = record(softmax, [x])
    params = [replace(fd.heuristics([x])[0], block_x=1, block_r=64, tails=(16,), align=4)]
    fd.plan([x], params=params)([x], out=[out])
    torch.testing.assert_close(out, torch.softmax(x, 1))
    assert (buffer[:4] == 7).all() and (buffer[4 + 11 * 67 :] == 7).all()


@pytest.mark.parametrize("shape", [(96, 517), (4, 32, 517), (90, 517), (96, 518)])
def test_norm_backwards_walk_over_rows_that_begin_alike(shape):
    """As the schedulers propose for a GPU: every so many-th row is a program's."""
    rows, columns = shape[:-1], shape[-1]
    x, dy = noise(*shape, seed=1).bfloat16(), noise(*shape, seed=2).bfloat16()
    w = noise(columns, seed=3).bfloat16()

    def body(fd, x, dy, w):
        x, dy, w = (fd.ops.cast(item, DataType.Float) for item in (x, dy, w))
        flat = [fd.ops.reshape(item, [x_rows, columns]) for item in (x, dy)]
        dx, dw, db = layer_norm_backward(fd, *flat, w)
        return fd.ops.cast(dx, DataType.BFloat16), dw, db

    x_rows = torch.Size(rows).numel()
    found = lowered(body, [x, dy, w], small(8))
    assert schedulers(found)[0] == "inner_outer_persistent"
    first = found.segmented.segments[0].params
    assert first.align == 8
    with poisoned():
        actual = planned(found, [x, dy, w]).run([x, dy, w])
    wide = [item.double() for item in (x, dy, w)]
    expected = record(body, wide).run(wide)
    for one, true in zip(actual, expected, strict=True):
        torch.testing.assert_close(one.double(), true.double(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    ("name", "width"), [("softmax", 8193), ("rmsnorm", 8194), ("layernorm", 8193)]
)
def test_loads_and_stores_take_vectors(name, width):
    case = BY_NAME[name]
    dtype = torch.float32 if name == "layernorm" else torch.bfloat16
    fd = case.record((8192, width), dtype)
    inputs = case.inputs((8192, width), dtype, "meta")
    (report,) = fd.compile_for("sm_90", inputs)
    assert (report.max_load_bytes, report.max_store_bytes, report.spill_bytes) == (16, 16, 0)


def test_weights_of_two_bytes_are_not_worth_it():
    """A layer norm reads two of them for each element that it reads and writes."""
    case = BY_NAME["layernorm"]
    fd = case.record((8192, 8193), torch.bfloat16)
    inputs = case.inputs((8192, 8193), torch.bfloat16, "meta")
    (segment,) = fd.segments(inputs, arch="sm_90").segments
    assert segment.params.align == 1


def test_short_tiles_are_read_ahead():
    """Of two bytes a lane, which the pipeline does not copy."""
    case = BY_NAME["rmsnorm_bwd"]
    for dtype, ahead in ((torch.bfloat16, True), (torch.float32, False)):
        fd, given = case.record((8192, 8200), dtype), case.inputs((8192, 8200), dtype, "meta")
        chosen = fd.schedule(given, arch="sm_90")
        first = chosen.segments[0]
        piped = replace(first, params=replace(first.params, num_stages=3, prefetch=False))
        piped = replace(chosen, segments=(piped, *chosen.segments[1:]))
        (source, *_) = fd.kernels(given, arch="sm_90", schedule=piped)
        assert ("_next = tl.load" in source.text) is ahead


BAD = {
    "another row": ({"block_r": 32, "tails": (16,)}, "hold 32 elements"),
    "no room for edges": ({"tails": (8,), "align": 8}, "hold 64 elements in whole vectors and 8"),
    "no edges": ({"tails": ()}, "and 0 beside"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name):
    changes, message = BAD[name]
    x = noise(11, 67)
    fd = record(softmax, [x])
    chosen = InnerPersistentParams(block_x=1, block_r=64, persistent=True, tails=(16,), align=4)
    with pytest.raises(ParamsError, match=message):
        fd.run([x], params=[replace(chosen, **changes)])


def strided(rows, columns, step):
    return torch.empty_strided((rows, columns), (step, 1)).copy_(noise(rows, columns, seed=step))


def test_rows_of_one_tensor_begin_elsewhere():
    """Its elements are read one by one."""
    inputs = [noise(8, 67), strided(8, 67, 70)]
    fd = record(lambda fd, x, y: softmax(fd, fd.ops.add(x, y)), inputs)
    (found,) = aligned(fd, inputs, block_x=2, block_r=64, tails=(16,), align=4)
    torch.testing.assert_close(found, torch.softmax(inputs[0] + inputs[1], 1))


def test_rows_of_all_tensors_begin_elsewhere():
    inputs = [strided(8, 67, 69), strided(8, 67, 70)]

    def body(fd, x, y):
        return softmax(fd, fd.ops.add(x, y))

    chosen = InnerPersistentParams(block_x=1, block_r=64, persistent=True, tails=(16,), align=4)
    with pytest.raises(ParamsError, match="not most of its tensors"):
        record(body, inputs).run(inputs, params=[chosen])
    assert lowered(body, inputs, H200).segmented.segments[0].params.align == 1


@pytest.mark.parametrize("align", [4, 8])
def test_rows_of_several_axes(align):
    """As of an image, whose elements lie one behind another."""
    x = noise(3, 5, 7, 11)

    def body(fd, x):
        var, mean = fd.ops.var_mean(x, [2, 3], correction=0, keepdim=True)
        scaled = fd.ops.mul(fd.ops.sub(x, mean), fd.ops.rsqrt(fd.ops.add(var, 1e-5)))
        return scaled, fd.ops.sum(fd.ops.mul(x, x), [2, 3])

    fd = record(body, [x])
    normal, squares = aligned(fd, [x], block_x=2, block_r=64, tails=(16, 16), align=align)
    torch.testing.assert_close(normal, torch.nn.functional.instance_norm(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(squares, (x * x).sum((2, 3)))


def test_parts_in_turn():
    assert interleaved_factors((4, 510), 128, 2) == (1, 102)
    assert interleaved_factors((512,), 128, 8) == (128,)
    assert interleaved_factors((4, 24), 16, 8) == (2, 8)
    assert interleaved_factors((7,), 16, 8) == (1,)


def across_rows(fd, x, y, across):
    """Rows less their sum, of which one tensor's memory lies across."""
    terms = fd.ops.mul(x, y)
    total = fd.ops.sum(fd.ops.mul(terms, across), [1], keepdim=True)
    return fd.ops.sub(terms, fd.ops.mul(across, total))


@pytest.mark.parametrize(("rows", "align"), [(8_000, 4), (87_200, 1)])
def test_steps_across_rows_fit_into_32_bits(rows, align):
    """With 87200 rows, 2 elements off from row to row, 87200 apart: 1.5e10 before differences.

    The rules propose vectors where they may; the cost model has four rows a program without any.
    """
    x, y = (torch.empty(rows, 1298, device="meta") for _ in "xy")
    across = torch.empty(1298, rows, device="meta").t()
    (piece,) = lowered(across_rows, [x, y, across]).segmented.segments
    rules = propose(piece.problem)
    assert isinstance(rules, InnerPersistentParams)
    assert isinstance(piece.params, InnerPersistentParams)
    assert rules.align == align and piece.params.align in (1, align)


def test_given_tiles_that_begin_at_vectors_have_64_bits_where_steps_need_them(monkeypatch):
    """Their kernel reads no other memory; its numbers are those of any other."""
    x, y = (torch.empty(87_200, 1298, device="meta") for _ in "xy")
    inputs = [x, y, torch.empty(1298, 87_200, device="meta").t()]
    given = InnerPersistentParams(
        block_x=4, block_r=1024, persistent=True, tails=(256, 16, 16), align=4
    )
    (kernel,) = lowered(across_rows, inputs, params=[given]).sources
    assert "whole_vectors(" in kernel.text and "tl.int64" in kernel.text
    assert integer_terms.faults(kernel) == []
    monkeypatch.setattr(term_bounds, "INT32_LIMIT", 100)
    small_ones = noise(11, 67), noise(11, 67, seed=1), noise(67, 11, seed=2).t()
    tiles = replace(given, block_x=1, block_r=64, tails=(8,))
    (text,) = texts(check(across_rows, *small_ones, params=[tiles]))
    assert "whole_vectors(" in text and "tl.int64" in text


def test_rows_of_channels_with_a_weight_each_do_not_begin_at_vectors():
    """Their tiles cannot: the weight runs along a part of the row."""

    def body(fd, x, weight):
        wide = fd.ops.cast(x, dtype=DataType.Float)
        total = fd.ops.sum(wide, [1, 2], keepdim=True)
        scaled = fd.ops.mul(fd.ops.sub(wide, total), fd.ops.broadcast(weight, [True, False, True]))
        return fd.ops.cast(scaled, dtype=DataType.BFloat16)

    check(body, noise(300, 11, 132).bfloat16(), noise(11).bfloat16(), tolerance=1e-1)
