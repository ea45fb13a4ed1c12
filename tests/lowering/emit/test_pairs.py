"""Both elements of interleaved pairs are loaded and stored as runs."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from tests.e2e.opened import check_open
from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, H200, check, lowered, planned, record, small, texts
from tritonfuser import DataType


def rotary(rows: int, width: int) -> Any:
    """A rotary embedding of neighbours: as complex numbers times ``cos + i sin``."""
    shape = [rows, width // 2, 2]

    def body(fd: Any, x: Any, cos: Any, sin: Any) -> Any:
        pairs = fd.ops.cast(fd.ops.reshape(x, shape), DataType.Float)
        real, imag = (
            fd.ops.squeeze(fd.ops.slice(pairs, [0, 0, n], [*shape[:2], n + 1], [1, 1, 1]), [2])
            for n in (0, 1)
        )
        turned = (
            fd.ops.sub(fd.ops.mul(real, cos), fd.ops.mul(imag, sin)),
            fd.ops.add(fd.ops.mul(real, sin), fd.ops.mul(imag, cos)),
        )
        both = fd.ops.cat([fd.ops.broadcast(t, [False, False, True]) for t in turned], 2)
        return fd.ops.cast(fd.ops.reshape(both, [rows, width]), DataType.BFloat16)

    return body


def given(rows: int, width: int) -> list[torch.Tensor]:
    x = noise(rows, width).bfloat16()
    return [x, noise(rows, width // 2, seed=1), noise(rows, width // 2, seed=2)]


@pytest.mark.parametrize("sizes", [(1, 2), (3, 10), (64, 128), (77, 130), (301, 14), (0, 8)])
def test_rotated_pairs(sizes):
    for facts in (H200, small(1), CPU):
        check(rotary(*sizes), *given(*sizes), facts=facts, tolerance=1e-2)


def test_of_nan_infinity_and_minus_zero():
    inputs = given(64, 128)
    inputs[0][2, 3], inputs[0][4, 4], inputs[0][5] = torch.nan, torch.inf, -0.0
    check(rotary(64, 128), *inputs, facts=small(1), tolerance=1e-2)


def test_vectors_of_pairs_are_loaded_and_stored():
    (text,) = texts(lowered(rotary(4096, 128), given(4096, 128), H200))
    assert "tv0, tv0_1 = split_pairs(tv0_pair)" in text
    assert text.count("tl.store(") == 1 and "tl.interleave(" in text
    assert len(re.findall(r"tl\.load\(tv0_ptr", text)) == 1


@pytest.mark.parametrize(("rows", "width"), [(3001, 130), (3200, 130), (1024, 128)])
def test_a_mask_is_of_both_elements(rows, width):
    (text,) = texts(lowered(rotary(rows, width), given(rows, width), small(1)))
    pairs = rows * width // 2
    rest = pairs % 4  # of a vector
    masks = re.findall(r"x_pair_mask = x_pair < (.*)", text)
    assert masks == ([str(2 * (pairs - rest))] if rest else [])
    first = "tl.program_id(0) * XBLOCK"
    if not rest and pairs % 1024:
        first = f"tl.minimum({first}, {pairs} - XBLOCK)"
    assert f"x_pair = {first} * 2 + tl.arange(0, XBLOCK * 2)" in text
    assert "split_pairs" in text


def test_one_element_of_each_pair_is_loaded_by_itself():
    def body(fd: Any, x: Any) -> Any:
        pairs = fd.ops.reshape(x, [64, 100, 2])
        return fd.ops.neg(fd.ops.slice(pairs, [0, 0, 1], [64, 100, 2], [1, 1, 1]))

    found = check(body, noise(64, 200))
    assert "split_pairs" not in "".join(texts(found))


def test_at_sizes_that_vary():
    def body(fd: Any, x: Any) -> Any:
        rows, width = (fd.ops.size(x, dim) for dim in (0, 1))
        half = fd.ops.div(width, 2)
        pairs = fd.ops.reshape(x, [rows, half, 2])
        first, second = (
            fd.ops.slice(pairs, [0, 0, n], [rows, half, n + 1], [1, 1, 1]) for n in (0, 1)
        )
        both = fd.ops.cat([fd.ops.neg(second), first], 2)
        return fd.ops.reshape(both, [rows, width])

    drawn = [[noise(n, 2 * m)] for n, m in ((40, 72), (41, 73), (64, 100), (7, 5))]
    ran, is_open = check_open(record(body, drawn[0]), drawn, small(1))
    assert ran and is_open


def test_results_in_place():
    def body(fd: Any, x: Any) -> None:
        pairs = fd.ops.reshape(x, [64, 32, 2])
        first, second = (fd.ops.slice(pairs, [0, 0, n], [64, 32, n + 1], [1, 1, 1]) for n in (0, 1))
        both = fd.ops.reshape(fd.ops.cat([fd.ops.neg(second), first], 2), [64, 64])
        fd.add_output(both, alias_input=x)

    x = noise(64, 64)
    wanted = torch.stack([-x[:, 1::2], x[:, ::2]], 2).reshape(64, 64)
    found = lowered(body, [x], H200)
    planned(found, [x]).run([x])
    torch.testing.assert_close(x, wanted)


def in_two_widths(rows: int, width: int) -> Any:
    """The sums of the pairs of the first columns, in bfloat16 and float32: four a thread."""

    def body(fd: Any, x: Any) -> Any:
        first = fd.ops.slice(x, [0, 0], [rows, width], [1, 1])
        pairs = fd.ops.cast(fd.ops.reshape(first, [rows, width // 2, 2]), DataType.Float)
        ends = [rows, width // 2]
        real, imag = (fd.ops.slice(pairs, [0, 0, n], [*ends, n + 1], [1, 1, 1]) for n in (0, 1))
        total = fd.ops.squeeze(fd.ops.add(real, imag), [2])
        return total, fd.ops.cast(total, DataType.BFloat16)

    return body


@pytest.mark.parametrize(("width", "most"), [(64, 4), (66, 0), (40, 4)])
def test_a_limit_on_neighbours_is_one_of_runs_that_are_longer(width: int, most: int) -> None:
    """Of runs of 66 it would say that the four elements from the 64th on are neighbours."""
    x = noise(512, 80).bfloat16()
    (text,) = texts(lowered(in_two_widths(512, width), [x], H200))
    assert "split_pairs" in text
    found = re.findall(r"tl\.max_contiguous\(tv0_ptr \+ [^,]*, (\d+)\)", text)
    assert found == [str(most)] * bool(most), text
    check(in_two_widths(512, width), x, facts=small(1), tolerance=1e-2)
