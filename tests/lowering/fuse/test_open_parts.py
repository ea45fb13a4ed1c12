"""Parts of reductions whose number varies: how long they are, and what kernels count on of that."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.opened import compile_open
from tests.lowering.graphs import noise, softmax
from tests.lowering.harness import record, small
from tritonfuser.cache.keys.open_sizes import KeyReader
from tritonfuser.cache.keys.signature import key_maker
from tritonfuser.lowering.fuse.scheduler_queries.uneven_shares import equal_shares

BODIES = {
    "softmax": (lambda fd, x: softmax(fd, x, 0), lambda x: torch.softmax(x, 0)),
    "sum": (lambda fd, x: fd.ops.sum(x, [0]), lambda x: x.sum(0)),
    "maximum": (lambda fd, x: fd.ops.max(x, [0]), lambda x: x.amax(0)),
}


def meta(*shape, dtype=torch.float32):
    return [torch.empty(shape, dtype=dtype, device="meta")]


@given(st.integers(4, 1 << 20), st.integers(2, 4096))
def test_padded_parts_are_no_longer_than_wanted(size, wanted):
    wanted = min(wanted, size // 2)
    found = equal_shares(size, wanted)
    assert 2 <= found <= wanted + 1
    assert size // found + 1 <= -(-size // wanted)
    assert size < found * (size // found + 1)  # there is padding at all sizes


@pytest.mark.parametrize(("rows", "block"), [(10_888, 8), (6_112, 256)])
def test_parts_fill_their_block(rows, block):
    """Rows that the number of parts would divide: parts of 8 are in a block of 8."""
    shapes = [(rows, 2184), (40, 41), (72, 73)]
    given = [meta(*shape, dtype=torch.bfloat16) for shape in shapes]
    fd = record(BODIES["softmax"][0], given[0])
    used = fd.kernels(given[0], arch="sm_90", varying=given[1:])[0]
    assert "size3 + 1" in used.text
    assert dict(used.constants)["RBLOCK"] == block


@pytest.mark.parametrize(("rows", "bounds"), [(1300, (257, 384)), (3500, (193, 224))])
def test_the_rows_of_parts_are_known_to_an_eighth_of_a_block(rows, bounds):
    """Or to as many as all threads have at once: 325 rows of 4 parts, 219 of 16."""
    shapes = [(rows, 500), (40, 41), (72, 73)]
    given = [meta(*shape) for shape in shapes]
    fd = record(BODIES["sum"][0], given[0])
    used = fd.kernels(given[0], arch="sm_90", varying=given[1:])[0]
    told = re.findall(r"tl\.assume\((.*)\)", used.text)
    assert {f"size3 >= {bounds[0]}", f"size3 <= {bounds[1]}"} <= set(told)


@pytest.mark.parametrize("name", BODIES)
def test_values_at_sizes_of_one_variant_and_refusals_of_others(name):
    body, torch_op = BODIES[name]
    sizes = [(1024, 40), (1000, 41), (1016, 39), (769, 40), (1100, 40), (2, 40), (30_000, 40)]
    inputs = [[noise(*size)] for size in sizes]
    fd = record(body, inputs[0])
    made = compile_open(fd, inputs[0], inputs[1:3], small(4))
    assert made is not None
    key, reader = key_maker(fd.fusion.ir), KeyReader(fd.fusion.ir)
    served = []
    for (x,) in inputs:
        plan = made.at(reader.split(key([x])))
        served.append(plan is not None)
        if plan is not None:
            (found,) = plan.run([x])
            torch.testing.assert_close(found, torch_op(x), rtol=1e-4, atol=1e-4)
    assert served[0] and sum(served[:3]) > 1
    assert not served[-1]


def maxima_beside_what_is_stored(fd, x, y):
    """Of two dims of a view that is stored too, and of the three dims of what it is beside."""
    flat = fd.ops.reshape(x, [-1, 40])
    top = fd.ops.max(fd.ops.maximum(x, y), [0, 1, 2])
    return fd.ops.max(flat, [0, 1]), fd.ops.sigmoid(flat), top


def test_extents_that_differ_beside_what_is_stored():
    """Parts that divide the rows stay, so other multiples of 16 are served, and no odd sizes."""
    inputs = [[noise(n, 64, 40), noise(n, 64, 40)] for n in (96, 97, 99, 80, 112, 128)]
    fd = record(maxima_beside_what_is_stored, inputs[0])
    made = compile_open(fd, inputs[0], inputs[1:3], small(4))
    assert made is not None
    key, reader = key_maker(fd.fusion.ir), KeyReader(fd.fusion.ir)
    plans = [made.at(reader.split(key(given))) for given in inputs]
    assert [plan is not None for plan in plans] == [x.shape[0] % 16 == 0 for x, _ in inputs]
    for plan, (x, y) in zip(plans, inputs, strict=True):
        if plan is not None:
            most, stored, top = plan.run([x, y])
            assert most == x.max() and top == torch.maximum(x, y).max()
            torch.testing.assert_close(stored, x.reshape(-1, 40).sigmoid())
