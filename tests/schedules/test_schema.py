"""The JSON Schema of schedules takes all that is exported, and refuses what ``from_dict`` does.

It has types and limits of fields, not names of values, nor conditions between fields.
"""

from __future__ import annotations

import copy
import json
from dataclasses import fields

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bench.recorded.definitions import load, make_inputs, record
from tests.heuristics.test_params import any_params
from tests.schedules.json_schema import Validator
from tritonfuser import ParamsError, Schedule, SegmentSchedule
from tritonfuser.cli.main import main
from tritonfuser.heuristics.params import PARAMS, HeuristicParams

SCHEMA = json.loads(json.dumps(Schedule.json_schema()))
VALIDATOR = Validator(SCHEMA)


def schedule(params):
    return {"version": 1, "segments": [{"scheduler": params.scheduler, "params": plain(params)}]}


def plain(params):
    return {k: v for k, v in params.to_dict().items() if k != "scheduler"}


def is_read(data):
    try:
        Schedule.from_dict(data)
    except ParamsError:
        return False
    return True


def test_the_command_line_prints_it():
    result = CliRunner().invoke(main, ["schema"])
    assert result.exit_code == 0
    assert json.loads(result.output) == SCHEMA


def test_its_draft():
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("entry", load(), ids=lambda e: e.name)
def test_of_recorded_definitions(entry):
    fd = record(entry)
    inputs = make_inputs(entry, fd.fusion.ir, "meta")
    assert VALIDATOR.is_valid(json.loads(str(fd.schedule(inputs, arch="sm_90"))))


@given(any_params())
def test_of_any_params(params):
    assert VALIDATOR.is_valid(schedule(params))


@given(any_params(), st.data())
def test_limits_are_those_of_the_constructors(params, data):
    """A field alone: conditions between fields are not the schema's."""
    changed = schedule(params)
    given = changed["segments"][0]["params"]
    if given:
        name = data.draw(st.sampled_from(sorted(given)))
        one = st.integers(-2, 20) | st.sampled_from([32, 33, 64, 255, 256, 2**20, 2**21, 2**40])
        given[name] = data.draw(one | st.lists(one, max_size=5) | st.booleans())
    try:
        HeuristicParams.from_dict({"scheduler": params.scheduler, **given})
        expected = True
    except ParamsError as error:
        between = ("a block of Triton holds at most", "an axis lies along one side")
        expected = any(text in error.message for text in between)
    assert VALIDATOR.is_valid(changed) == expected


@st.composite
def wrong_types(draw):
    """A schedule with one value of another type, one key more or one fewer."""
    params = draw(any_params())
    split = {"value": "tv1", "parts": [2, -1], "interleave": 0, "padded": -1, "remainder": False}
    segment = SegmentSchedule(computes=("tv1",), stores=("tv2",), params=params).to_dict()
    whole = {**Schedule().to_dict(), "segments": [segment], "splits": [split], "products": ["tv3"]}
    changed = copy.deepcopy(whole)
    inside = draw(
        st.sampled_from(
            [
                changed,
                changed["segments"][0],
                changed["segments"][0]["params"],
                changed["splits"][0],
            ]
        )
    )
    if not inside or draw(st.booleans()):
        inside[draw(st.sampled_from(["colour", "", "Scheduler"]))] = draw(st.integers())
        return changed
    key = draw(st.sampled_from(sorted(inside)))
    if draw(st.booleans()):
        del inside[key]
    else:
        inside[key] = draw(st.sampled_from([None, "x", 3.5, -7, True, [None], [[]], {}, {"a": 1}]))
    return changed


@given(wrong_types())
def test_it_takes_what_is_read(data):
    assert VALIDATOR.is_valid(data) == is_read(data), data


def test_fields_are_described():
    for name, kind in PARAMS.items():
        found = SCHEMA["$defs"][name]["properties"]
        for row in fields(kind):
            assert len(found[row.name]["description"]) > 10, (name, row.name)
    assert SCHEMA["$defs"]["pointwise"]["properties"]["num_warps"]["enum"] == [1, 2, 4, 8, 16, 32]
