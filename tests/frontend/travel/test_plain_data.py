"""``fd.to_dict()`` and ``FusionDefinition.from_dict``: the same definition, the same bits."""

from __future__ import annotations

import copy
import json
import random

import hypothesis
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bench.recorded.definitions import load, record
from tests.e2e.graphs.growing import grow
from tests.e2e.graphs.test_random_graphs import KINDS
from tests.e2e.ops import calls
from tests.e2e.ops.every_op import calls_of
from tests.frontend.travel.round_trips import run, same, same_bits, through_json
from tests.lowering.graphs import noise
from tests.multidevice.cases import CASES
from tritonfuser import (
    ArgumentError,
    DataType,
    DefinitionError,
    Fusion,
    FusionDefinition,
    FusionGuard,
    InputError,
    ParallelType,
    UndefinedFusionError,
    define_tensor,
    multidevice,
    ops,
)
from tritonfuser.ops.registry import OPS

HOST = ("shape", "size")
"""Ops that give numbers."""
NARROW = (
    "cutlass_nvfp4_grouped_mm",
    "nv_block_quantize",
    "nv_grouped_block_quantize",
    "preprocess_grouped_matmul_input_sf",
)
"""Ops without samples; they are recorded by hand below."""


def plain(data):
    """Whether it is what JSON holds, by exact type."""
    if isinstance(data, dict):
        return type(data) is dict and all(type(k) is str and plain(v) for k, v in data.items())
    if isinstance(data, list):
        return type(data) is list and all(map(plain, data))
    return data is None or type(data) in (bool, int, float, str)


def test_the_data_of_a_definition():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 4], contiguity=True, dtype=DataType.BFloat16)
        n = fd.define_scalar(dtype=DataType.Int)
        fd.add_output(fd.ops.mul(fd.ops.sum(x, dims=[-1], dtype=DataType.Float), n), None)
    data = fd.to_dict()
    assert plain(data)
    assert data["version"] == 1
    assert [row["name"] for row in data["inputs"]] == ["tv0", "c0"]
    assert data["inputs"][0] | {"loc": None} == {
        "name": "tv0",
        "dtype": "BFloat16",
        "shape": ["i0", 4],
        "contiguity": [True, True],
        "stride_order": [1, 0],
        "is_cpu": False,
        "loc": None,
    }
    cast, total, product = data["ops"]
    assert (cast["op"], cast["args"]) == ("cast", {"arg": "tv0", "dtype": "Float"})
    assert total["args"] == {"arg": "tv1", "dims": [1], "keepdim": False, "dtype": "Float"}
    assert total["written_dims"] == [-1]
    file, line = product["loc"]
    assert file == __file__
    assert line > 0
    assert data["outputs"] == [{"value": "tv3", "alias_of": None, "hidden": False}]


@pytest.mark.parametrize("kind", KINDS)
def test_random_definitions(kind):
    for seed in range(12):
        grown = KINDS[kind].grow(random.Random(f"{kind} {seed}"))
        again = through_json(grown.fd)
        if seed < 2:
            same_bits(run(again, grown.inputs), run(grown.fd, grown.inputs))


@hypothesis.settings(max_examples=20, derandomize=True, database=None)
@given(rng=st.randoms(use_true_random=False))
def test_definitions_that_shrink(rng):
    through_json(grow(rng).fd)


@pytest.mark.parametrize("name", sorted(OPS.keys() - {*HOST, *NARROW}))
def test_every_op(name):
    for call in calls_of(name):
        through_json(calls.record(name, [call]).fd)


def test_ops_on_narrow_floats():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 1024], contiguity=True, dtype=DataType.BFloat16)
        for made in fd.ops.nv_block_quantize(x):
            if made is not None:
                fd.add_output(made)
    through_json(fd)


@pytest.mark.parametrize("entry", load(), ids=lambda e: e.name)
def test_recorded_definitions(entry):
    through_json(record(entry))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_definitions_over_a_mesh(case):
    assert through_json(case.definition()).fusion.shardings


