"""The kernels of a schedule, exported as JSON, are the kernels that it was exported from."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from bench.recorded.definitions import load, make_inputs, record
from tests.e2e.checking import CPU, gpu
from tests.e2e.graphs.test_random_graphs import KINDS
from tests.e2e.opened import open_signature
from tests.e2e.test_open_sizes import CHOSEN, DYNAMIC, define, noise
from tritonfuser import FusionDefinition, Schedule
from tritonfuser.cache.keys.signature import signature
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.run_options import DEFAULT, RunOptions
from tritonfuser.lowering.schedules import schedule_of

DEFINITIONS = load()
OFTEN = 3
"""One in so many definitions runs in the fast tests."""
SIZE = re.compile(r"\bsize\d+")
DEVICE = gpu(4)
"""Few multiprocessors: small problems are split like large ones."""


def kernels(found: Lowered) -> list[Any]:
    """All that a plan is made of."""
    cut = found.segmented
    pieces = [(s.scheduler, str(s.params), str(s.inputs), str(s.outputs)) for s in cut.segments]
    sources = [None if s is None else renamed(f"{s.text}{s.args}") for s in found.sources]
    return [*pieces, *sources, str(cut.results), str(cut.layouts)]


def renamed(text: str) -> str:
    """Sizes are numbered as they are asked for, which is in another order where less is asked."""
    names = {name: f"size_{n}" for n, name in enumerate(dict.fromkeys(SIZE.findall(text)))}
    return SIZE.sub(lambda found: names[found[0]], text)


def check(make: Callable[[RunOptions], Lowered]) -> None:
    found = make(DEFAULT)
    text = json.dumps(schedule_of(found.segmented).to_dict())
    given = Schedule.from_dict(json.loads(text))
    assert given == schedule_of(found.segmented)
    again = make(RunOptions(schedule=given))
    # A number of parts that is chosen at each size is that of one run in a schedule.
    if found.env is None or all(atom.chosen is None for atom in found.env.atoms):
        assert kernels(again) == kernels(found)
    assert schedule_of(again.segmented) == given


def check_fixed(fd: FusionDefinition, inputs: Sequence[Any]) -> None:
    facts = signature(fd.fusion.ir, inputs, CPU)
    check(lambda options: lower(fd.fusion.ir, facts, DEVICE, options))


def check_open(fd: FusionDefinition, given: Sequence[Sequence[Any]]) -> None:
    def make(options: RunOptions) -> Lowered:
        sizes = open_signature(fd, given[0], given[1:])
        assert sizes is not None
        return lower(fd.fusion.ir, sizes.signature, DEVICE, options, sizes.env)

    check(make)


def sampled():
    for place, entry in enumerate(DEFINITIONS):
        marks = [pytest.mark.slow] if place % OFTEN else []
        yield pytest.param(entry, id=entry.name, marks=marks)


@pytest.mark.parametrize("entry", [*sampled()])
def test_of_recorded_definitions(entry):
    fd = record(entry)
    check_fixed(fd, make_inputs(entry, fd.fusion.ir, "meta"))


def check_random(kind: str, seed: int) -> None:
    grown = KINDS[kind].grow(random.Random(f"{kind} {seed}"))
    check_fixed(grown.fd, grown.inputs)
    if kind in DYNAMIC:
        sizes = {n for table in grown.sizes for n in table}
        tables = ({n: n for n in sizes}, {n: 2 * n for n in sizes})
        given = [[made.resized(table) for made in grown.made] for table in tables]
        if open_signature(grown.fd, given[0], given[1:]) is not None:
            check_open(grown.fd, given)


def seeds(numbers: range) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("kind", "seed"), [(k, n) for k in KINDS for n in numbers])


@pytest.mark.covering(apart=True)
@seeds(range(4))
def test_of_random_graphs(kind, seed):
    check_random(kind, seed)


@pytest.mark.slow
@seeds(range(4, 40))
def test_of_more_random_graphs(kind, seed):
    check_random(kind, seed)


@pytest.mark.parametrize("name", CHOSEN)
def test_with_sizes_that_vary(name):
    body, shapes = CHOSEN[name]
    given = [[noise(*shape, seed=n) for n, shape in enumerate(case)] for case in shapes]
    check_open(define(body), given)


def test_of_a_maximum_over_the_rows_beside_a_softmax_along_them():
    """The first is split; the sum of exponentials below the other maximum is not."""
    x = torch.empty(2048, 64, device="meta")
    with FusionDefinition() as fd:
        value = fd.from_pytorch(x)
        for dim in (1, 0):
            top = fd.ops.max(value, [dim], keepdim=True)
            fd.add_output(fd.ops.sum(fd.ops.exp(fd.ops.sub(value, top)), [dim]))
    found = lower(fd.fusion.ir, signature(fd.fusion.ir, [x], CPU), DEVICE, DEFAULT)
    assert found.segmented.segments[0].scheduler == "inner_outer_persistent"
    check_fixed(fd, [x])


@pytest.mark.parametrize(
    "body",
    [
        lambda fd, x: fd.ops.sum(x, [0]),
        lambda fd, x: fd.ops.sum(x, [1]),
        lambda fd, x: fd.ops.mul(fd.ops.max(x, [0], keepdim=True), 2.0),
        lambda fd, x: fd.ops.sub(x, fd.ops.sum(x, [0], keepdim=True)),
    ],
)
def test_the_schedule_of_a_kernel_with_open_sizes_is_taken(body):
    """Of few elements too, which a kernel of that size alone would add without a reduction."""
    sizes = [(3, 40), (4, 41), (7, 8), (8, 13), (4, 100), (2, 2), (9, 64), (1, 5), (5, 1), (6, 3)]
    with FusionDefinition() as fd:
        fd.add_output(body(fd, fd.define_tensor([-1, -1], contiguity=True)))
    for size in sizes:
        x = torch.randn(*size)
        schedule, params = fd.schedule([x]), fd.heuristics([x])
        assert fd.is_legal(schedule, [x]), size
        (found,) = fd.run([x], schedule=schedule.to_dict())
        (also,) = fd.run([x], params=params)
        (wanted,) = fd.run([x])
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(also, wanted)


@pytest.mark.parametrize("size", [(5, 3), (3, 5), (2, 8)])
def test_boxes_of_a_schedule_are_stored_where_they_would_not_be_worth_it(size):
    """As many as it names, at any size."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.cat([x, fd.ops.exp(x)], 1))
    schedule = fd.schedule([torch.zeros(64, 1000)])
    assert schedule.segments[0].stores == ("tv2[0]", "tv2[1]")
    given = torch.randn(*size)
    assert fd.segments([given]).segments[0].stores[0].part is None
    (found,) = fd.run([given], schedule=schedule)
    torch.testing.assert_close(found, torch.cat([given, given.exp()], 1))


def test_a_kernel_loads_what_it_reads_and_no_more():
    """Sums pieced together, and those again: a product of the latter does not read the former."""
    x = torch.randn(27, 27, dtype=torch.float64)[1::2, 1::2]
    with FusionDefinition() as fd:
        once = fd.ops.sum(fd.from_pytorch(x), [0])
        twice = fd.ops.cat([once, once])
        more = fd.ops.cat([once, twice, once])
        for made in (twice, fd.ops.prod(twice, [0]), more, fd.ops.prod(more, [0])):
            fd.add_output(made)
    schedule = fd.schedule([x])
    assert [piece.loads for piece in schedule.segments] == [(), ("tv2",), ("tv3",)]
    for found, wanted in zip(fd.run([x], schedule=schedule), fd.run([x]), strict=True):
        assert torch.equal(found, wanted)
