"""Rows that begin inside of vectors, in loops over blocks that begin at vectors."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.lowering.graphs import noise, softmax
from tests.lowering.harness import framed, lowered, poisoned, record, texts
from tests.lowering.tile.test_aligned_rows import BODIES
from tritonfuser.dtypes import DataType
from tritonfuser.errors import ParamsError
from tritonfuser.heuristics.params import InnerPersistentParams, ReductionParams


def variance(fd, x, w, b):
    """Mean and variance, and results that use them: two loops."""
    wide = fd.ops.cast(x, DataType.Double if x.dtype() is DataType.Double else DataType.Float)
    var, mean = fd.ops.var_mean(wide, [1], correction=0, keepdim=True)
    return fd.ops.sub(wide, mean), var


def full_results(fd, x, w, b):
    """A maximum beside results of several dtypes that the same loop stores."""
    wide = fd.ops.cast(fd.ops.mul(x, x), DataType.Float)
    return fd.ops.max(wide, [1]), wide, fd.ops.add(x, 1.0), fd.ops.gt(x, 0.0)


def several(fd, x, w, b):
    grown = fd.ops.add(fd.ops.mul(x, 0.01), 1.0)
    return fd.ops.min(x, [1]), fd.ops.prod(grown, [1]), fd.ops.sum(x, [1])


LOOPED = {**BODIES, "variance": variance, "full results": full_results, "several": several}
TILES = [
    # columns, vector, block, tails, rows of a program
    (67, 4, 128, (16,), 1),  # shorter than a block
    (67, 4, 64, (16,), 2),  # one block
    (195, 8, 64, (16,), 1),  # a last block with a mask
    (195, 8, 64, (16,), 2),
    (200, 8, 64, (32, 16, 16), 1),  # blocks and tails
    (201, 4, 32, (16, 8), 2),
    (195, 8, 32, (32, 16), 1),  # as many elements as whole blocks, or a vector fewer
    (199, 8, 32, (64, 16, 16), 2),  # more than blocks leave
]


def looped(fd, inputs, **changes):
    """What comes out where the first kernel loops over blocks that begin at vectors."""
    first, *rest = fd.heuristics(inputs)
    chosen = replace(first, persistent=False, **changes)
    with poisoned():
        return fd.run(inputs, params=[chosen, *rest])


def compare(kind, columns, dtype, **changes):
    given = [noise(11, columns), noise(columns, seed=3), noise(columns, seed=4)]
    inputs = [framed(x.to(dtype)) for x in given]
    fd = record(LOOPED[kind], inputs)
    found = looped(fd, inputs, **changes)
    doubled = [x.double() for x in inputs]
    exact = record(LOOPED[kind], doubled).run(doubled)
    for one, same, true in zip(found, fd.run(inputs), exact, strict=True):
        torch.testing.assert_close(one, same)
        torch.testing.assert_close(one.double(), true.double(), rtol=1e-2, atol=1e-2)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("columns", "vector", "block", "tails", "rows"), TILES)
@pytest.mark.parametrize("kind", LOOPED)
def test_the_same_numbers(kind, columns, vector, block, tails, rows, dtype):
    changes = {"block_x": rows, "block_r": block, "tails": tails, "align": vector}
    compare(kind, columns, dtype, **changes)


@pytest.mark.covering
@pytest.mark.parametrize("columns", range(192, 200))
@pytest.mark.parametrize("tails", [(16,), (64, 16)])
@pytest.mark.parametrize("kind", ["softmax", "variance", "full results"])
def test_rows_of_all_lengths_beside_whole_vectors(kind, tails, columns):
    changes = {"block_x": 1, "block_r": 64, "tails": tails, "align": 8}
    compare(kind, columns, torch.bfloat16, **changes)


@pytest.mark.covering
@pytest.mark.parametrize("tails", [(16,), (64, 16)])
@pytest.mark.parametrize("kind", ["softmax", "variance", "layer norm"])
def test_loops_that_go_backwards_with_loads_ahead(kind, tails):
    changes = {"block_r": 32, "tails": tails, "align": 8, "backwards": True, "num_stages": 2}
    for rows in (1, 2):
        compare(kind, 203, torch.bfloat16, block_x=rows, **changes)


def test_results_lie_amid_what_is_not_touched():
    """The edges of a row share vectors with the rows beside it, and with what is no row."""
    buffer = torch.full((13 * 199 + 9,), 7.0)
    out = buffer[4 : 4 + 11 * 199].view(11, 199)
    x = noise(11, 199)
    fd = record(softmax, [x])
    changes = {"block_x": 1, "block_r": 64, "tails": (32, 16), "align": 4, "persistent": False}
    fd.plan([x], params=[replace(fd.heuristics([x])[0], **changes)])([x], out=[out])
    torch.testing.assert_close(out, torch.softmax(x, 1))
    assert (buffer[:4] == 7).all() and (buffer[4 + 11 * 199 :] == 7).all()


def looped_params(block, *tails, **changes):
    given = {"block_x": 1, "block_r": block, "tails": tails, "align": 8, "persistent": False}
    return InnerPersistentParams(**{**given, **changes})


@pytest.mark.parametrize(
    ("columns", "tails", "end", "masked"),
    [
        (203, (16, 16), 192, False),
        (195, (64, 16), 128, False),  # some rows have 192 elements in whole vectors, others 184
        (259, (128, 16), 128, False),
        (199, (16,), 192, False),  # all of them have 192
        (195, (16,), 192, True),
        (203, (16,), 200, True),
    ],
)
def test_only_a_last_block_that_reaches_past_a_row_has_a_mask(columns, tails, end, masked):
    x = noise(11, columns).bfloat16()
    (text,) = texts(lowered(softmax, [x], params=[looped_params(64, *tails)]))
    assert text.count(f"in range(0, {end}, RBLOCK):") == 2
    assert ("r_mask = r < stop" in text) is masked


BAD = {
    "too few behind blocks": ((195, 64, (32, 16)), "blocks of 64 leave 64 .* hold 32"),
    # Behind such steps rows with a vector fewer had elements of the next one, and stores there.
    "steps shorter than a vector": ((194, 4, (4, 16)), "steps of block_r=4 hold no vector"),
    "so with no tail but the edges": ((194, 2, (16,)), "steps of block_r=2 hold no vector"),
    "no room for edges": ((203, 64, (16, 8)), "and 8 beside them, of 200 and 16"),
    "no tails": ((203, 64, ()), "and 0 beside them"),
    "no whole vector": ((7, 16, (16,)), "rows of 7 elements have no whole vector"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name):
    (columns, block, tails), message = BAD[name]
    x = noise(11, columns).bfloat16()
    with pytest.raises(ParamsError, match=message):
        record(softmax, [x]).run([x], params=[looped_params(block, *tails)])


def test_columns_do_not_begin_at_vectors():
    x = noise(11, 203).t()
    fd = record(lambda fd, x: fd.ops.sum(x, [1]), [x])
    given = replace(ReductionParams(block_x=8, block_r=64, persistent=False), align=8, tails=(16,))
    with pytest.raises(ParamsError, match="not most of its tensors"):
        fd.run([x], params=[given])


def largest(fd, x, y, z):
    """The largest of all elements, and two results over all of them."""
    x, y, z = (fd.ops.cast(item, DataType.Float) for item in (x, y, z))
    grown = fd.ops.add(fd.ops.silu(x), x)
    stored = fd.ops.add(fd.ops.mul(grown, y), z), grown
    return fd.ops.max(fd.ops.silu(x), [0]), *(fd.ops.cast(v, DataType.BFloat16) for v in stored)


@pytest.mark.parametrize("length", [474_322, 474_321])
def test_parts_of_a_long_row_are_read_and_stored_by_vectors(length):
    """As many parts as programs, each of which begins inside a vector."""
    given = [torch.empty(283 * length, dtype=torch.bfloat16, device="meta") for _ in range(3)]
    fd = record(largest, given)
    first = fd.segments(given, arch="sm_90").segments[0]
    assert isinstance(first.params, ReductionParams)
    assert (first.params.persistent, first.params.align) == (False, 8)
    report = fd.compile_for("sm_90", given)[0]
    assert (report.max_load_bytes, report.max_store_bytes, report.spill_bytes) == (16, 16, 0)
    loop = report.asm["ptx"].partition("bra")[0]
    assert "ld.global.v4.b32" in loop and "ld.global.b16" not in loop


@pytest.mark.parametrize("name", ["softmax", "variance"])
def test_loops_of_several_passes_read_vectors(name):
    """By the rules: rows that registers do not hold."""
    given = [torch.empty(1024, 24_003, dtype=torch.bfloat16, device="meta")]
    given += [torch.empty(24_003, dtype=torch.bfloat16, device="meta") for _ in "wb"]
    fd = record(LOOPED[name], given)
    (segment,) = fd.segments(given, arch="sm_90").segments
    assert (segment.params.persistent, segment.params.align) == (False, 8)
    (report,) = fd.compile_for("sm_90", given)
    assert (report.max_load_bytes, report.max_store_bytes, report.spill_bytes) == (16, 16, 0)
