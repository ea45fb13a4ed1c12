"""The key of a call: what changes it, what does not, and inputs it cannot be made of."""

from __future__ import annotations

import math

import pytest
import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.signature import is_aligned, key_maker, signature
from tritonfuser.lowering.passes.concretize import ScalarSpec, TensorSpec

CPU = torch.device("cpu")


def definition(size_is_used: bool = False):
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1, -1], contiguity=False)
        n = fd.define_scalar(dtype=DataType.Int)
        s = fd.define_scalar(dtype=DataType.Double)
        if size_is_used:
            x = fd.ops.reshape(x, [n, -1])
        fd.add_output(fd.ops.mul(fd.ops.mul(x, n), s))
    return fd.fusion.ir


@pytest.fixture
def key():
    return key_maker(definition())


BASE = torch.zeros(4, 8)

OTHERS = {
    "sizes": torch.zeros(4, 9),
    "strides": torch.zeros(8, 4).t(),
    "a gap": torch.zeros(4, 9)[:, :8],
    "dtype": torch.zeros(4, 8, dtype=torch.half),
    "alignment": torch.zeros(33)[1:].view(4, 8),
    "stretched": torch.zeros(4, 1).expand(4, 8),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_changes_the_key(key, what):
    assert key([BASE, 2, 1.0]) != key([OTHERS[what], 2, 1.0])


def test_what_does_not(key):
    given = key([BASE, 2, 1.0])
    assert given == key([torch.ones(4, 8), 3, -0.5])
    assert given == key([BASE, 2, math.nan])
    assert given == key((BASE, 2, 1.0))
    assert hash(given) == hash(key([torch.ones(4, 8), 3, math.inf]))
    first, second = (torch.zeros(40)[n : n + 32].view(4, 8) for n in (1, 3))
    assert key([first, 2, 1.0]) == key([second, 2, 1.0])


def test_types_of_numbers_are_kept_apart(key):
    """A kernel is launched with numbers of the type it was compiled for."""
    keys = {key([BASE, 2, 1.0]), key([BASE, True, 1.0]), key([BASE, 2, 1]), key([BASE, 2, False])}
    assert len(keys) == 4


def test_values_of_numbers_that_shapes_depend_on():
    key = key_maker(definition(size_is_used=True))
    assert key([BASE, 2, 1.0]) != key([BASE, 4, 1.0])
    assert key([BASE, 2, 1.0]) == key([BASE, 2, 7.0])
    assert key([BASE, 1, 1.0]) != key([BASE, True, 1.0])


@pytest.mark.parametrize(
    "inputs",
    [
        [],
        [BASE, 2],
        [BASE, 2, 1.0, 1.0],
        [2, BASE, 1.0],
        [None, 2, 1.0],
        [[BASE], 2, 1.0],
        None,
        7,
        {},
    ],
)
def test_wrong_inputs_have_no_key(key, inputs):
    with pytest.raises((AttributeError, TypeError, ValueError)):
        key(inputs)


def test_a_definition_without_inputs():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.full([2], 1.0, DataType.Float))
    key = key_maker(fd.fusion.ir)
    assert key([]) == key(())
    with pytest.raises(ValueError, match="too many"):
        key([BASE])


def test_without_tensors_the_current_device_decides(monkeypatch):
    """Two GPUs need a plan each."""
    with FusionDefinition() as fd:
        n = fd.define_scalar(dtype=DataType.Double)
        fd.add_output(fd.ops.full([2], n, DataType.Float))
    key = key_maker(fd.fusion.ir)
    on_cpu = key([1.0])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    first = key([1.0])
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert len({on_cpu, first, key([1.0])}) == 3


def test_signature():
    tensor, size, factor = signature(definition(True), [BASE.t()[:, ::2], 2, 1.0], CPU)
    assert tensor == TensorSpec((8, 2), (1, 16), DataType.Float, True)
    assert size == ScalarSpec(DataType.Int, 2)
    assert factor == ScalarSpec(DataType.Double, None)


def test_alignment():
    whole = torch.zeros(64)
    assert is_aligned(whole) == (whole.data_ptr() % 16 == 0)
    assert [is_aligned(torch.empty(64, device="meta")[n:]) for n in range(5)] == [
        True,
        False,
        False,
        False,
        True,
    ]
    assert is_aligned(torch.empty(0))


def test_index_scalars_keep_their_dtype():
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[-1], contiguity=True, dtype=DataType.Int)
        fd.add_output(fd.ops.add(x, 1))
    (spec,) = signature(fd.fusion.ir, [torch.zeros(3, dtype=torch.int64)], CPU)
    assert isinstance(spec, TensorSpec)
    assert spec.dtype is DataType.Int
