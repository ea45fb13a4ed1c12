"""define_tensor in all its forms, define_scalar, define_vector, from_pytorch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tritonfuser import (
    ArgumentError,
    DataType,
    DefinitionError,
    FusionDefinition,
    UnsupportedDeviceError,
    compute_tensor_descriptor,
)
from tritonfuser.cache.calls.diagnosis import explain_mismatch
from tritonfuser.symbolic.extents import symbol


def defined(*args, **kwargs):
    """The line that prints a definition of one tensor."""
    with FusionDefinition() as fd:
        fd.add_output(fd.define_tensor(*args, **kwargs))
    return repr(fd).splitlines()[1].strip()


def line(shape, contiguity, dtype="Float", is_cpu=False, order=""):
    return (
        f"tv0 = fd.define_tensor(shape={shape}, contiguity={contiguity}, "
        f"dtype=DataType.{dtype}, is_cpu={is_cpu}{order})"
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (([-1, -1],), {}, line([-1, -1], [False, False])),
        (([-1, 1, 4], True), {}, line([-1, 1, 4], [True, None, True])),
        ((), {"shape": (2, 3), "contiguity": (True, False)}, line([2, 3], [True, False])),
        ((torch.Size([2, 0]), True, DataType.Half), {}, line([2, 0], [True, True], "Half")),
        (([],), {"is_cpu": True}, line([], [], is_cpu=True)),
        (
            ([2, 3], [True, True]),
            {"stride_order": [0, 1]},
            line([2, 3], [True, True], order=", stride_order=[0, 1]"),
        ),
        (([2, 3], [True, True]), {"stride_order": (-1, -2)}, line([2, 3], [True, True])),
        # the contiguity list is in memory order: dim 0, of size 1, is the fastest here
        (
            ([1, 3], [True, None]),
            {"stride_order": [0, 1]},
            line([1, 3], [True, None], order=", stride_order=[0, 1]"),
        ),
        (
            ([1, 3], True),
            {"stride_order": [0, 1]},
            line([1, 3], [True, None], order=", stride_order=[0, 1]"),
        ),
        (([4, 5], [None, True]), {}, line([4, 5], [None, True])),
        # sizes and strides
        (([2, 1, 4], [4, 4, 1]), {}, line([-1, 1, -1], [True, None, True])),
        (
            (),
            {"sizes": [2, 4], "strides": [1, 2], "static_sizes": True, "dtype": DataType.Int},
            line([2, 4], [True, True], "Int", order=", stride_order=[0, 1]"),
        ),
        (([2, 4], [4, 1], DataType.Double, True), {}, line([2, 4], [True, True], "Double")),
        (([3, 4], [0, 1]), {}, line([-1, -1], [None, True])),
        (([1, 1], [2, 1]), {}, line([1, 1], [None, None])),
        # the first frontend's
        ((3,), {}, line([-1] * 3, [False] * 3)),
        ((2, DataType.Half), {}, line([-1] * 2, [False] * 2, "Half")),
        (
            (),
            {"symbolic_sizes": [-1, 1, -1], "contiguous": [True, True, True]},
            line([-1, 1, -1], [True, None, True]),
        ),
        ((), {"ndims": 1}, line([-1], [False])),
    ],
)
def test_what_each_form_of_a_call_defines(args, kwargs, expected):
    assert defined(*args, **kwargs) == expected


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (([2.0],), {}, "must hold ints, got 2.0"),
        (([2**63],), {}, "beyond int64"),
        (([-(2**63) - 1],), {}, "beyond int64"),
        ((torch.ones(2),), {}, "must be a list or a tuple"),
        (([2], [1, 0.5]), {}, "must hold True, False and None"),
        (([2], "yes"), {}, "contiguity must be a bool or a list"),
        (([2], True, "Float"), {}, "dtype must be a DataType"),
        (([2], True, DataType.Float, 1), {}, "is_cpu must be True or False"),
        (([2],), {"shape": [2]}, "given twice"),
        (([2],), {"layout": 1}, "not an argument of this form"),
        ((), {}, "'shape' is missing"),
        ((), {"sizes": [2]}, "'strides' is missing"),
        (([2], True, DataType.Float, False, [], 1), {}, "6 positional arguments"),
        (([2], [True]), {"stride_order": [0.0]}, "stride_order must hold ints"),
    ],
)
def test_wrong_types(args, kwargs, message):
    with pytest.raises(TypeError, match=r"define_tensor\(\): incompatible function arguments") as e:
        defined(*args, **kwargs)
    assert message in str(e.value)
    assert isinstance(e.value, ArgumentError)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (([-2, 3],), {}, "The value -2 at index 0 was neither symbolic(-1), zero_element(0)"),
        (([2, 3],), {"is_cpu": True}, "CPU non-scalar tensor is not supported!"),
        (([2, 3], [True]), {}, "contiguity has 1 entries"),
        (([2, 1], [True, True]), {}, "contiguity of a broadcast dimension must be None"),
        (([2, 3], True), {"stride_order": [0]}, "stride_order has 1 entries"),
        (([2, 3], True), {"stride_order": [0, 2]}, "out of range"),
        (([2, 3], True), {"stride_order": [0, -3]}, "out of range"),
        (([2, 3], True), {"stride_order": [1, -1]}, "duplicates"),
        (([2, 3], [1]), {}, "2 sizes and 1 strides"),
        (([2, 3], [-1, 1]), {}, "negative strides"),
    ],
)
def test_values_that_describe_no_tensor(args, kwargs, message):
    with pytest.raises(RuntimeError) as e:
        defined(*args, **kwargs)
    assert message in str(e.value)
    assert f"at {__file__}:" in str(e.value)


def test_extents_known_at_run_time_are_symbols_of_their_own():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, 4, -1])
        y = fd.define_tensor([-1])
    shapes = [v.value.tensor.shape for v in (x, y)]
    assert [[str(s) for s in shape] for shape in shapes] == [["i0", "4", "i1"], ["i2"]]
    assert shapes[0][0] == symbol("i0") != shapes[0][2]


def test_an_expanded_dim_has_contiguity_none_and_another_size_than_1():
    with FusionDefinition() as fd:
        dims = fd.define_tensor([4, 1, 0, -1], [None, None, None, None]).value.tensor.dims
    assert [d.expanded for d in dims] == [True, False, False, True]


@given(st.data())
def test_any_layout_described_by_from_pytorch_is_accepted_again(data):
    sizes = data.draw(st.lists(st.integers(0, 4), max_size=4))
    tensor = torch.zeros([2 * s for s in sizes])
    tensor = tensor[tuple(slice(0, 2 * s, data.draw(st.integers(1, 2))) for s in sizes)]
    for dim, size in enumerate(tensor.shape):
        if size and data.draw(st.booleans()):
            tensor = tensor.narrow(dim, 0, 1).expand_as(tensor)
    tensor = tensor.permute(data.draw(st.permutations(range(tensor.dim()))))
    with FusionDefinition() as fd:
        fd.from_pytorch(tensor, static_sizes=data.draw(st.booleans()))
    assert explain_mismatch(fd.fusion.ir, [tensor]) is None


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ([2, 3, 4], [12, 4, 1], ([True, True, True], [2, 1, 0])),
        ([2, 3, 4], [12, 1, 3], ([True, True, True], [2, 0, 1])),
        ([2, 3, 4], [24, 8, 2], ([True, True, False], [2, 1, 0])),
        ([2, 1, 4], [4, 7, 1], ([None, True, True], [1, 2, 0])),
        # a stride of 0 keeps its place
        ([2, 5, 4], [1, 0, 2], ([True, None, True], [0, 1, 2])),
        ([], [], ([], [])),
        # equal strides stay in order
        ([1, 1], [1, 1], ([None, None], [1, 0])),
    ],
)
def test_compute_tensor_descriptor(sizes, strides, expected):
    assert compute_tensor_descriptor(sizes, strides) == expected


def test_compute_tensor_descriptor_takes_what_torch_gives():
    tensor = torch.zeros(2, 3).t()
    assert compute_tensor_descriptor(tensor.shape, tensor.stride()) == ([True, True], [0, 1])


# --- scalars ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "kwargs", "dtype"),
    [
        ((), {}, DataType.Double),
        ((DataType.Int,), {}, DataType.Int),
        ((None,), {"dtype": DataType.Half}, DataType.Half),
        ((), {"value": None, "dtype": DataType.Bool}, DataType.Bool),
        ((), {"dtype": DataType.ComplexFloat}, DataType.ComplexFloat),
    ],
)
def test_a_scalar_without_a_value_is_an_input(args, kwargs, dtype):
    with FusionDefinition() as fd:
        scalar = fd.define_scalar(*args, **kwargs)
    assert scalar.is_symbolic()
    assert not scalar.is_tensor()
    assert scalar.dtype() is dtype
    assert fd.fusion.inputs() == [scalar]


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3.0, None, (3.0, DataType.Double)),
        (3, None, (3, DataType.Int)),
        (True, None, (True, DataType.Bool)),
        (1j, None, (1j, DataType.ComplexDouble)),
        (2.7, DataType.Int, (2, DataType.Int)),
        (3, DataType.Double, (3.0, DataType.Double)),
        (0.1, DataType.Float, (torch.tensor(0.1).item(), DataType.Float)),
        (0.1, DataType.Half, (torch.tensor(0.1).half().item(), DataType.Half)),
        (5, DataType.Bool, (True, DataType.Bool)),
        (2 + 1j, DataType.Int, (2, DataType.Int)),
        (2, DataType.ComplexFloat, (2 + 0j, DataType.ComplexFloat)),
    ],
)
def test_a_scalar_with_a_value_is_a_constant(value, dtype, expected):
    with FusionDefinition() as fd:
        scalar = fd.define_scalar(value) if dtype is None else fd.define_scalar(value, dtype)
    assert not scalar.is_symbolic()
    assert (scalar.value.value, scalar.dtype()) == expected
    assert type(scalar.value.value) is type(expected[0])
    assert fd.fusion.inputs() == []


@pytest.mark.parametrize("args", [("3",), ([1],), (1.0, "Float"), (1.0, float)])
def test_a_scalar_of_a_wrong_type(args):
    with FusionDefinition() as fd:
        with pytest.raises(TypeError, match="define_scalar"):
            fd.define_scalar(*args)
        with pytest.raises(TypeError, match="define_constant"):
            fd.define_constant(None)
        with pytest.raises(DefinitionError, match="Null"):
            fd.define_scalar(None, dtype=DataType.Null)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (float("nan"), DataType.Int),
        (float("inf"), DataType.Int32),
        (complex("nan"), DataType.Int),
        (2.0**63, DataType.Int),
        (10**400, DataType.Int),
        (-1.0, DataType.UInt64),
        (1, DataType.Float4_e2m1fn_x2),
    ],
)
def test_constants_that_their_dtype_does_not_have(value, dtype):
    fd = FusionDefinition()
    with fd, pytest.raises((DefinitionError, ArgumentError), match=f"{dtype}"):
        fd.define_scalar(value, dtype)


def test_scalars_and_tensors_are_inputs_in_order_of_definition():
    with FusionDefinition() as fd:
        first = fd.define_scalar()
        tensor = fd.define_tensor([-1])
        fd.define_scalar(3.0)
        vector = fd.define_vector(2)
    assert fd.fusion.inputs() == [first, tensor, *vector]
    assert [v.dtype() for v in vector] == [DataType.Int] * 2


@pytest.mark.parametrize("size", [-1, 2.0, True, None])
def test_a_vector_has_a_length(size):
    with FusionDefinition() as fd, pytest.raises(TypeError, match="define_vector"):
        fd.define_vector(size)


# --- from_pytorch ----------------------------------------------------------------------------


def test_from_pytorch_keeps_dtype_layout_and_static_sizes():
    with FusionDefinition() as fd:
        fd.from_pytorch(torch.zeros(2, 1, 3, dtype=torch.bfloat16))
        fd.from_pytorch(torch.zeros(2, 3).t(), static_sizes=True)
        fd.from_pytorch(torch.tensor(1.0))
    lines = [text.strip() for text in repr(fd).splitlines()[1:]]
    assert lines == [
        line([-1, 1, -1], [True, None, True], "BFloat16"),
        line([3, 2], [True, True], order=", stride_order=[0, 1]").replace("tv0", "tv1"),
        line([], [], is_cpu=True).replace("tv0", "tv2"),
    ]


def test_from_pytorch_refuses_tensors_on_two_devices():
    with FusionDefinition() as fd:
        fd.from_pytorch(torch.zeros(2, device="meta"))
        fd.from_pytorch(torch.zeros(()))
        with pytest.raises(ValueError, match="Found unsupported device cpu, only scalar CPU") as e:
            fd.from_pytorch(torch.zeros(2))
    assert isinstance(e.value, UnsupportedDeviceError)
    assert len(fd.fusion.inputs()) == 2


def test_from_pytorch_wants_a_tensor_of_a_dtype_there_is():
    with FusionDefinition() as fd:
        with pytest.raises(TypeError, match="expected a tensor"):
            fd.from_pytorch([1.0])
        with pytest.raises(RuntimeError, match=r"no DataType for torch\.int16"):
            fd.from_pytorch(torch.zeros(2, dtype=torch.int16))