def test_splits_and_orders_of_dims():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 12, -1], contiguity=True)
        y = fd.ops.sum(fd.ops.exp(x), dims=[2])
        fd.add_output(y)
        x.outer_split(1, 2)
        x.reorder([2, 1, 0, 3])
        x.inner_split(3, 3)
        x.axis(0).parallelize(ParallelType.stream)
        y.inner_split(2, 4)
        fd.ops.exp(x).domain()  # asked for, and left as it is
    again = through_json(fd)
    assert len(again.to_dict()["meshes"]) == 2
    assert repr(again.fusion.inputs()[0]) == repr(x)
    assert repr(again.fusion.outputs()[0]) == repr(y)
    assert again.fusion.inputs()[0].axis(0).parallel_type is ParallelType.stream


def test_a_mesh_of_two_dims():
    mesh = multidevice.DeviceMesh([[3, 1], [0, 2]])
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        x.set_device_mesh(mesh)
        x.outer_split(0, 2)
        x.axis(0).parallelize(ParallelType.mesh_y)
        fd.add_output(fd.ops.neg(x))
    (found,) = through_json(fd).fusion.inputs()
    assert found.get_device_mesh() == mesh


numbers = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.complex_numbers()
)


@given(numbers, st.sampled_from([None, *(d for d in DataType if d is not DataType.Null)]))
def test_any_constant(value, dtype):
    with FusionDefinition() as fd:
        x = fd.define_tensor([2], dtype=DataType.ComplexDouble)
        try:
            fd.add_output(fd.ops.mul(x, fd.define_scalar(value, dtype)))
        except (DefinitionError, ArgumentError):  # an integer for nan, numbers of four bits
            hypothesis.reject()
    through_json(fd)


def test_constants_keep_type_and_sign():
    with FusionDefinition() as fd:
        x = fd.define_tensor([3], dtype=DataType.Float)
        for number in (1, 1.0, True, 0.0, -0.0, float("nan"), float("-inf"), 1e-45):
            fd.add_output(fd.ops.mul(x, number))
        fd.add_output(fd.ops.full([2], fd.define_scalar(2 - 0j), DataType.ComplexFloat))
    inputs = [torch.tensor([1.0, -2.0, float("inf")])]
    same_bits(run(through_json(fd), inputs), run(fd, inputs))


@pytest.mark.parametrize(
    "arguments",
    [
        {"shape": [-1, 1, 3, -1], "contiguity": [True, None, None, False]},
        {"shape": [-1, -1, 1], "contiguity": True, "stride_order": [0, 2, 1]},
        {"shape": [], "is_cpu": True},
        {"shape": [0, -1], "contiguity": False, "dtype": DataType.Float8_e4m3fn},
        {"sizes": [4, 8], "strides": [1, 4], "static_sizes": True},
        {"sizes": [4, 8], "strides": [0, 1]},
        {"symbolic_sizes": [-1, 1], "contiguous": [True, True]},
    ],
    ids=str,
)
def test_any_input(arguments):
    with FusionDefinition() as fd:
        x = fd.define_tensor(**arguments)
        fd.add_output(fd.ops.set(x))
    through_json(fd)


def test_vectors_and_sizes_known_at_run_time():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        n, m = fd.define_vector(2)
        y = fd.define_tensor([-1], contiguity=True)
        wide = fd.ops.reshape(x, [n, m, x.size(1)])
        fd.add_output(fd.ops.add(wide, fd.ops.broadcast_in_dim(y, fd.ops.shape(wide), [2])))
        fd.add_output(fd.ops.iota(n, 0, m, DataType.Int))
    inputs = [noise(6, 5), 2, 3, noise(5)]
    same_bits(run(through_json(fd), inputs), run(fd, inputs))


