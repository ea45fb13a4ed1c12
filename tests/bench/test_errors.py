"""Errors of results, and minimum bytes."""

from __future__ import annotations

import pytest
import torch

from bench.measure.errors import max_error
from bench.measure.ideal_bytes import minimum_bytes, tensor_bytes
from tritonfuser import DataType, FusionDefinition

NAN = float("nan")
INF = float("inf")


def error(actual, expected, dtype=torch.float32):
    return max_error([torch.tensor(actual, dtype=dtype)], [torch.tensor(expected)])


def test_floats_relative_to_the_largest():
    assert error([1.0, 10.0], [1.5, 10.0]) == pytest.approx(0.05)
    assert error([0.0, 0.0], [0.0, 0.0]) == 0.0


def test_nan_and_inf_have_to_stand_in_the_same_places():
    assert error([NAN, INF, 1.0], [NAN, INF, 1.0]) == 0.0
    assert error([1.0, 1.0], [NAN, 1.0]) == INF
    assert error([NAN, 1.0], [1.0, 1.0]) == INF
    assert error([-INF, 1.0], [INF, 1.0]) == INF


def test_integers_by_the_share_that_differs():
    assert error([1, 2, 3, 4], [1, 2, 3, 5], torch.int64) == 0.25
    assert error([True, False], [True, False], torch.bool) == 0.0


def test_other_counts_and_shapes_are_refused():
    with pytest.raises(ValueError, match="1 outputs, 0 expected"):
        max_error([torch.ones(1)], [])
    with pytest.raises(ValueError, match="shape"):
        max_error([torch.ones(1)], [torch.ones(1, 1)])


def test_bytes_count_expanded_dims_once():
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[8, 64], contiguity=[None, True], dtype=DataType.BFloat16)
        u = fd.ops.cast(t, dtype=DataType.Float)
        fd.add_output(u)
    fusion = fd.fusion.ir
    assert tensor_bytes(fusion.inputs[0]) == 64 * 2
    assert minimum_bytes(fusion) == 64 * 2 + tensor_bytes(fusion.outputs[0].value)
