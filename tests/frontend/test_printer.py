"""repr(fd): exact texts, and programs that record the same again."""

from __future__ import annotations

import enum
import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bench.recorded.definitions import load, record
from tritonfuser import DataType, Fusion, FusionDefinition, TensorView, translate_fusion
from tritonfuser.frontend.inspect.legacy_printer import print_legacy_definition
from tritonfuser.frontend.vocabulary.literals import float_text


def recorded(text):
    """The definition that a printed program records; the names are all that repr(fd) needs."""
    scope = {
        "FusionDefinition": FusionDefinition,
        "DataType": DataType,
        "TensorView": TensorView,
        "torch": torch,
    }
    exec(text, scope)
    with FusionDefinition() as fd:
        scope["nvfuser_fusion"](fd)
    return fd


def renumbered(text):
    """The text with values numbered in the order they are met."""
    names = {}
    return re.sub(r"\b(tv|c)\d+\b", lambda m: names.setdefault(m[0], f"{m[1]}_{len(names)}"), text)


def lines(fd):
    return [line.strip() for line in repr(fd).splitlines()[1:]]


def test_a_definition_prints_as_the_program_that_defines_it():
    with FusionDefinition() as fd:
        a = fd.define_tensor(shape=[-1, -1, -1], contiguity=True)
        b = fd.define_tensor(shape=[1, -1, 1], contiguity=True)
        c = fd.ops.mul(fd.ops.add(a, b), 3.0)
        fd.add_output(fd.ops.sum(c, -1))
    assert repr(fd) == (
        "def nvfuser_fusion(fd : FusionDefinition) -> None :\n"
        "    tv0 = fd.define_tensor(shape=[-1, -1, -1], contiguity=[True, True, True], "
        "dtype=DataType.Float, is_cpu=False)\n"
        "    tv1 = fd.define_tensor(shape=[1, -1, 1], contiguity=[None, True, None], "
        "dtype=DataType.Float, is_cpu=False)\n"
        "    tv2 = fd.ops.add(tv0, tv1)\n"
        "    tv3 = fd.ops.mul(tv2, 3.00000)\n"
        "    tv4 = fd.ops.sum(tv3, dims=[2], dtype=DataType.Float)\n"
        "    fd.add_output(tv4)\n"
    )


def printed(make, *shapes, dtype=DataType.Float):
    """The lines after the inputs, of a definition whose one result ``make`` records."""
    with FusionDefinition() as fd:
        tensors = [fd.define_tensor(shape=list(shape), dtype=dtype) for shape in shapes]
        fd.add_output(make(fd, *tensors))
    return lines(fd)[len(shapes) : -1]


