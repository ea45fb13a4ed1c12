"""Recorded definitions with symbolic sizes: one recording, the values of each size's own."""

from __future__ import annotations

import pytest

from bench.measure.errors import max_error
from bench.recorded.definitions import RecordedDefinition, load, make_inputs, record
from bench.recorded.resizable import opened, resizable
from bench.recorded.shrink import OTHER_SIZES, SIZES, shrink
from tests.definitions.test_definitions import tolerance
from tests.definitions.test_shrink import TOY
from tests.e2e.checking import copied
from tritonfuser.frontend.inspect.oracle import reference

by_name = pytest.mark.parametrize("entry", load(), ids=lambda e: e.name)
QUICK = [e for e in load() if e.index in (0, 1, 6)]


def check(entry: RecordedDefinition, fd, table, extra=()) -> None:
    """The outputs of ``fd`` at the sizes of a table, against the program with these written out."""
    small = shrink(entry, table)
    static = record(small)
    inputs = [*make_inputs(small, static.fusion.ir), *extra]
    own = inputs[: len(inputs) - len(extra)]
    expected = reference(static.fusion, own)
    for definition, given in ((fd, inputs), (static, own)):
        found = definition.run(copied(given))
        assert [x.shape for x in found] == [x.shape for x in expected]
        assert max_error(found, expected) <= tolerance(static.fusion.ir)
        strides = [x.stride() for x in found]
        if definition is fd:
            wanted = strides
    assert strides == wanted


def check_resized(entry: RecordedDefinition) -> None:
    tables = (SIZES[entry.model], OTHER_SIZES[entry.model])
    made = resizable(entry, tables)
    fd = record(made.entry)
    for table in (*tables, tables[0]):
        check(entry, fd, table, made.at(table))


def test_no_size_is_left_in_a_resizable_program() -> None:
    made = resizable(TOY, ({4: 2, 512: 16, 2048: 32},))
    text = made.entry.text
    assert "shape=[-1, -1, -1]" in text
    assert "iota(tv0.size(1), tv0.size(0), 1, dtype" in text
    assert "new_shape=[fd.ops.mul(tv0.size(0), tv0.size(1)), 768]" in text
    assert made.extents == ()
    made = resizable(TOY, ({4: 2, 512: 16, 2048: 31},))
    assert "n2048 = fd.define_scalar(None, dtype=DataType.Int)" in made.entry.text
    assert "new_shape=[n2048, 768]" in made.entry.text
    assert made.at({2048: 31}) == [31]


@pytest.mark.parametrize("entry", QUICK, ids=lambda e: e.name)
def test_at_two_sizes(entry: RecordedDefinition) -> None:
    check_resized(entry)


@pytest.mark.slow
@by_name
def test_each_at_two_sizes(entry: RecordedDefinition) -> None:
    check_resized(entry)


@pytest.mark.slow
@by_name
def test_inputs_of_unknown_sizes(entry: RecordedDefinition) -> None:
    """Sizes known at run time alone, but for those that the ops write out."""
    small = shrink(entry)
    check(entry, record(opened(small)), SIZES[entry.model])
