"""Data that is no definition: an error of ours that says where, whatever the data is."""

from __future__ import annotations

import contextlib
import copy
import random

import pytest

from tests.e2e.checking import copied
from tests.e2e.graphs.test_random_graphs import KINDS
from tests.multidevice.cases import CASES
from tritonfuser import (
    DataType,
    DefinitionError,
    FusionDefinition,
    TritonFuserError,
)


def written():
    """The data of a definition that has some of everything."""
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 4], contiguity=True)
        n = fd.define_scalar(dtype=DataType.Int)
        y = fd.ops.mul(x, 2.5)
        z = fd.ops.sum(y, dims=[1], dtype=DataType.Double)
        fd.add_output(fd.ops.add(z, n))
        fd.add_output(fd.ops.cat([y, x], dim=1))
        fd.add_output(y, x)
    return fd.to_dict()


def changed(path, value):
    """The data with one place of it changed; ``...`` takes the key away."""
    data = written()
    *way, last = path
    spot = data
    for key in way:
        spot = spot[key]
    if value is ...:
        del spot[last]
    else:
        spot[last] = value
    return data


CASES_OF_DATA = {
    "no dict": (lambda: ["version", 1], "the data: expected a dict"),
    "nothing": (lambda: None, "the data: expected a dict"),
    "no version": (lambda: changed(["version"], ...), "expected the key 'version'"),
    "newer": (lambda: changed(["version"], 2), "of version 2, this tritonfuser reads up to 1"),
    "version true": (lambda: changed(["version"], True), "version: expected an int, got True"),
    "key": (lambda: changed(["extra"], 1), "no keys but version, .*, got 'extra'"),
    "unknown op": (
        lambda: changed(["ops", 0, "op"], "system"),
        r"ops\[0\]: there is no op 'system'",
    ),
    "dunder op": (lambda: changed(["ops", 0, "op"], "__class__"), "there is no op '__class__'"),
    "inner op": (lambda: changed(["ops", 0, "op"], "mma"), "there is no op 'mma'"),
    "op no string": (
        lambda: changed(["ops", 0, "op"], 3),
        r"ops\[0\]\.op: expected a string, got 3",
    ),
    "composite op": (
        lambda: changed(["ops", 0, "op"], "floor_divide"),
        "there is no op 'floor_divide'",
    ),
    "another op": (
        lambda: changed(["ops", 1, "op"], "exp"),
        r"ops\[1\] \(exp\).args: expected no keys",
    ),
    "argument": (
        lambda: changed(["ops", 0, "args", "eval"], 1),
        "expected no keys but lhs, rhs, got 'eval'",
    ),
    "operand": (
        lambda: changed(["ops", 0, "args", "lhs"], "tv9"),
        r"ops\[0\] \(mul\)\.lhs: expected a con",
    ),
    "later operand": (lambda: changed(["ops", 0, "args", "lhs"], "tv1"), "that is defined before"),
    "operand a number": (
        lambda: changed(["ops", 0, "args", "rhs"], 2.5),
        "expected a constant, or",
    ),
    "constant": (
        lambda: changed(["ops", 0, "args", "rhs"], {"float": 2.5, "dtype": "Int"}),
        "expected a number of Int",
    ),
    "constant of no dtype": (
        lambda: changed(["ops", 0, "args", "rhs"], {"float": 2.5, "dtype": "mro"}),
        "expected the name of a DataType, got 'mro'",
    ),
    "constant of two": (
        lambda: changed(["ops", 0, "args", "rhs"], {"float": 1.0, "int": 1, "dtype": "Float"}),
        "expected one of bool, int",
    ),
    "constant text": (
        lambda: changed(["ops", 0, "args", "rhs"], {"float": "__import__", "dtype": "Float"}),
        "expected a float, or one of nan, inf, -inf",
    ),
    "dims": (lambda: changed(["ops", 2, "args", "dims"], [7]), r"ops\[2\] \(sum\): .*dim"),
    "dims true": (lambda: changed(["ops", 2, "args", "dims"], [True]), "expected an int, got True"),
    "negative dims": (lambda: changed(["ops", 2, "args", "dims"], [-1]), "arguments as the op is"),
    "results": (lambda: changed(["ops", 0, "results"], ["tv8", "tv9"]), r"expected \['tv8'\]"),
    "no results": (lambda: changed(["ops", 0, "results"], []), r"expected \['tv0'\]|new names"),
    "result twice": (lambda: changed(["ops", 0, "results"], ["tv0"]), "expected new names"),
    "result a scalar": (lambda: changed(["ops", 0, "results"], ["c5"]), "results: expected"),
    "shape -1": (lambda: changed(["inputs", 0, "shape"], [-1, 4]), "the name of an extent"),
    "extent twice": (
        lambda: changed(["inputs", 0, "shape"], ["i0", "i0"]),
        "i0, i1, ..., each once",
    ),
    "extent": (lambda: changed(["inputs", 0, "shape"], ["exit()", 4]), "extents i0, i1"),
    "shape below": (lambda: changed(["inputs", 0, "shape"], ["i0", -4]), "The value -4 at index 1"),
    "shape huge": (lambda: changed(["inputs", 0, "shape"], ["i0", 2**70]), "beyond int64"),
    "contiguity": (
        lambda: changed(["inputs", 0, "contiguity"], [True]),
        "contiguity has 1 entries",
    ),
    "order": (
        lambda: changed(["inputs", 0, "stride_order"], [0, 0]),
        "stride_order has duplicates",
    ),
    "order of strings": (
        lambda: changed(["inputs", 0, "stride_order"], ["1", 0]),
        "expected an int",
    ),
    "contiguity of ints": (
        lambda: changed(["inputs", 0, "contiguity"], [True, 4096]),
        r"inputs\[0\]: define_tensor\(\): .*got 4096",
    ),
    "argument missing": (
        lambda: changed(["ops", 0, "args", "lhs"], ...),
        r"ops\[0\] \(mul\): .*'lhs' is missing",
    ),
    "constant beyond int64": (
        lambda: changed(["ops", 0, "args", "rhs"], {"int": 2**70, "dtype": "Int"}),
        r"ops\[0\] \(mul\)\.rhs: .*int of 71 bits",
    ),
    "is_cpu": (lambda: changed(["inputs", 0, "is_cpu"], True), "CPU non-scalar tensor"),
    "dtype": (lambda: changed(["inputs", 0, "dtype"], "Null"), "the dtype of an input"),
    "name": (lambda: changed(["inputs", 1, "name"], "tv0"), "expected a new name c0"),
    "name of a number": (lambda: changed(["inputs", 1, "name"], "c01"), "expected a new name c0"),
    "loc": (lambda: changed(["inputs", 1, "loc"], ["a\nimport os", 1]), "a file and a line"),
    "loc line": (lambda: changed(["ops", 0, "loc"], ["a", "1"]), r"loc: expected an int"),
    "output": (lambda: changed(["outputs", 0, "value"], "tv77"), r"outputs\[0\]\.value"),
    "output a scalar": (
        lambda: changed(["outputs", 0, "value"], "c0"),
        "expected the name of a tens",
    ),
    "alias of no input": (lambda: changed(["outputs", 2, "alias_of"], "tv2"), "must be an input"),
    "alias of another shape": (
        lambda: changed(["outputs", 0, "alias_of"], "tv0"),
        "cannot be written into|expected outputs as",
    ),
    "no outputs": (lambda: changed(["outputs"], []), "outputs: expected at least one output"),
    "hidden": (lambda: changed(["outputs", 0, "hidden"], True), "expected outputs as they are"),
    "meshes": (
        lambda: changed(["meshes"], [{"tensor": "tv0"}]),
        r"meshes\[0\]: expected the key 'mesh'",
    ),
}


