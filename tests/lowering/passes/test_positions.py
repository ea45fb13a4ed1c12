"""Values that a kernel would compute at many positions are in memory: text and time stay small."""

from __future__ import annotations

import time

import pytest
import torch

from tests.e2e.checking import assert_same
from tests.lowering.graphs import noise
from tritonfuser import DataType, FusionDefinition
from tritonfuser.lowering.access.traffic import LEVELS_SHOWN, shown
from tritonfuser.lowering.passes.invariants.positions import read_at_many
from tritonfuser.symbolic.extents import LONGEST_NAME, symbol
from tritonfuser.symbolic.index_expr import Affine, Axis, Bounded, digit

SECONDS = 30.0
"""Each chain takes some seconds at most; without a limit on positions they take hours."""


def stencil(fd, y):
    """Both neighbours in a row."""
    return fd.ops.mul(fd.ops.add(fd.ops.pad(y, [1, -1]), fd.ops.pad(y, [-1, 1])), 0.5)


def cross(fd, y):
    """All four neighbours."""
    ways = ([1, -1], [-1, 1], [0, 0, 1, -1], [0, 0, -1, 1])
    total = y
    for way in ways:
        total = fd.ops.add(total, fd.ops.pad(y, way))
    return fd.ops.mul(total, 0.2)


def picked(fd, y):
    """Elements at places that the elements themselves say."""
    places = fd.ops.cast(fd.ops.mul(fd.ops.abs(fd.ops.sin(y)), 3.0), DataType.Int)
    return fd.ops.gather(y, places, 1)


def regrouped(fd, y):
    return fd.ops.reshape(fd.ops.permute(fd.ops.cos(y), [1, 0]), [6, 8])


def rolled(fd, y):
    return fd.ops.cat([fd.ops.slice(y, [0, 1], [6, 8]), fd.ops.slice(y, [0, 0], [6, 1])], 1)


def halves(fd, y):
    """Each element is one of two, which are computed in their own way."""
    both = fd.ops.cat([y, fd.ops.neg(y)], 0)
    return fd.ops.slice(both, [1, 0], [7, 8])


def shifted(fd, y):
    return fd.ops.pad(y, [1, -1])


CHAINS = {
    "stencil": (stencil, 40),
    "cross": (cross, 12),
    "picked": (picked, 14),
    "regrouped": (regrouped, 40),
    "rolled": (rolled, 40),
    "halves": (halves, 30),
    "shifted": (shifted, 250),
}


def chained(step, count, sizes=(6, 8)):
    with FusionDefinition() as fd:
        y = fd.define_tensor(list(sizes), contiguity=True)
        for _ in range(count):
            y = step(fd, y)
        fd.add_output(y)
    return fd


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains_end_and_are_right(name):
    step, count = CHAINS[name]
    begun = time.process_time()
    fd, x = chained(step, count), noise(6, 8)
    (whole,) = fd.run([x])
    texts = fd.kernels([x.to("meta")], arch="sm_90")
    assert time.process_time() - begun < SECONDS
    assert max(len(kernel.text.splitlines()) for kernel in texts) < 2000
    alone = chained(step, 1)
    for _ in range(count):
        (x,) = alone.run([x])
    torch.testing.assert_close(whole, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["rolled", "shifted"])
def test_of_sizes_that_are_not_known(name):
    """What slices of slices keep has a name as long as any other."""
    step, _ = CHAINS[name]
    with FusionDefinition() as fd:
        y = fd.define_tensor([-1, -1], contiguity=True)
        for _ in range(60):
            y = step(fd, y)
        fd.add_output(y)
    x = noise(6, 8)
    (made,) = fd.run([x])
    expected = x.roll(-60, 1) if name == "rolled" else torch.zeros_like(x)
    torch.testing.assert_close(made, expected)


def test_a_chain_as_a_given_schedule():
    """A schedule says which values are in memory, and gives the same kernels."""
    fd, x = chained(stencil, 9, (8, 64)), noise(8, 64)
    schedule = fd.schedule([x])
    assert schedule.rewrites.invariants
    (made,) = fd.run([x], schedule=schedule.to_dict())
    assert torch.equal(made, fd.run([x])[0])


def test_many_results_of_one_chain():
    """Each of them is computed at the same positions: those of one result decide."""
    with FusionDefinition() as fd:
        y = fd.define_tensor([6, 8], contiguity=True)
        for _ in range(9):
            y = stencil(fd, y)
        for number in range(40):
            fd.add_output(fd.ops.mul(y, float(number)))
    x = noise(6, 8)
    texts = fd.kernels([x.to("meta")], arch="sm_90")
    assert len(texts) > 1 and max(len(kernel.text) for kernel in texts) < 30000
    alone = chained(stencil, 9).run([x])[0]
    torch.testing.assert_close(fd.run([x])[3], alone * 3)


