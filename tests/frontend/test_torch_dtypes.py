"""A torch dtype is taken wherever a DataType is expected."""

from __future__ import annotations

import pytest
import torch

from tritonfuser import ArgumentError, DataType, FusionDefinition, define_scalar, define_tensor
from tritonfuser.dtypes import data_type
from tritonfuser.frontend.run.fusion import Fusion, FusionGuard
from tritonfuser.ops.parameters import Kind
from tritonfuser.ops.registry import OPS


def test_what_defines_inputs_takes_it():
    with FusionDefinition() as fd:
        made = [
            fd.define_tensor([-1], dtype=torch.float16),
            fd.define_tensor([-1], True, torch.float16),
            fd.define_tensor([4], [1], torch.float16),
            fd.define_tensor(sizes=[4], strides=[1], dtype=torch.float16),
            fd.define_tensor(1, torch.float16),
            fd.define_tensor(symbolic_sizes=[-1], contiguous=[True], dtype=torch.float16),
            fd.define_scalar(torch.float16),
            fd.define_scalar(1.0, torch.float16),
            fd.define_scalar(dtype=torch.float16),
        ]
    assert {value.dtype() for value in made} == {DataType.Half}
    with FusionGuard(Fusion()):
        assert define_tensor([-1], dtype=torch.int64).dtype() is DataType.Int
        assert define_scalar(dtype=torch.bool).dtype() is DataType.Bool


def test_ops_take_it_by_name_and_by_place():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 4], contiguity=True)
        made = [
            fd.ops.cast(x, torch.float64),
            fd.ops.cast(x, dtype=torch.float64),
            fd.ops.sum(x, [0], dtype=torch.float64),
            fd.ops.sum(x, torch.float64),
            fd.ops.full([2], 1.0, torch.float64),
            fd.ops.iota(3, 0.0, 1.0, torch.float64),
            fd.ops.uniform(0.0, 1.0, [2], dtype=torch.float64),
            fd.ops.normal(0.0, 1.0, [2], dtype=torch.float64),
        ]
    assert {value.dtype() for value in made} == {DataType.Double}
    assert "dtype=DataType.Double" in str(fd.fusion)


def test_every_op_with_a_dtype_says_so():
    with_dtype = [op for op in OPS.values() if any(p.kind is Kind.DTYPE for p in op.params)]
    assert len(with_dtype) > 10
    for op in with_dtype:
        assert "DataType | torch.dtype" in getattr(FusionDefinition.Operators, op.name).__doc__


def test_a_dtype_that_has_no_datatype_is_refused():
    assert data_type(torch.int8) is None and data_type("float") is None
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1])
        for call in (
            lambda: fd.ops.cast(x, torch.int8),
            lambda: fd.define_tensor([-1], dtype=torch.quint8),
            lambda: fd.define_scalar(dtype=torch.int8),
            lambda: fd.define_scalar(1.0, "float"),
            lambda: fd.define_constant(torch.float32),
        ):
            with pytest.raises(ArgumentError, match=r"torch\.|'float'"):
                call()
