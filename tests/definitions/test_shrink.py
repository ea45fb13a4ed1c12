"""The loader and the tool that rewrites recorded definitions to smaller sizes."""

from __future__ import annotations

import pytest
import torch

from bench.recorded.definitions import (
    RecordedDefinition,
    ScalarInput,
    TensorInput,
    index_bounds,
    load,
    make_inputs,
    record,
)
from bench.recorded.shrink import shrink

TOY = RecordedDefinition(
    model="nanogpt",
    index=0,
    text="""\
def nvfuser_fusion(fd : FusionDefinition) -> None :
    tv0 = fd.define_tensor(shape=[4, 512, 768], contiguity=[True, True, None], stride_order=[2, 1, 0])
    tv1 = fd.ops.iota(512, 4, 1, dtype=DataType.Int)
    tv2 = fd.ops.reshape(tv0, new_shape=[2048, 768])
    tv3 = fd.ops.permute(tv2, dims=[1, 0])
""",  # noqa: E501
    inputs=(TensorInput((4, 512, 768), (512, 1, 0), torch.float32), ScalarInput(512)),
    calls=1,
)


def test_shrink_rewrites_extents_and_nothing_else():
    small = shrink(TOY, {4: 2, 512: 16, 2048: 32, 1: 7})
    assert "shape=[2, 16, 768]" in small.text
    assert "new_shape=[32, 768]" in small.text
    assert "iota(16, 2, 7, dtype" in small.text  # by position every int is an extent
    assert "dims=[1, 0]" in small.text
    assert "stride_order=[2, 1, 0]" in small.text


def test_shrink_keeps_the_memory_order_and_expanded_dims():
    small = shrink(TOY, {4: 2, 512: 16, 2048: 32})
    tensor, scalar = small.inputs
    assert tensor == TensorInput((2, 16, 768), (16, 1, 0), torch.float32)
    assert scalar == ScalarInput(512)
    assert shrink(TOY, {}).inputs == TOY.inputs


def test_strides_of_a_permuted_input():
    permuted = TensorInput((4, 12, 512, 64), (393216, 64, 768, 1), torch.bfloat16)
    entry = RecordedDefinition("nanogpt", 0, "", (permuted,), 1)
    (small,) = shrink(entry, {512: 16}).inputs
    assert small.stride == (16 * 768, 64, 768, 1)


def test_all_recorded_definitions_are_there():
    counts = {}
    for entry in load():
        counts[entry.model] = counts.get(entry.model, 0) + 1
    assert counts == {"convnet": 7, "hf-bert": 16, "hf-llama3-block": 16, "nanogpt": 16}


@pytest.mark.parametrize("entry", load(), ids=lambda e: e.name)
def test_unchanged_sizes_leave_the_inputs_as_recorded(entry):
    assert shrink(entry, {}).inputs == entry.inputs


@pytest.mark.parametrize("entry", load(), ids=lambda e: e.name)
def test_both_sizes_record_the_same_ops(entry):
    full, small = record(entry).fusion.ir, record(shrink(entry)).fusion.ir
    assert [n.op for n in full.nodes] == [n.op for n in small.nodes]
    assert [o.hidden for o in full.outputs] == [o.hidden for o in small.outputs]
    assert max(_numels(small)) <= max(_numels(full))
    assert max(_numels(small)) <= 600_000


def _numels(fusion):
    return [v.tensor.numel for n in fusion.nodes for v in n.outs if v.is_tensor]


def test_indices_stay_inside_what_they_index():
    entry = next(e for e in load() if e.name == "hf-llama3-block-2")
    fusion = record(entry).fusion.ir
    bounds = index_bounds(fusion)
    by_place = {fusion.inputs.index(value): bound for value, bound in bounds.items()}
    assert by_place == {0: 1024, 1: 1024, 2: 1}  # rows come as 1024 * tv2 + tv0 or tv1
    inputs = make_inputs(entry, fusion)
    assert inputs[2].max() == 0
    assert 900 < inputs[0].max() < 1024


def test_what_a_root_is_taken_of_is_not_negative():
    text = """\
def nvfuser_fusion(fd : FusionDefinition) -> None :
    tv0 = fd.define_tensor(shape=[64], contiguity=[True])
    tv1 = fd.define_tensor(shape=[64], contiguity=[True])
    tv2 = fd.define_tensor(shape=[64], contiguity=[True], dtype=DataType.Int)
    tv3 = fd.ops.rsqrt(fd.ops.add(fd.ops.cast(tv0, dtype=DataType.Float), 0.1))
    tv4 = fd.ops.sqrt(fd.ops.mul(tv1, tv1))
    tv5 = fd.ops.take_along_axis(tv1, tv2, dim=0)
    fd.add_output(fd.ops.add(fd.ops.add(tv3, tv4), tv5))
"""
    floats, ints = (TensorInput((64,), (1,), dtype) for dtype in (torch.float32, torch.int64))
    entry = RecordedDefinition("toy", 0, text, (floats, floats, ints), 1)
    spread, other, index = make_inputs(entry, record(entry).fusion.ir)
    assert spread.min() >= 0
    assert other.min() < 0
    assert 32 < index.max() < 64


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_inputs_look_as_recorded(device):
    for entry in (shrink(e) for e in load()):
        fusion = record(entry).fusion.ir
        for made, item in zip(make_inputs(entry, fusion, device), entry.inputs, strict=True):
            if isinstance(item, TensorInput):
                assert made.shape == item.shape
                assert made.stride() == item.stride
                assert made.dtype == item.dtype
            else:
                assert made == item.value