@pytest.mark.parametrize(
    ("make", "shapes", "expected"),
    [
        (
            lambda fd, x: fd.ops.reshape(x, [12, fd.define_scalar(128), 25, 32, 2]),
            [(12, 128, 1600)],
            "tv1 = fd.ops.reshape(tv0, new_shape=[12, 128, 25, 32, 2])",
        ),
        (
            lambda fd, x: fd.ops.slice(x, [0, 0], [20, 1]),
            [(12, 4)],
            "tv1 = fd.ops.slice(tv0, start_indices=[0, 0], end_indices=[12, 1], strides=[1, 1], "
            "manual_normalization=True)",
        ),
        (
            lambda fd, x: fd.ops.sum(x, [-1]),
            [(2, 3, 4, 5, 1)],
            "tv1 = fd.ops.squeeze(tv0, dims=[4])",
        ),
        (
            lambda fd, x: fd.ops.permute(x, [-1, 0]),
            [(2, 3)],
            "tv1 = fd.ops.permute(tv0, dims=[1, 0])",
        ),
        (lambda fd, x: fd.ops.set(x), [(2,)], "tv1 = fd.ops.cast(tv0, dtype=DataType.Float)"),
        (
            lambda fd, x: fd.ops.cat([x, x], -1),
            [(2, 3)],
            "tv1 = fd.ops.cat([tv0, tv0], dim=1)",
        ),
        (
            lambda fd, x: fd.ops.where(fd.ops.gt(x, 0), 1, 2.5),
            [(2,)],
            "tv1 = fd.ops.gt(tv0, 0)\ntv2 = fd.ops.where(tv1, 1, 2.50000)",
        ),
        (
            lambda fd: fd.ops.full((2, 3), 1, DataType.Float),
            [],
            "tv0 = fd.ops.full(shape=[2, 3], fill_value=1.00000, dtype=DataType.Float)",
        ),
        (
            lambda fd: fd.ops.uniform(0.0, 1.0, [2], dtype=DataType.Half),
            [],
            "tv0 = fd.ops.uniform(0.00000, 1.00000, shape=[2], dtype=DataType.Half)",
        ),
        (lambda fd: fd.ops.iota(5, 1), [], "tv0 = fd.ops.iota(5, 1, 1)"),
        (
            lambda fd, x: fd.ops.cumsum(x, -1),
            [(2, 3)],
            "tv1 = fd.ops.cumsum(tv0, dim=1)",
        ),
        (lambda fd, x: fd.ops.triu(x), [(3, 3)], "tv1 = fd.ops.triu(tv0)"),
        (lambda fd, x: fd.ops.triu(x, 2), [(3, 3)], "tv1 = fd.ops.triu(tv0, 2)"),
        (
            lambda fd, x: fd.ops.mul(x, fd.define_scalar(2.0, dtype=DataType.Half)),
            [(3,)],
            "k0 = fd.define_scalar(2.00000, dtype=DataType.Half)\ntv1 = fd.ops.mul(tv0, k0)",
        ),
        (
            lambda fd, x: fd.ops.mul(x, fd.ops.reciprocal(x.size(0))),
            [(-1,)],
            "c0 = fd.ops.size(tv0, dim=0)\nc1 = fd.ops.reciprocal(c0)\ntv1 = fd.ops.mul(tv0, c1)",
        ),
    ],
)
def test_ops_print_as_calls(make, shapes, expected):
    found = "\n".join(printed(make, *shapes))
    assert found == expected


def test_broadcast_in_dim_and_expand_print_alike():
    one = printed(lambda fd, x: fd.ops.broadcast_in_dim(x, [4, 3], [0, 1]), (1, 3))
    other = printed(lambda fd, x: fd.ops.expand(x, [4, 3]), (1, 3))
    assert one == other == ["tv1 = fd.ops.expand(tv0, shape=[4, 3])"]


def test_lines_come_depth_first_and_dead_code_is_left_out():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2, 3])
        unused = fd.define_tensor([5])
        fd.ops.neg(unused)
        late = fd.ops.exp(x)
        early = fd.ops.log(x)
        var, mean = fd.ops.var_mean(x, [1])
        fd.add_output(mean)
        fd.add_output(fd.ops.sub(early, late))
    assert [line for line in lines(fd) if "define" not in line] == [
        "tv5, tv6 = fd.ops.var_mean(tv0, dims=[1])",
        "tv4 = fd.ops.log(tv0)",
        "tv3 = fd.ops.exp(tv0)",
        "tv7 = fd.ops.sub(tv4, tv3)",
        "fd.add_output(tv6)",
        "fd.add_output(tv7)",
    ]
    assert isinstance(var, TensorView)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.100000"),
        (1e-5, "1.00000e-05"),
        (3.0, "3.00000"),
        (1 / 3, "0.3333333333333333"),
        (1234567.0, "1234567.0"),
        (-0.0, "-0.00000"),
        (math.inf, 'float("inf")'),
        (-math.inf, '-float("inf")'),
        (math.nan, 'float("nan")'),
    ],
)
def test_floats(value, text):
    assert float_text(value) == text


@given(st.floats())
def test_any_float_is_read_back(value):
    back = eval(float_text(value))
    assert (
        math.isnan(back)
        if math.isnan(value)
        else (back, math.copysign(1, back))
        == (
            value,
            math.copysign(1, value),
        )
    )


