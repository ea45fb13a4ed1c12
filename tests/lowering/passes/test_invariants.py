"""Values of fewer axes than the kernels that use them are computed once, where that pays."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch

from tests.lowering.graphs import noise
from tests.lowering.harness import CPU, H200, check, lowered, planned, record, texts
from tests.lowering.sass import disassembled, run_instructions
from tritonfuser import DataType, FusionDefinition

SLOW = replace(H200, clock_hz=1e4)
"""A device that small sizes keep busy as large ones do a GPU."""


def kept(found):
    return [n.args[0].name for n in found.segmented.fusion.nodes if n.op == "materialize"]


def same(body, *inputs):
    """Right, and the same bits as without values kept."""
    check(body, *inputs, facts=SLOW)
    return same_bits(body, *inputs)


def same_bits(body, *inputs):
    found = lowered(body, inputs, SLOW)
    plain = lowered(body, inputs, H200)
    assert kept(found) and not kept(plain)
    assert found.segmented.rewrites.invariants == tuple(kept(found))
    results = [planned(each, inputs).run(list(inputs)) for each in (found, plain)]
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    return found


def half_turned(fd, x, sizes):
    """The halves of the last dim changed places, the second with the other sign."""
    middle = sizes[-1] // 2
    first = fd.ops.slice(x, [0] * len(sizes), [*sizes[:-1], middle])
    second = fd.ops.slice(x, [0] * (len(sizes) - 1) + [middle], list(sizes))
    return fd.ops.cat([fd.ops.neg(second), first], len(sizes) - 1)


def rotary(shapes, dtype=DataType.Float):
    """Rotary embeddings of tensors [B, H, T, D], their angles computed from positions."""

    def body(fd, frequencies, *given):
        results = []
        for x, sizes in zip(given, shapes, strict=True):
            t, d = sizes[2:]
            positions = fd.ops.cast(fd.ops.iota(t, 0, 1, DataType.Int), DataType.Float)
            rows = fd.ops.broadcast_in_dim(positions, [t, d // 2], [0])
            angles = fd.ops.mul(rows, fd.ops.broadcast_in_dim(frequencies, [t, d // 2], [1]))
            angles = fd.ops.cat([angles, angles], 1)
            cos, sin = (
                fd.ops.broadcast_in_dim(fd.ops.cast(f(angles), dtype), sizes, [2, 3])
                for f in (fd.ops.cos, fd.ops.sin)
            )
            turned = half_turned(fd, x, sizes)
            results.append(fd.ops.cast(fd.ops.add(x * cos, turned * sin), dtype))
        return tuple(results)

    return body


@pytest.mark.parametrize("shapes", [((2, 3, 8, 6),), ((2, 8, 8, 6), (2, 2, 8, 6))])
def test_angles_under_heads(shapes):
    given = [noise(*shape) for shape in shapes]
    found = same(rotary(shapes), noise(3), *given)
    assert len(kept(found)) == 2  # sines and cosines, once for all heads


def test_numbers_that_are_not_finite():
    x = noise(2, 3, 8, 6)
    x[0, 0, 0, 0], x[1, 1, 1, 1], x[0, 2, 3, 3] = math.nan, math.inf, -0.0
    frequencies = torch.tensor([math.inf, math.nan, 1e30])
    same_bits(rotary([x.shape]), frequencies, x)


def test_a_mask_is_kept_as_it_was_compared():
    """As Bools: a select for each element is cheaper than to load floats."""

    def body(fd, x):
        at = fd.ops.iota(16, 0, 1, DataType.Int)
        row, column = (fd.ops.broadcast_in_dim(at, [16, 16], [dim]) for dim in (0, 1))
        near = fd.ops.gt(column, fd.ops.sub(row, 5))
        seen = fd.ops.bitwise_and(fd.ops.le(column, row), near)
        mask = fd.ops.where(seen, fd.ops.full([], 0.0, DataType.Float), -math.inf)
        return fd.ops.add(x, fd.ops.broadcast_in_dim(mask, [2, 4, 16, 16], [2, 3]))

    found = same(body, noise(2, 4, 16, 16))
    (name,) = kept(found)
    values = {v.name: v for v in found.segmented.fusion.producers}
    assert values[name].dtype is DataType.Bool


def test_random_numbers_stay_the_same():
    def body(fd, x):
        unit = fd.ops.uniform(0.0, 1.0, [8, 16], rng_seed=3, rng_offset=4, dtype=DataType.Float)
        return fd.ops.mul(x, fd.ops.broadcast_in_dim(fd.ops.log(unit), [4, 8, 16], [1, 2]))

    same(body, noise(4, 8, 16))


def softened(fd, x, size):
    return fd.ops.broadcast_in_dim(fd.ops.erf(fd.ops.exp(x)), size, [1])


def test_what_is_loaded_as_fast_as_computed_stays():
    def body(fd, x, b):
        return fd.ops.add(x, fd.ops.broadcast_in_dim(fd.ops.mul(b, 2.0), [64, 16], [1]))

    assert not kept(lowered(body, [noise(64, 16), noise(16)], SLOW))


def test_small_sizes_and_the_interpreter_gain_nothing():
    body, given = rotary([(2, 3, 8, 6)]), [noise(3), noise(2, 3, 8, 6)]
    assert not kept(lowered(body, given, H200)) and not kept(lowered(body, given, CPU))


def test_behind_a_reduction_nothing_is_kept():
    """A kernel that reads rows twice would become two."""

    def body(fd, x):
        return fd.ops.add(x, softened(fd, fd.ops.sum(x, [0]), [64, 16]))

    assert not kept(lowered(body, [noise(64, 16)], SLOW))


def test_statistics_of_rows_are_computed_once_a_row_as_it_is():
    def body(fd, x, deviation):
        each = fd.ops.broadcast_in_dim(fd.ops.exp(fd.ops.erf(deviation)), [64, 16], [0])
        scaled = fd.ops.mul(x, each)
        return fd.ops.sub(scaled, fd.ops.sum(scaled, [1], True))

    assert not kept(lowered(body, [noise(64, 16), noise(64)], SLOW))


@pytest.mark.parametrize("reduce", ["sum", "max"])
def test_a_reduction_over_what_is_kept(reduce):
    """A sum of numbers whose order does not matter: devices may have other tiles."""

    def body(fd, x, b):
        soft = fd.ops.where(fd.ops.gt(softened(fd, b, [64, 16]), 0.9), 2.0, 0.5)
        scaled = fd.ops.mul(x, soft if reduce == "sum" else softened(fd, b, [64, 16]))
        return scaled, getattr(fd.ops, reduce)(scaled, [0])

    same(body, (noise(64, 16) * 8).round(), noise(16))


def test_an_output_that_is_kept_is_stored_once():
    def body(fd, x, b):
        soft = fd.ops.erf(fd.ops.exp(b))
        return fd.ops.mul(x, fd.ops.broadcast_in_dim(soft, [64, 16], [1])), soft

    found = same(body, noise(64, 16), noise(16))
    assert [len(p.outputs) for p in found.segmented.segments] == [1, 1]


def test_of_two_levels_the_larger_is_kept():
    """What it is computed of is computed for its own elements alone then."""

    def body(fd, x, b):
        rows = fd.ops.broadcast_in_dim(fd.ops.exp(fd.ops.erf(b)), [8, 16], [1])
        columns = fd.ops.broadcast_in_dim(fd.ops.exp(fd.ops.neg(b)), [8, 16], [1])
        soft = fd.ops.erf(fd.ops.mul(rows, fd.ops.add(columns, 1.0)))
        return fd.ops.mul(x, fd.ops.broadcast_in_dim(soft, [512, 8, 16], [1, 2]))

    found = same(body, noise(512, 8, 16), noise(16))
    assert kept(found)[-1] in {n.out.name for n in found.segmented.fusion.nodes if n.op == "erf"}


def meta(*shapes):
    return [torch.empty(shape, device="meta") for shape in shapes]


def big_rotary(*shapes):
    return record(rotary(shapes), meta((shapes[0][-1] // 2,), *shapes))


def test_the_kernel_over_all_elements_computes_no_sine(tmp_path):
    """Of 33 instructions an element 7 are left, where no angle needs a slow path."""
    shape = (16, 32, 1024, 128)
    given = meta((64,), shape)
    fd = big_rotary(shape)
    small, whole = fd.kernels(given, arch="sm_90")
    assert small.grid[0] * 8 < whole.grid[0] and "libdevice" not in whole.text
    counts = []
    alone = json.loads(str(fd.schedule(given, arch="sm_90")))
    alone.update(invariants=[], segments=alone["segments"][1:])
    for schedule in (None, alone):
        *_, source = fd.kernels(given, arch="sm_90", schedule=schedule)
        *_, report = fd.compile_for("sm_90", given, schedule=schedule)
        code = disassembled(report.asm["cubin"], tmp_path)
        threads = math.prod(source.grid) * source.num_warps * 32
        counts.append(run_instructions(code) * threads / math.prod(shape))
    assert counts[0] < 10 and counts[1] > 25


def test_it_is_part_of_the_schedule():
    shape = (2, 4, 8, 64)
    fd = big_rotary((16, 32, 1024, 128))
    data = json.loads(str(fd.schedule(meta((64,), (16, 32, 1024, 128)), arch="sm_90")))
    assert len(data["invariants"]) == 2 and len(data["segments"]) == 2
    given = [noise(32), noise(*shape)]
    small = record(rotary([shape]), given)
    (wanted,) = small.run(given)
    (found,) = small.run(given, schedule=data)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert small.schedule(given, schedule=data).to_dict()["invariants"] == data["invariants"]


def test_open_sizes_have_the_schedule_of_their_size():
    def define():
        with FusionDefinition() as fd:
            x = fd.define_tensor([-1, -1, -1], contiguity=True, dtype=DataType.Float)
            b = fd.define_tensor([-1, -1], contiguity=True, dtype=DataType.Float)
            soft = fd.ops.erf(fd.ops.exp(fd.ops.erf(b)))
            fd.add_output(fd.ops.mul(x, fd.ops.broadcast(soft, [True, False, False])))
        return fd

    def inputs(heads, t):
        return meta((heads, t, 128), (t, 128))

    few, many = ([inputs(heads, t) for t in (512, 1024, 2048)] for heads in (2, 128))
    for sizes, expected in ((few, 0), (many, 1)):
        found = define().schedule(sizes[-1], arch="sm_90", varying=sizes[:-1])
        plain = define().schedule(sizes[-1], arch="sm_90")
        assert len(found.rewrites.invariants) == len(plain.rewrites.invariants) == expected
    both = define().schedule(many[-1], arch="sm_90", varying=few)
    assert len(both.rewrites.invariants) == 1


def test_texts_say_where_it_is_loaded():
    found = lowered(rotary([(2, 3, 8, 6)]), [noise(3), noise(2, 3, 8, 6)], SLOW)
    first, second = texts(found)
    assert "sine(" in first and "sine(" not in second
