"""Concatenated slices of one tensor are one view: a roll computes each element once."""

from __future__ import annotations

import random

import pytest
import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.dry_run import lower_for
from tritonfuser.lowering.run_options import RunOptions

END = 10**6
"""Beyond the end of any dim: slices end with it."""


def sliced(fd, value, rank, dim, start, stop):
    low, high = [0] * rank, [END] * rank
    low[dim], high[dim] = start, stop
    return fd.ops.slice(value, low, high)


def rolled(fd, value, sizes, dim, shift, style):
    """``torch.roll``, as a concatenation or as a sum of what is padded with zeros."""
    rank, cut = len(sizes), sizes[dim] - shift
    tail, head = (sliced(fd, value, rank, dim, *ends) for ends in ((cut, END), (0, cut)))
    if style == "cat":
        return fd.ops.cat([tail, head], dim)
    inner = [0, 0] * (rank - 1 - dim)
    tail = fd.ops.cast(fd.ops.pad(tail, [*inner, 0, cut], 0.0), DataType.Float)
    head = fd.ops.cast(fd.ops.pad(head, [*inner, shift, 0], 0.0), DataType.Float)
    return fd.ops.cast(fd.ops.add(tail, head), DataType.BFloat16)


def one_kernel(fd, *inputs):
    """The text of the only kernel for a GPU."""
    (source,) = lower_for(fd.fusion.ir, list(inputs), RunOptions(arch="sm_90"))[0].sources
    return source.text


@pytest.mark.parametrize("style", ["cat", "pads"])
@pytest.mark.parametrize("seed", range(12))
def test_random_rolls_have_the_elements_of_torch(seed, style):
    rng = random.Random(seed)
    sizes = [rng.choice((1, 2, 5, 8, 13, 16)) for _ in range(rng.randint(1, 4))]
    dims = rng.sample(range(len(sizes)), rng.randint(1, len(sizes)))
    shifts = [(dim, rng.randint(0, sizes[dim])) for dim in dims]
    with FusionDefinition() as fd:
        x = fd.define_tensor(
            shape=[-1] * len(sizes), contiguity=[False] * len(sizes), dtype=DataType.BFloat16
        )
        value = fd.ops.cast(fd.ops.neg(x), DataType.BFloat16)
        for dim, shift in shifts:
            value = rolled(fd, value, sizes, dim, shift, style)
        fd.add_output(fd.ops.permute(value, list(range(len(sizes)))[::-1]))
    wide = torch.randn([2 * size for size in sizes]).bfloat16()
    x = wide[tuple(slice(None, None, 2) for _ in sizes)]
    found = fd.run([x])[0]
    expected = torch.roll(-x.double(), [s for _, s in shifts], [d for d, _ in shifts])
    assert torch.equal(found.double(), expected.permute(*range(len(sizes))[::-1]))


@pytest.mark.parametrize("seed", range(8))
def test_any_slices_of_a_tensor_beside_others(seed):
    rng = random.Random(seed)
    x, y = torch.randn(4, 11, 6), torch.randn(4, 3, 6)
    starts = [rng.randrange(11) for _ in range(rng.randint(2, 5))]
    ends = [rng.randint(start, 11) for start in starts]  # some are empty
    row, place = rng.randrange(4), rng.randint(0, len(starts))
    ranges = list(zip(starts, ends, strict=True))
    with FusionDefinition() as fd:
        a = fd.define_tensor(shape=[4, 11, 6], dtype=DataType.Float)
        b = fd.define_tensor(shape=[4, 3, 6], dtype=DataType.Float)
        pieces = [fd.ops.slice(a, [row, low, 1], [4, high, 5]) for low, high in ranges]
        pieces.insert(place, fd.ops.slice(b, [row, 0, 1], [4, 3, 5]))
        fd.add_output(fd.ops.exp(fd.ops.cat(pieces, 1)))
    parts = [x[row:, low:high, 1:5] for low, high in ranges]
    parts.insert(place, y[row:, :, 1:5])
    torch.testing.assert_close(fd.run([x, y])[0], torch.cat(parts, 1).exp())


def test_open_sizes():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=[True, True], dtype=DataType.Float)
        value = fd.ops.exp(x)
        for dim in (0, 1):
            ends = (sliced(fd, value, 2, dim, 3, END), sliced(fd, value, 2, dim, 0, 3))
            value = fd.ops.cat(list(ends), dim)
        fd.add_output(value)
    for sizes in ((7, 9), (12, 20), (13, 33), (3, 5), (2, 40), (64, 64)):
        x = torch.randn(sizes)
        expected = x.exp()
        for dim in (0, 1):
            head, tail = expected.tensor_split((3,), dim)
            expected = torch.cat([tail, head], dim)
        torch.testing.assert_close(fd.run([x])[0], expected)


@pytest.mark.parametrize("style", ["cat", "pads"])
def test_rolls_along_two_dims_load_an_element_once(style):
    sizes = [2, 56, 56, 128]
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=sizes, contiguity=[True] * 4, dtype=DataType.BFloat16)
        value = rolled(fd, x, sizes, 1, 3, style)
        fd.add_output(fd.ops.neg(rolled(fd, value, sizes, 2, 5, style)))
    text = one_kernel(fd, torch.empty(sizes, dtype=torch.bfloat16, device="meta"))
    assert text.count("tl.load(") == 1 and "mask=" not in text


def test_quadrants_load_an_element_once():
    sizes = [64, 32, 16]
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=sizes, contiguity=[True] * 3, dtype=DataType.Float)
        rows = [
            fd.ops.cat([fd.ops.slice(x, [a, c, 0], [b, d, 16]) for c, d in ((8, 32), (0, 8))], 1)
            for a, b in ((16, 64), (0, 16))
        ]
        fd.add_output(fd.ops.neg(fd.ops.cat(rows, 0)))
    x = torch.randn(sizes)
    assert torch.equal(fd.run([x])[0], -torch.roll(x, (-16, -8), (0, 1)))
    assert one_kernel(fd, x.to("meta")).count("tl.load(") == 1


def test_sums_of_padded_zeros_are_positive():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[8], contiguity=[True], dtype=DataType.BFloat16)
        fd.add_output(rolled(fd, x, [8], 0, 3, "pads"))
    found = fd.run([torch.full((8,), -0.0).bfloat16()])[0]
    assert not found.signbit().any()


def test_halves_of_different_sign_stay():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[4, 64], contiguity=[True] * 2, dtype=DataType.Float)
        first, second = sliced(fd, x, 2, 1, 0, 32), sliced(fd, x, 2, 1, 32, 64)
        fd.add_output(fd.ops.cat([fd.ops.neg(second), first], 1))
    x = torch.randn(4, 64)
    assert torch.equal(fd.run([x])[0], torch.cat([-x[:, 32:], x[:, :32]], 1))