@given(
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.complex_numbers()),
    st.sampled_from([None, DataType.Float, DataType.Half, DataType.Double, DataType.ComplexFloat]),
)
def test_any_constant_is_recorded_again(value, dtype):
    with FusionDefinition() as fd:
        x = fd.define_tensor([2], dtype=DataType.Double)
        fd.add_output(fd.ops.mul(x, fd.define_scalar(value, dtype)))
    again = recorded(repr(fd))
    assert again.fusion == fd.fusion
    assert again.fusion.ir.fingerprint == fd.fusion.ir.fingerprint


class Level(enum.IntEnum):
    """Numbers of a class derived from int, with a repr of its own."""

    TWO = 2


class Metres(float):
    def __repr__(self):
        return "2 m"


@pytest.mark.parametrize("number, plain", [(Level.TWO, 2), (Metres(2), 2.0)])
@pytest.mark.parametrize("is_constant", [False, True])
def test_constants_of_derived_classes_are_numbers(number, plain, is_constant):
    texts = []
    for value in (number, plain):
        with FusionDefinition() as fd:
            x = fd.define_tensor([2])
            fd.add_output(fd.ops.mul(x, fd.define_scalar(value) if is_constant else value))
            fd.add_output(fd.ops.full([2], value, DataType.Float))
        texts.append(repr(fd))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("entry", load(), ids=lambda e: e.name)
def test_recorded_definitions_record_and_print(entry):
    fd = record(entry)
    again = recorded(repr(fd))
    assert renumbered(repr(again)) == renumbered(repr(fd))
    # numbered in printing order now: printing is a fixed point
    third = recorded(repr(again))
    assert repr(third) == repr(again)
    assert third.fusion.ir.fingerprint == again.fusion.ir.fingerprint
    assert [v.value.type for v in again.fusion.inputs()] == [
        v.value.type for v in fd.fusion.inputs()
    ]
    assert len(repr(fd).splitlines()) == len(entry.text.splitlines())


def test_long_chains_print():
    with FusionDefinition() as fd:
        x = fd.define_tensor([2])
        for _ in range(3000):
            x = fd.ops.neg(x)
        fd.add_output(x)
    assert len(lines(fd)) == 3002


def test_what_is_not_recorded_prints_too():
    assert repr(FusionDefinition()) == "<FusionDefinition: nothing recorded>"
    with FusionDefinition() as fd:
        pass
    assert repr(fd) == "def nvfuser_fusion(fd : FusionDefinition) -> None :\n    pass\n"
    assert translate_fusion(Fusion()) == repr(fd)


# --- the first frontend's text -----------------------------------------------------------------


def test_the_legacy_text():
    with FusionDefinition() as fd:
        a = fd.define_tensor(symbolic_sizes=[-1, 1, -1], contiguous=[True, True, True])
        b = fd.define_tensor(3)
        c = fd.define_constant(3.0)
        d = fd.ops.mul(fd.ops.add(a, b), c)
        fd.add_output(fd.ops.sum(d, axes=[-1], keepdim=False, dtype=DataType.Float))
    assert print_legacy_definition(fd.fusion.ir, 0) == (
        "def nvfuser_fusion_id0(fd : FusionDefinition) -> None :\n"
        "    T0 = fd.define_tensor(symbolic_sizes=[-1, 1, -1], contiguous=[True, True, True], "
        "dtype=DataType.Float)\n"
        "    T1 = fd.define_tensor(symbolic_sizes=[-1, -1, -1], contiguous=[False, False, False], "
        "dtype=DataType.Float)\n"
        "    S2 = fd.define_constant(3.00000)\n"
        "    T3 = fd.ops.add(T0, T1)\n"
        "    T4 = fd.ops.mul(T3, S2)\n"
        "    T5 = fd.ops.sum(T4, axes=[2], keepdim=False, dtype=DataType.Float)\n"
        "    fd.add_output(T5)\n"
    )


@pytest.mark.parametrize("entry", load(), ids=lambda e: e.name)
def test_the_legacy_text_records_the_same(entry):
    fd = record(entry)
    text = print_legacy_definition(fd.fusion.ir, 7)
    again = recorded(text.replace("nvfuser_fusion_id7", "nvfuser_fusion"))
    assert renumbered(repr(again)) == renumbered(repr(fd))
