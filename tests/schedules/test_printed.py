"""A schedule fits the printed definition, recorded again: there, values have other numbers."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace

import pytest
import torch

from tests.e2e.checking import CPU, gpu
from tests.schedules.test_chosen import grown
from tritonfuser import DataType, FusionDefinition, ParamsError, Schedule
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.tuned.keys import store_key
from tritonfuser.lowering.passes.numbering import in_order, names_in_order, with_names

NAME = re.compile(r'\b(tv|c)\d+(?=["\[.])')


def printed(fd):
    """What is recorded of the print of a definition."""
    scope = {"FusionDefinition": FusionDefinition, "DataType": DataType}
    exec(repr(fd), scope)
    with FusionDefinition() as again:
        scope["nvfuser_fusion"](again)
    return again


def sent(schedule):
    """A schedule that was written to a file."""
    return Schedule.from_dict(json.loads(str(schedule)))


def unnamed(schedule):
    """The text of a schedule with names in the order in which they come."""
    names: dict = {}
    text = str(replace(schedule, values=""))
    return NAME.sub(lambda found: names.setdefault(found[0], f"{found[1]}_{len(names)}"), text)


def body(fd):
    """Two sums of which one is not of the print's first line; an op that nothing uses."""
    x = fd.define_tensor([-1, -1], contiguity=True)
    wide = fd.ops.exp(x)
    fd.ops.sin(x)
    y = fd.define_tensor([-1, -1], contiguity=True)
    total = fd.ops.sum(wide, [1], keepdim=True)
    low = fd.ops.sub(fd.ops.neg(y), total)
    most = fd.ops.max(low, [0])
    fd.add_output(most)
    fd.add_output(low)
    fd.add_output(wide)


def defined():
    with FusionDefinition() as fd:
        body(fd)
    return fd, [torch.randn(70, 50), torch.randn(70, 50)]


def test_names_are_those_of_the_definition_that_it_is_of():
    fd, inputs = defined()
    again = printed(fd)
    schedule, other = fd.schedule(inputs), again.schedule(inputs)
    assert schedule.values == "tv0 tv3 tv6 tv1 tv4..5 tv7..8"
    assert other.values == "tv0..7"
    assert schedule.reduced == {"tv4", "tv8"} and other.reduced == {"tv4", "tv7"}
    assert again.is_legal(sent(schedule), inputs) and fd.is_legal(sent(other), inputs)
    assert again.schedule(inputs, schedule=schedule) == schedule
    assert fd.schedule(inputs, schedule=other) == other
    assert not again.is_legal(replace(schedule, values=""), inputs)


def test_kernels_have_the_names_of_the_schedule():
    fd, inputs = defined()
    schedule = fd.schedule(inputs, arch="sm_90")
    kernels = fd.kernels(inputs, arch="sm_90")
    of_print = printed(fd).kernels(inputs, arch="sm_90", schedule=schedule)

    def lines(source):
        return [line for line in source.text.splitlines() if "# " not in line]

    assert [*map(lines, of_print)] == [*map(lines, kernels)]
    assert any("tv8 = " in source.text for source in of_print)


@pytest.mark.parametrize("shape", [(70, 50), (3, 4), (1, 9), (33, 1)])
def test_the_print_runs_with_it(shape):
    fd, inputs = defined()
    again, schedule = printed(fd), sent(fd.schedule(inputs))
    for size in ((70, 50), shape):
        given = [torch.randn(size), torch.randn(size)]
        found = again.run(given, schedule=schedule)
        for one, other in zip(found, fd.run(given), strict=True):
            torch.testing.assert_close(one, other)


def test_a_definition_with_another_number_of_values_takes_the_names_as_they_are():
    fd, inputs = defined()
    with FusionDefinition() as more:
        body(more)
        more.add_output(more.ops.cos(more.define_tensor([-1])))
    given = [*inputs, torch.randn(3)]
    refused = more.is_legal(fd.schedule(inputs), given)
    assert not refused and "segments" in refused.reason
    assert more.schedule(given).values == "tv0 tv3 tv9 tv6 tv1 tv4..5 tv7..8 tv10"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ("tv0..1 x", "values: .*got 'x'"),
        ("tv0..7 tv3", "values: .*a name twice"),
        ("tv0..9999999", "values: .*got 'tv0..9999999'"),
        (3, "values: expected"),
    ],
)
def test_wrong_names(values, text):
    fd, inputs = defined()
    data = {**fd.schedule(inputs).to_dict(), "values": values}
    with pytest.raises(ParamsError, match=text):
        fd.run(inputs, schedule=data)


@pytest.mark.parametrize("values", [5, ["tv0"], None])
def test_names_that_are_no_text(values):
    with pytest.raises(ParamsError, match="values: expected names in one text, got"):
        Schedule.from_dict({"version": 1, "values": values, "segments": []})


def test_without_names_they_are_those_of_the_definition():
    fd, inputs = defined()
    data = fd.schedule(inputs).to_dict()
    data.pop("values")
    assert fd.is_legal(data, inputs)
    assert fd.schedule(inputs, schedule=data) == fd.schedule(inputs)


def test_the_key_of_a_stored_schedule_is_that_of_the_print():
    fd, inputs = defined()
    fusions = fd.fusion.ir, printed(fd).fusion.ir
    assert fusions[0].fingerprint != fusions[1].fingerprint
    keys = [store_key(fusion, signature(fusion, inputs, CPU), gpu(4)) for fusion in fusions]
    assert keys[0] == keys[1]
    with FusionDefinition() as other:
        x, y = (other.define_tensor([-1, -1], contiguity=True) for _ in range(2))
        other.add_output(other.ops.add(x, y))
    fusion = other.fusion.ir
    assert store_key(fusion, signature(fusion, inputs, CPU), gpu(4)) != keys[0]


def check(seed):
    rng = random.Random(f"printed {seed}")
    fd, inputs = grown(rng)
    again = printed(fd)
    one, other = fd.fusion.ir, again.fusion.ir
    assert in_order(one).fingerprint == in_order(other).fingerprint
    renamed = with_names(other, names_in_order(one))
    assert names_in_order(renamed) == names_in_order(one)
    schedule, own = (sent(d.schedule(inputs, arch="sm_90")) for d in (fd, again))
    found = again.is_legal(schedule, inputs, arch="sm_90")
    assert found, f"{found.reason}\n{fd}"
    assert again.schedule(inputs, arch="sm_90", schedule=schedule) == schedule
    assert fd.schedule(inputs, arch="sm_90", schedule=own) == own
    assert unnamed(schedule) == unnamed(own)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_schedules_of_random_definitions_fit_their_prints(start):
    for seed in range(start, start + 20):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 200))
def test_schedules_of_more_random_definitions_fit_their_prints(start):
    for seed in range(start, start + 200):
        check(seed)
