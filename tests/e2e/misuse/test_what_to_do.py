"""What refusals tell a user to do: of data that is no operand, of dtypes and forms of tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tritonfuser import DataType, FusionDefinition, InputMismatch
from tritonfuser.compat import nvfuser_direct
from tritonfuser.errors import ArgumentError, DefinitionError, UnsupportedDeviceError

QUANTIZED = (lambda: torch.quantize_per_tensor(torch.randn(2, 3), 0.1, 0, torch.quint8), "dequan")
FORMS = {
    "quantized": (*QUANTIZED, "a quantized Tensor of dtype torch.quint8"),
    "sparse": (lambda: torch.eye(3).to_sparse(), "to_dense()", "layout torch.sparse_coo"),
    "nested": (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "to_padded_tensor(0.0)",
        "a nested Tensor",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_without_plain_elements_is_no_example(form):
    make, advice, got = FORMS[form]
    with FusionDefinition() as fd, pytest.raises(DefinitionError) as caught:
        fd.from_pytorch(make())
    assert caught.value.message.startswith("from_pytorch: expected the tensor to be a ")
    assert got in caught.value.message and advice in caught.value.hint
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_without_plain_elements_is_no_input(form):
    make, advice, got = FORMS[form]
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor(shape=[-1, -1], contiguity=True)))
    with pytest.raises(InputMismatch) as caught:
        fd.run([make()])
    assert got in caught.value.message and advice in caught.value.hint


CALLS = {
    "from_pytorch": lambda fd, t: fd.from_pytorch(torch.zeros(3, dtype=torch.uint8)),
    "define_tensor": lambda fd, t: fd.define_tensor(shape=[-1], dtype=torch.uint8),
    "define_scalar": lambda fd, t: fd.define_scalar(dtype=torch.uint8),
    "cast": lambda fd, t: fd.ops.cast(t, torch.uint8),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_torch_dtype_that_no_data_type_stands_for(call):
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1])
        with pytest.raises((ArgumentError, DefinitionError)) as caught:
            CALLS[call](fd, t)
    assert "torch.uint8" in caught.value.message
    assert "there are float64, float32, float16, bfloat16, int64, int32" in caught.value.hint


@pytest.mark.parametrize("data", [torch.ones(3), np.ones(3)], ids=["torch", "numpy"])
def test_data_is_no_operand(data):
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1])
        with pytest.raises(ArgumentError) as caught:
            fd.ops.add(t, data)
    assert "fd.from_pytorch(tensor)" in caught.value.hint
    assert "Signature: add(lhs" in caught.value.hint


def test_a_scale_of_block_formats_is_only_moved():
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1], dtype=DataType.Float8_e8m0fnu)
        with pytest.raises(DefinitionError, match="add: expected a type that kernels compute with"):
            fd.ops.add(t, t)


def test_nvfusers_names_say_how_to_take_cpu_tensors(monkeypatch):
    monkeypatch.delenv("NVF_CPU_AS_CUDA", raising=False)
    with nvfuser_direct.FusionDefinition() as fd, pytest.raises(UnsupportedDeviceError) as caught:
        fd.from_pytorch(torch.randn(3))
    assert "NVF_CPU_AS_CUDA=1" in caught.value.hint


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda t: t[0], "indexing of tv0"),
        (lambda t: t[:, 1:3], "indexing of tv0"),
        (lambda t: list(range(t.size(0))), "an index or a range of "),
        (lambda t: "abc"[t.size(0)], "an index or a range of "),
    ],
)
def test_a_handle_is_no_sequence_and_no_number(use, said):
    with FusionDefinition() as fd:
        t = fd.define_tensor(shape=[-1, -1])
        with pytest.raises(ArgumentError, match=said) as caught:
            use(t)
    assert caught.value.hint and caught.value.loc.file == __file__


def negation():
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor(shape=[-1, -1], contiguity=True)))
    return fd


SWAPPED = {
    "an architecture behind the inputs": (
        lambda fd, x: fd.compile_for([x], "sm_90"),
        "arch must name a GPU, such as 'sm_90', got list",
        "compile_for('sm_90', [x])",
    ),
    "the inputs of one earlier run": (
        lambda fd, x: fd.kernels([x], varying=[x]),
        "varying must be a list of the inputs of runs, each a list or a tuple, got one of Tensor",
        "varying=[[x]]",
    ),
}


@pytest.mark.parametrize("call", SWAPPED)
def test_arguments_that_are_mixed_up(call):
    ask, message, advice = SWAPPED[call]
    with pytest.raises(ArgumentError) as caught:
        ask(negation(), torch.ones(2, 3))
    assert caught.value.message == message and advice in caught.value.hint


WRONG = {
    "a tensor for a list": (lambda ops, t: ops.cat(t), "of type TensorView"),
    "a scalar for a tensor": (lambda ops, t: ops.sum(t.size(0), [0]), "of type Val"),
    "beyond int64": (
        lambda ops, t: ops.slice(t, [0, 0], [10**20, 1]),
        "One of them is an int of 67 bits, beyond int64.",
    ),
    "dims from both ends": (lambda ops, t: ops.sum(t, [0, -2]), "got [0, -2]"),
}


@pytest.mark.parametrize("call", WRONG)
def test_arguments_are_shown_as_they_were_given(call):
    ask, shown = WRONG[call]
    with FusionDefinition() as fd, pytest.raises((ArgumentError, DefinitionError)) as caught:
        ask(fd.ops, fd.define_tensor(shape=[-1, -1], contiguity=True))
    assert shown in str(caught.value)
