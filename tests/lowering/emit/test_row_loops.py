"""Walks over rows that are read again: which way they go, what the L2 cache is asked to keep."""

from __future__ import annotations

import re

import pytest
import torch

from tests.lowering.graphs import layer_norm, noise, softmax
from tests.lowering.harness import check, lowered, planned, small, texts
from tritonfuser import IndexRangeError

BACK = "for r_back in range(0,"


def columns(fd, x):
    return softmax(fd, x, 0)


def two_results_again(fd, x):
    """Three walks: the second sum needs the first, the result needs both."""
    beneath = fd.ops.sub(x, fd.ops.broadcast(fd.ops.max(x, [1]), [False, True]))
    length = fd.ops.sqrt(fd.ops.sum(fd.ops.mul(beneath, beneath), [1]))
    return fd.ops.div(beneath, fd.ops.broadcast(length, [False, True]))


def one_sum(fd, x):
    return fd.ops.sum(x, [1])


WALKED = {"persistent": False, "block_x": 2, "block_r": 32, "align": 1, "tails": ()}


@pytest.mark.covering
@pytest.mark.parametrize("hints", [False, True])
@pytest.mark.parametrize("row", [640, 641, 63])
@pytest.mark.parametrize("body", [softmax, two_results_again])
def test_a_walk_backwards_has_the_same_results(body, row, hints):
    changes = {**WALKED, "backwards": True, "evict_hints": hints}
    found = check(body, noise(7, row), **changes)
    (text,) = texts(found)
    assert text.count(BACK) == 1, "every second walk of two or three"
    assert ("eviction_policy" in text) is hints


def test_columns_and_rows_with_tails():
    changes = {**WALKED, "backwards": True}
    (text,) = texts(check(columns, noise(300, 9), **changes))
    assert BACK in text
    rows = noise(5, 200), noise(200, seed=1), noise(200, seed=2)
    found = check(layer_norm, *rows, tolerance=1e-5, **{**changes, "tails": (8,)})
    assert BACK in texts(found)[0] and "TBLOCK" in texts(found)[0]


def test_a_row_in_registers_is_walked_over_by_nobody():
    changes = {"persistent": True, "block_x": 2, "block_r": 1024, "backwards": True}
    (text,) = texts(check(softmax, noise(7, 640), **changes))
    assert "r_back" not in text


def test_a_row_is_not_read_past_its_ends():
    """The first step back is the last one forward, which reaches past the row."""
    x = torch.full((6, 130), -50.0)
    x[:, -1] = 50.0
    check(softmax, x, **WALKED, backwards=True)