@pytest.mark.parametrize("name", CASES_OF_DATA)
def test_malformed_data(name):
    make, text = CASES_OF_DATA[name]
    FusionDefinition.from_dict(written())
    with pytest.raises(DefinitionError, match=text) as caught:
        FusionDefinition.from_dict(make())
    assert caught.value.message.startswith("from_dict: ")
    assert caught.value.loc is not None
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("tensor", "c0", "expected a new name|name of a tensor"),
        ("mesh", [0, "1"], "expected an int"),
        ("mesh", [[[[0]]]], "expected an int"),
        ("mesh", [0, 0], "expected different devices"),
        ("splits", [[0, 0, False]], "split: expected a constant factor"),
        ("splits", [[9, 2, False]], "split: dim 9"),
        ("splits", [[0, 2]], "expected a loop, a factor"),
        ("loop", [0, 0, 1], "no reordering"),
        ("parallel", ["mesh_x"], "names of parallel types"),
        ("parallel", ["block_x", "serial", "serial"], "not available"),
        ("parallel", ["__members__", "serial", "serial"], "name of a parallel type"),
    ],
)
def test_malformed_meshes(key, value, text):
    data = next(c for c in CASES if c.definition().to_dict()["meshes"][0]["splits"]).definition()
    data = data.to_dict()
    row = data["meshes"][0] = copy.deepcopy(data["meshes"][0])
    if key == "parallel":
        value = value if len(value) == 1 else [value[0], *["serial"] * (len(row["parallel"]) - 1)]
    row[key] = value
    with pytest.raises(DefinitionError, match=rf"from_dict: meshes\[\d\].*({text})"):
        FusionDefinition.from_dict(data)


def spots(data, path=()):
    """Every place in the data."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield (*path, key)
            yield from spots(value, (*path, key))


OTHERS = (
    *(None, True, 0, 1, -1, 2, 3, 2**31, 2**63, -(2**70), 0.5, float("nan"), "", "tv0", "tv1"),
    *("c0", "i0", "i7", "Int", "Float", "Null", "sum", "cast", "nan", [], {}, [0], ["tv0"]),
    *({"int": n, "dtype": "Int"} for n in (0, -3, 2**31, 2**62)),
    {"complex": ["nan", 1], "dtype": "Double"},
)
"""What a place of the data is changed to."""


def change(seed):
    """A random definition whose data is changed in one place: what it makes, and its inputs."""
    rng = random.Random(f"change {seed}")
    grown = KINDS[rng.choice([*KINDS])].grow(rng)
    written = grown.fd.to_dict()
    *way, last = rng.choice([*spots(written)])
    spot = written
    for key in way:
        spot = spot[key]
    if isinstance(spot, dict) and rng.random() < 0.2:
        del spot[last]
    else:
        spot[last] = copy.deepcopy(rng.choice(OTHERS))
    return FusionDefinition.from_dict(written), grown.inputs


def test_any_change_is_a_definition_or_an_error_of_ours():
    made = 0
    for seed in range(60):
        try:
            fd, _ = change(seed)
        except DefinitionError as error:
            assert error.message.startswith("from_dict: ")
            continue
        made += 1
        assert repr(fd)
        assert FusionDefinition.from_dict(fd.to_dict()).to_dict() == fd.to_dict()
    assert made > 2


@pytest.mark.slow
def test_any_change_runs_or_is_an_error_of_ours():
    for seed in range(1500):
        with contextlib.suppress(TritonFuserError):
            fd, inputs = change(seed)
            fd.run(copied(inputs))