def test_a_moved_result_on_the_way():
    """It is stored anyhow; a schedule that says so is taken."""
    with FusionDefinition() as fd:
        y = fd.define_tensor([6, 8], contiguity=True)
        for _ in range(9):
            z = fd.ops.pad(fd.ops.tanh(y), [1, -1])
            fd.add_output(z)
            y = stencil(fd, z)
        fd.add_output(y)
    x = noise(6, 8)
    assert_same(fd.run([x], schedule=fd.schedule([x]).to_dict()), fd.run([x]))


def across(fd, y):
    """What is turned is turned back: it is at the same position."""
    turned = fd.ops.permute(y, [1, 0])
    return fd.ops.add(y, fd.ops.permute(fd.ops.sigmoid(turned), [1, 0]))


def from_first(fd, y):
    """Two positions, however many steps there are."""
    return fd.ops.add(y, fd.ops.expand(fd.ops.slice(y, [0, 0], [1, 8]), [6, 8]))


@pytest.mark.parametrize("step", [across, from_first])
def test_views_that_lead_to_few_positions(step):
    fd = chained(step, 12)
    assert len(fd.kernels([noise(6, 8)])) == 1


def test_rolls_of_a_column():
    """A position that no axis moves is a number."""
    with FusionDefinition() as fd:
        y = fd.define_tensor([16, 16], contiguity=True)
        for _ in range(2):
            parts = fd.ops.slice(y, [0, 3], [16, 16]), fd.ops.slice(y, [0, 0], [16, 3])
            y = fd.ops.cat(list(parts), 1)
        fd.add_output(fd.ops.reshape(fd.ops.slice(y, [0, 0], [16, 1]), [16]))
    x = noise(16, 16)
    assert torch.equal(fd.run([x])[0], x[:, 6])


def windows(fd, y):
    """25 places of what is loaded about as cheaply as the input: a convolution by slices."""
    y = fd.ops.cast(y, DataType.Double)
    total = None
    for row in range(5):
        for column in range(5):
            part = fd.ops.slice(y, [row, column], [row + 2, column + 4])
            total = part if total is None else fd.ops.add(total, part)
    return total


def shuffled(fd, y):
    """Each element of the result is of one of the parts."""
    y = fd.ops.tanh(fd.ops.exp(y))
    parts = [fd.ops.slice(y, [0, n], [6, n + 1]) for n in (3, 1, 7, 5, 0, 2, 6, 4)]
    return fd.ops.cat(parts, 1)


@pytest.mark.parametrize("step", [windows, shuffled])
def test_what_a_kernel_computes_where_it_is_read(step):
    """One step of it is one kernel, as before."""
    fd = chained(step, 1)
    assert not read_at_many(fd.fusion.ir)
    assert len(fd.kernels([noise(6, 8)])) == 1


def nested(levels):
    """A sum in a sum in a sum."""
    expr = digit(Axis("x", 64)) * 3 + 1
    for level in range(levels):
        expr = (expr + digit(Axis("y", 8))) // (level + 5) + digit(Bounded(expr, 90), 7) * 2
    return expr


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_expressions_are_shown_as_they_print(levels):
    assert shown(nested(levels)) == repr(nested(levels))


def test_deep_expressions_are_shown_short():
    deep, other = nested(40), nested(40) + Affine((), 1)
    assert len(shown(deep)) < 20 * 4**LEVELS_SHOWN and shown(deep) != shown(other)


def test_long_names_of_sizes_are_as_different_as_what_they_name():
    long = "slice(" + "i0 + " * 200
    assert symbol(long + "1)") == symbol(long + "1)")
    assert symbol(long + "1)") != symbol(long + "2)")
    assert len(str(symbol(long + "1)"))) < LONGEST_NAME
    assert str(symbol("i0")) == "i0"


def test_a_computed_scalar_among_views():
    with FusionDefinition() as fd:
        y = fd.define_tensor([6, 8], contiguity=True)
        factor = fd.define_scalar(None, dtype=DataType.Double)
        for _ in range(9):
            y = fd.ops.mul(stencil(fd, y), fd.ops.neg(factor))
        fd.add_output(y)
    x = noise(6, 8)
    assert fd.schedule([x, 0.5], arch="sm_90").rewrites.invariants
    alone = chained(stencil, 1)
    expected = x
    for _ in range(9):
        expected = alone.run([expected])[0] * -0.5
    torch.testing.assert_close(fd.run([x, 0.5])[0], expected, rtol=1e-4, atol=1e-5)
