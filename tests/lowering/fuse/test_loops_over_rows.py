"""Loops over the rows of a kernel with sums over rows: what needs such a sum is in a later loop."""

from __future__ import annotations

import re

import pytest
import torch

from tests.lowering.harness import check, small


def scaled(fd, x):
    """Rows of ``x`` over the root of their mean square."""
    square = fd.ops.sum(fd.ops.mul(x, x), [2])
    scale = fd.ops.rsqrt(fd.ops.add(fd.ops.mul(square, 1 / 24), 1e-5))
    return fd.ops.mul(x, fd.ops.broadcast_in_dim(scale, [80, 3, 24], [0, 1]))


def over_columns(fd, value):
    return fd.ops.broadcast_in_dim(value, [80, 3, 24], [1, 2])


def one(fd, x):
    """A sum over rows that nothing else needs."""
    rows = scaled(fd, x)
    return fd.ops.sum(rows, [0]), fd.ops.neg(rows)


def behind(fd, x):
    """A sum over rows, and one that is computed of it alone."""
    return fd.ops.neg(fd.ops.sum(scaled(fd, x), [0])), fd.ops.max(scaled(fd, x), [0])


def two(fd, x):
    """A sum over rows of what needs a maximum over rows."""
    rows = scaled(fd, x)
    below = fd.ops.sub(rows, over_columns(fd, fd.ops.max(rows, [0])))
    return fd.ops.sum(fd.ops.exp(below), [0])


def three(fd, x):
    """A softmax over the rows."""
    rows = scaled(fd, x)
    found = fd.ops.exp(fd.ops.sub(rows, over_columns(fd, fd.ops.max(rows, [0]))))
    return fd.ops.mul(found, over_columns(fd, fd.ops.reciprocal(fd.ops.sum(found, [0]))))


@pytest.mark.parametrize("body, loops", [(one, 1), (behind, 1), (two, 2), (three, 3)])
def test_loops_are_counted_as_they_are_written(body, loops):
    found = check(body, torch.randn(80, 3, 24), facts=small(2), two_steps=False)
    (piece,) = [s for s in found.segmented.segments if s.scheduler == "inner_outer_persistent"]
    kernel = next(k for k in found.sources if k and "over the rows" in k.text)
    assert len(re.findall(r"^    for ", kernel.text, re.M)) == loops
    assert piece.problem.outer_loops == loops