def test_random_numbers_are_drawn_alike():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        seed, offset = fd.define_scalar(dtype=DataType.Int), fd.define_scalar(dtype=DataType.Int)
        drawn = fd.ops.uniform(0.0, 1.0, x.shape(), rng_seed=seed, rng_offset=offset)
        fd.add_output(fd.ops.where(fd.ops.lt(drawn, 0.5), x, 0.0))
        fd.add_output(fd.ops.randn_like(x))
    inputs = [noise(4, 5), 7, 8]
    same_bits(run(through_json(fd), inputs), run(fd, inputs))


def test_outputs_that_are_written_into_inputs():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        y = fd.define_tensor([-1], contiguity=True)
        a, b = fd.ops.neg(x), fd.ops.exp(y)
        fd.add_output(b)
        fd.add_output(a, y)
        fd.add_output(b, x)
        fd.add_output(b)
        fd.add_output(x)
    inputs = [noise(4), noise(4)]
    same_bits(run(through_json(fd), inputs), run(fd, inputs))


def test_inputs_in_another_order_than_their_numbers():
    fusion = Fusion()
    with FusionGuard(fusion):
        a, b = define_tensor([-1]), define_tensor([-1, -1])
        define_tensor([-1])  # never an input
        fusion.add_input(b)
        fusion.add_input(a)
        fusion.add_output(ops.add(a, ops.sum(b, dims=[0])))
    again = Fusion.from_dict(json.loads(json.dumps(fusion.to_dict())))
    same(fusion, again)
    with FusionGuard(again):
        more = define_tensor([-1])
    assert more.value not in fusion.ir.inputs
    assert more.value.tensor.shape[0] not in [s for v in fusion.ir.inputs for s in v.tensor.shape]


def test_lines_travel_and_their_files_are_not_read(tmp_path):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], contiguity=True)
        fd.add_output(fd.ops.neg(x))
    again = through_json(fd)
    line = fd.to_dict()["inputs"][0]["loc"]
    with pytest.raises(InputError, match="to be bound") as caught:
        again.run([torch.randn(2, 2)])
    assert (caught.value.loc.file, caught.value.loc.line) == tuple(line)
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret line\n")
    data = fd.to_dict()
    for row in (*data["inputs"], *data["ops"]):
        row["loc"] = [str(secret), 1]
    with pytest.raises(InputError, match="to be bound") as caught:
        FusionDefinition.from_dict(data).run([torch.randn(2, 2)])
    assert str(secret) in str(caught.value)
    assert "the secret line" not in str(caught.value)


@pytest.mark.parametrize(
    "folder", ["My\u00a0Programs", "\u5199\u771f\u3000\u7528", "\udcff", "a\tb\nc", "deep/" * 1000]
)
def test_a_definition_of_a_file_of_any_name_travels(folder):
    """What ``to_dict`` gives, ``from_dict`` takes; the kernels are the same."""
    scope = {}
    text = "def record(fd, x):\n    fd.add_output(fd.ops.neg(x))\n"
    exec(compile(text, f"/home/{folder}/model.py", "exec"), scope)
    with FusionDefinition() as fd:
        scope["record"](fd, fd.define_tensor([-1], contiguity=True))
    inputs = [noise(8)]
    for again in (FusionDefinition.from_dict(fd.to_dict()), copy.deepcopy(fd)):
        assert again.to_dict() == fd.to_dict()
        assert [k.text for k in again.kernels(inputs)] == [k.text for k in fd.kernels(inputs)]


def test_kernels_of_data_are_those_of_the_definition():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.sum(fd.ops.exp(x), dims=[1]))
    again = through_json(fd)
    inputs = [noise(4, 8)]
    assert [k.text for k in again.kernels(inputs)] == [k.text for k in fd.kernels(inputs)]


def test_what_cannot_be_written():
    with pytest.raises(UndefinedFusionError):
        FusionDefinition().to_dict()
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1])
        with pytest.raises(DefinitionError, match="still being recorded"):
            fd.to_dict()
        fd.add_output(fd.ops.neg(x))
    fusion = Fusion()
    with FusionGuard(fusion):
        fusion.add_output(ops.neg(define_tensor([-1])))
    with pytest.raises(DefinitionError, match="neg: tv0 is no input"):
        fusion.to_dict()
