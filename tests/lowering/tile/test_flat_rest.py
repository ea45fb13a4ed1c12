"""Flat kernels of any number of elements: whole vectors, and a rest that one program has."""

from __future__ import annotations

import re

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import check, lowered, texts
from tests.lowering.tile.test_finished_by_last import define, drawn, same
from tests.lowering.tile.test_shared_launch import beside, exported
from tritonfuser import DataType, FusionDefinition
from tritonfuser.dtypes import from_torch
from tritonfuser.lowering.build import report


def mapped(fd, x, y, w):
    """Two results of other widths, and a weight that repeats."""
    total = fd.ops.add(fd.ops.mul(x, w), y)
    yield total
    yield fd.ops.cast(fd.ops.exp(total), DataType.BFloat16)
    yield fd.ops.lt(x, y)


def bounds(text):
    """The limit of the tiles, and the first and last position of the rest."""
    found = re.search(r"x_mask = x < (\d+)\n", text), re.search(r"t = (\d+) \+", text)
    end = re.search(r"t_mask = t < (\d+)\n", text)
    return tuple(int(m.group(1)) for m in (*found, end) if m)


@pytest.mark.parametrize("shape", [(7, 37), (5, 26), (1, 131), (13, 11), (3, 50)])
@pytest.mark.parametrize("block", [32, 128])
def test_any_number_of_elements(shape, block):
    x, y, w = noise(*shape), noise(*shape, seed=1), noise(shape[1], seed=2)
    found = check(lambda fd, *given: tuple(mapped(fd, *given)), x, y, w, block_x=block)
    (text,) = texts(found)
    count, vector = shape[0] * shape[1], 16
    rest = count // vector * vector
    assert bounds(text) == ((rest, rest, count) if count > block else (count,))


@pytest.mark.parametrize("count", [1001, 1002, 1004, 1008, 64, 65, 63, 1])
def test_there_is_a_rest_where_a_vector_does_not_divide(count):
    found = check(lambda fd, x: fd.ops.neg(x), noise(count), block_x=64)
    (text,) = texts(found)
    assert ("t_mask" in text) is (count % 4 != 0 and count > 64)


def test_numbers_drawn_for_the_rest_are_those_of_one_tile():
    def dropped(fd, x):
        return fd.ops.mul(x, fd.ops.uniform(0.0, 1.0, [77, 13], rng_seed=3, rng_offset=5))

    x = noise(77, 13)
    tiles = [lowered(dropped, [x], block_x=block) for block in (1024, 64)]
    assert ["t_mask" in texts(found)[0] for found in tiles] == [False, True]
    check(dropped, x, block_x=64)


def test_a_function_of_a_shared_launch_has_a_rest():
    def body(fd, x, y):
        fd.add_output(fd.ops.sum(x, [1]))
        fd.add_output(fd.ops.relu(y))

    fd = define(body, 2, 2)
    inputs = drawn([(64, 48), (33, 21)], "fp32")
    data = exported(fd, inputs)
    assert sum(beside(data)) == 1
    for piece in data["segments"]:
        if piece["scheduler"] == "pointwise":
            piece["params"]["block_x"] = 128
    (kernel,) = fd.kernels(inputs, schedule=data)
    assert "t_mask" in kernel.text
    assert same(fd.run(inputs, schedule=data)[1:], [torch.relu(inputs[1])])


@pytest.mark.parametrize("block", [1, 16, 64, 128])
def test_last_programs_compute_a_rest_too(block):
    """66 elements in whole vectors, and one behind them, which is a program's own."""

    def body(fd, x, y):
        fd.add_output(fd.ops.add(y, fd.ops.sum(x, [0])))

    fd = define(body, 1, 1)
    inputs = drawn([(300,), (67,)], "fp32")
    data = exported(fd, inputs, arch="sm_80")
    assert [piece["finishes"] for piece in data["segments"]] == [False, True]
    data["segments"][1]["params"]["block_x"] = block
    found = fd.run(inputs, schedule=data)
    torch.testing.assert_close(found, [inputs[1] + inputs[0].sum()], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(7, 2), (67, 1), (9, 9)])
@pytest.mark.parametrize("block", [1, 2, 64])
def test_programs_with_a_rest_meet_at_one_counter(shape, block):
    """The last one of them has more elements than others, or fewer."""

    def body(fd, x):
        twice = fd.ops.cast(fd.ops.mul(x, 2.0), DataType.Half)
        fd.add_output(twice)
        fd.add_output(fd.ops.max(twice, [0]))

    fd = define(body, 2, dtype="fp16")
    (x,) = inputs = drawn([shape], "fp16")
    data = exported(fd, inputs)
    (both,) = data["segments"]
    flat = {**both, "computes": [], "scheduler": "pointwise", "params": {"block_x": block}}
    last = {**both, "stores": [], "loads": both["stores"], "finishes": True}
    found = fd.run(inputs, schedule={**data, "segments": [flat, last]})
    assert same(found, [x * 2, (x * 2).amax(0)])


def copied(dtype):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True, dtype=dtype)
        fd.add_output(fd.ops.cast(fd.ops.neg(x), from_torch(dtype)))
    return fd


@pytest.mark.parametrize("varies", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_all_but_the_rest_is_loaded_in_vectors(dtype, varies):
    fd = copied(dtype)

    def inputs(rows):
        return [torch.empty(rows, 2001, dtype=dtype, device="meta")]

    earlier = [inputs(1999), inputs(2001)] if varies else ()
    (kernel,) = fd.kernels(inputs(2003), arch="sm_90", varying=earlier)
    assert ("size0" in kernel.text) is varies
    made = report(kernel, "pointwise", "sm_90", (True, True))
    assert (made.max_load_bytes, made.max_store_bytes) == (16, 16)


def test_an_open_kernel_runs_at_any_size():
    fd = copied(torch.float32)
    for rows in (3, 4, 5, 8, 31, 64, 7):
        x = noise(rows, rows + 2)
        torch.testing.assert_close(fd.run([x])[0], -x)


def test_a_result_of_one_element_beside_fewer_than_a_vector():
    """Tiles of whole vectors have no position then: the rest stores the small result too."""
    inputs = noise(9) > 0, noise(1)[0]
    body = lambda fd, x, y: (fd.ops.bitwise_not(x), fd.ops.mul(y, 2.0))  # noqa: E731
    (text,) = texts(check(body, *inputs, block_x=8))
    assert "x_mask = x < 0" in text and "t_mask = t < 9" in text