@pytest.mark.parametrize("row", [640, 641, 700])
@pytest.mark.parametrize("body", [softmax, two_results_again])
def test_the_end_of_a_row_stays_in_registers(body, row):
    """Tails may be more than what whole blocks leave; they are loaded once."""
    changes = {"persistent": False, "block_x": 1, "block_r": 128, "tails": (256,), "align": 1}
    found = check(body, noise(7, row), **changes, backwards=True)
    (text,) = texts(found)
    whole = -(-(row - 256) // 128) * 128
    assert f"t = {whole} + tl.arange(0, TBLOCK)" in text
    assert len(re.findall(r"\+ t[,)]", text)) == 2, "one load and one store"


@pytest.mark.parametrize("row", [640, 650])
def test_a_walk_that_counts_what_its_lanes_have_seen_begins_at_the_front(row):
    """The last step may have less for some lanes, and they count together."""

    def body(fd, x):
        beneath = fd.ops.sub(x, fd.ops.broadcast(fd.ops.max(x, [1]), [False, True]))
        var, mean = fd.ops.var_mean(fd.ops.exp(beneath), [1], 0)
        wide = [fd.ops.broadcast(v, [False, True]) for v in (mean, var)]
        return fd.ops.div(fd.ops.sub(beneath, wide[0]), fd.ops.add(wide[1], 1.0))

    (text,) = texts(check(body, noise(7, row), **WALKED, backwards=True))
    walks = ["r_start", "r_back", "r_start"] if row == 640 else ["r_start", "r_start", "r_back"]
    assert re.findall(r"for (\w+) in", text) == walks


@pytest.mark.parametrize("tails", [(128,), (4096,), (512, 512, 16)])
def test_tails_of_any_length(tails):
    changes = {"persistent": False, "block_x": 1, "block_r": 128, "align": 1}
    check(softmax, noise(3, 500), **changes, tails=tails)


@pytest.mark.parametrize("tails", [(), (256,)])
def test_what_is_drawn_is_the_same_whichever_way(tails):
    def body(fd, x, seed, offset):
        drawn = fd.ops.uniform(0.0, 1.0, shape=[5, 1000], rng_seed=seed, rng_offset=offset)
        kept = fd.ops.where(fd.ops.lt(drawn, 0.5), x, 0.0)
        return fd.ops.sub(kept, fd.ops.broadcast(fd.ops.max(kept, [1]), [False, True]))

    given = [noise(5, 1000), 7, 3]
    walked = {"persistent": False, "block_x": 1, "block_r": 128, "tails": tails}
    ways = [lowered(body, given, **walked, backwards=back) for back in (False, True)]
    assert texts(ways[0]) != texts(ways[1])
    first, second = (planned(found, given).run(given) for found in ways)
    assert torch.equal(first[0], second[0])


def shifted_terms(fd, x, weight):
    """A product less its neighbour: the weight alone is loaded under the guard of the shift too."""
    product = fd.ops.mul(x, fd.ops.broadcast_in_dim(weight, x.shape(), [1]))
    rows, columns = 400, 49
    before = fd.ops.slice(product, [0, 0], [rows, columns - 1])
    terms = fd.ops.sub(product, fd.ops.pad(before, [1, 0]))
    return fd.ops.sum(terms, [1]), fd.ops.sum(terms, [0])


def test_a_mask_that_no_loop_moves_is_written_before_it():
    found = check(shifted_terms, noise(400, 49), noise(49, seed=1), facts=small(4))
    (text, *_) = texts(found)
    assert "inner_outer_persistent" in text and "for m_start in " in text
    assert text.index("mask0 = ") < text.index("mask=mask0")


def picked_and_shifted(fd, first, second, index):
    """Rows of one of two tensors, which a number tells, shifted by a pad."""
    picked = fd.ops.select(fd.ops.cat([first, second], dim=1), index, dim=1)
    return fd.ops.sum(fd.ops.pad(picked, [3, 2]), [1])


@pytest.mark.parametrize("index", [0, 4, -2])
def test_an_index_that_no_loop_moves_is_read_before_it(index):
    """It is checked under the guard of the pad, which the loop moves."""
    given = noise(3, 2, 300), noise(3, 3, 300, seed=1), index
    found = check(picked_and_shifted, *given, **WALKED)
    (text,) = texts(found)
    before, loop = text.split("for r_start in ")
    assert "i0 = wrapped_index(c0, 5, False)" in before
    assert re.search(r"^ +wrapped_index\(c0, 5, mask\d\)$", loop, re.MULTILINE)
    with pytest.raises(IndexRangeError, match="select: index 5 is out of range"):
        planned(found, given).run([*given[:2], 5])


def half_of_the_picked(fd, first, second, index):
    """The place along a merged dim is divided by what is read."""
    rows, columns = 3, 300
    joined = fd.ops.reshape(fd.ops.cat([first, second], dim=1), [rows, 6, columns // 2, 2])
    merged = fd.ops.reshape(fd.ops.permute(joined, [0, 2, 1, 3]), [rows, columns // 2, 12])
    return fd.ops.sum(fd.ops.pad(fd.ops.select(merged, index, dim=2), [3, 2]), [1])


@pytest.mark.parametrize("index", [0, 7, -1])
def test_digits_of_such_an_index_are_known_in_the_loop(index):
    given = noise(3, 2, 300), noise(3, 4, 300, seed=1), index
    check(half_of_the_picked, *given, **{**WALKED, "block_r": 16})


@pytest.mark.parametrize("kind", ["counted", "drawn"])
def test_a_value_that_runs_along_a_loop_over_single_rows_alone(kind):
    """Its position is the variable of the loop, as it is."""

    def body(fd, x, seed, offset):
        if kind == "counted":
            scale = fd.ops.iota(4)
        else:
            scale = fd.ops.uniform(0.0, 1.0, shape=[4], rng_seed=seed, rng_offset=offset)
        scaled = fd.ops.mul(x, fd.ops.broadcast(scale, [True, False, True]))
        rest = fd.ops.sub(scaled, fd.ops.sum(scaled, [2], keepdim=True))
        return fd.ops.sum(rest, [0, 1]), scale

    x, facts = noise(16, 4, 80), small(1)
    found = lowered(body, [x, 7, 12], facts, block_m=1, prefetch=False)
    assert any("for m in" in text and "m * 80" in text for text in texts(found))
    sums, scale = planned(found, [x, 7, 12], facts).run([x, 7, 12])
    scaled = x * scale[:, None]
    rest = scaled - scaled.sum(2, keepdim=True)
    torch.testing.assert_close(sums, rest.sum((0, 1)), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("width", "policy"), [(128, False), (256, True)])
@pytest.mark.parametrize("body", [softmax, one_sum])
def test_lines_that_the_next_step_loads_again_are_not_evicted_first(body, width, policy):
    """A step that takes less than eight cache lines of a row shares those at both ends of them."""
    changes = {"persistent": False, "block_r": width, "evict_hints": True}
    (text,) = texts(lowered(body, [torch.empty(4096, 1 << 16, device="meta")], **changes))
    assert ("evict_first" in text) is policy
