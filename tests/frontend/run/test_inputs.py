"""What runs take as inputs, what they refuse, and which line an error names."""

from __future__ import annotations

import enum
import inspect

import numpy as np
import pytest
import torch

from tests.frontend.run import definitions
from tests.frontend.run.definitions import simple
from tritonfuser import (
    DataType,
    DefinitionError,
    FusionDefinition,
    InputError,
    InputShapeError,
)


@pytest.fixture
def x():
    return torch.randn(3, 5)


def test_inputs_are_lists_or_tuples_flattened(x):
    fd = simple()
    expected = (x + 2.0).relu()
    for inputs in ([x, 2.0], (x, 2.0), [[x], [[2.0]]], ([x, 2.0],), [x, (2.0,)]):
        (out,) = fd.run(inputs)
        assert torch.equal(out, expected)
    assert torch.equal(fd.run([[[x]], 2.0])[0], expected)


def test_a_vector_is_fed_by_a_list():
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.reshape(x, fd.define_vector(3)))
    x = torch.randn(4, 6)
    assert fd.run([x, [2, 3, 4]])[0].shape == (2, 3, 4)
    assert fd.run([x, (4, 3, 2)])[0].shape == (4, 3, 2)
    assert torch.equal(fd.run([x, 6, 2, 2])[0], x.reshape(6, 2, 2))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (lambda x: [x], "Expected 2 inputs but got 1"),
        (lambda x: [x, 1.0, 2.0], "Expected 2 inputs but got 3"),
        (
            lambda x: [2, 1.0],
            "Expected input 0, tv0, to be an at::Tensor but got scalar 2",
        ),
        (lambda x: [2.0, 1.0], "to be an at::Tensor but got scalar 2"),
        (lambda x: ["x", 1.0], "to be an at::Tensor but got a value of type str"),
        (
            lambda x: [x, torch.ones(3)],
            "Expected input 1, c0, to be a scalar but got float tensor of rank 1",
        ),
        (lambda x: [x, None], "Expected input 1, c0, to be a scalar but got a value of type"),
        (
            lambda x: [x.half(), 1.0],
            "to be bound to a tensor of dtype float, but got a tensor of dtype __half",
        ),
        (lambda x: [x[0], 1.0], "to be bound to a tensor of rank 2, but got a tensor of rank 1"),
        (
            lambda x: [x.t(), 1.0],
            "Stride mismatch with contiguity info in dim 1: expected stride 1, but found 5",
        ),
        (
            lambda x: [x, 2 + 1j],
            "Scalar value (2,1) is not compatible with the expected data type: double.",
        ),
    ],
)
@pytest.mark.parametrize("way", ["run", "run_again", "run_kernel", "heuristics", "kernels"])
def test_inputs_that_do_not_fit(x, inputs, message, way):
    fd = simple()
    if way == "run_again":
        fd.run([x, 0.0])
    method = fd.run if way == "run_again" else getattr(fd, way)
    with pytest.raises(RuntimeError) as error:
        method(inputs(x))
    assert message in str(error.value)
    assert isinstance(error.value, InputError)
    if "inputs but got" not in message:
        assert f"at {definitions.__file__}:" in str(error.value)
    # nothing is half done
    good = fd.run_kernel if way == "run_kernel" else fd.run
    assert torch.equal(good([x, 0.0])[0], x.relu())


def test_a_refused_input_names_the_line_that_defined_it(x):
    first = inspect.getsourcelines(simple)[1]
    with pytest.raises(InputError) as error:
        simple().run([x.double(), 1.0])
    assert f"at {definitions.__file__}:{first + 3}" in str(error.value)
    assert "fd.define_tensor([-1, -1]" in str(error.value)


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        (DataType.Double, [1.5, 2, True], [1j]),
        (DataType.Int, [2, True], [1.5, 1j, 2**63]),
        (DataType.Bool, [True], [2, 1.5]),
        (DataType.ComplexDouble, [1j, 1.5, 2, True], ["1"]),
    ],
)
def test_scalars_take_numbers_of_their_category_and_below(dtype, good, bad):
    def ones():
        with FusionDefinition() as fd:
            fd.define_scalar(dtype)
            fd.add_output(fd.ops.full([2], 1.0, DataType.Float))
        return fd

    for value in good:
        assert torch.equal(ones().run([value])[0], torch.ones(2))
    for value in bad:
        with pytest.raises(RuntimeError):
            ones().run([value])


@pytest.mark.parametrize(
    "number",
    [np.int64(2), np.uint8(2), np.bool_(True), np.float16(1.5), np.float32(1.5), np.float64(1.5)],
    ids=lambda number: type(number).__name__,
)
def test_numbers_of_numpy_are_numbers(number, x):
    for way in ("run", "plan", "validate", "run_kernel"):
        fd = simple()
        found = getattr(fd, way)([x, number])
        found = found([x, number]) if way == "plan" else found
        assert torch.equal(found[0], (x + number.item()).relu())


class Level(enum.IntEnum):
    """Ints of a class derived from int, which Python looks for one by one in a range."""

    TWO = 2
    HUGE = 2**63


@pytest.mark.parametrize("dtype", [DataType.Int, DataType.Int32, DataType.UInt64, DataType.Double])
def test_a_member_of_an_enumeration_is_a_number(dtype):
    with FusionDefinition() as fd:
        x, n = fd.define_tensor([-1]), fd.define_scalar(dtype)
        fd.add_output(fd.ops.mul(x, n))
    ones = torch.ones(3)
    for given in (Level.TWO, 2, Level.TWO):
        assert torch.equal(fd.run([ones, given])[0], torch.full((3,), 2.0))
        assert torch.equal(fd.plan([ones, given])([ones, given])[0], torch.full((3,), 2.0))
    assert fd.repro_script_for([ones, Level.TWO]) == fd.repro_script_for([ones, 2])
    if dtype in (DataType.Int, DataType.Int32):
        with pytest.raises(InputError, match="is not compatible with the expected data type"):
            fd.run([ones, Level.HUGE])


def test_a_member_of_an_enumeration_is_a_size():
    with FusionDefinition() as fd:
        n = fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.full([n, Level.TWO], Level.TWO, DataType.Float))
    for size in (3, Level.TWO, 4, 5, Level.TWO):
        assert torch.equal(fd.run([size])[0], torch.full((size, 2), 2.0))


def test_an_integer_of_numpy_is_a_size():
    with FusionDefinition() as fd:
        n = fd.define_scalar(DataType.Int)
        fd.add_output(fd.ops.full([n, fd.define_scalar(DataType.Int)], 1.0, DataType.Float))
    for size in (3, np.int64(3), np.int32(4), 4):
        assert fd.run([[size, np.int64(2)]])[0].shape == (size, 2)
    with pytest.raises(InputError, match="is not compatible with the expected data type: int64_t"):
        fd.run([np.float32(3), 2])


def test_inputs_must_be_a_list(x):
    for inputs in (None, x, 3):
        with pytest.raises(TypeError, match="inputs must be a list or a tuple"):
            simple().run(inputs)


def test_static_sizes_are_checked(x):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([3, 5])))
    assert torch.equal(fd.run([x])[0], -x)
    with pytest.raises(RuntimeError, match=r"to have size 5 in dim 1, but got .* \[3, 4\]"):
        fd.run([x[:, :4]])


@pytest.mark.parametrize(
    ("contiguity", "tensor", "accepted"),
    [
        ([True, True], torch.ones(4, 6), True),
        ([True, True], torch.ones(6, 4).t(), False),
        ([False, True], torch.ones(4, 8)[:, :6], True),
        ([True, True], torch.ones(4, 8)[:, :6], False),
        ([True, True], torch.ones(2, 1).as_strided((1, 1), (2, 1)), True),
        ([True, True], torch.ones(4, 6).as_strided((4, 1), (1, 99)), True),
        ([True, True], torch.ones(0, 6).as_strided((0, 6), (3, 7)), True),
        ([None, True], torch.ones(1, 6).expand(4, 6), True),
        ([None, True], torch.ones(1, 6), True),
        ([None, True], torch.ones(0, 6), True),
        ([None, True], torch.ones(4, 6), False),
        ([True, True], torch.ones(1, 6).expand(4, 6), False),
        ([False, False], torch.ones(6, 4).t(), True),
        ([False, False], torch.ones(1, 6).expand(4, 6), True),
    ],
)
def test_strides_are_what_contiguity_promised(contiguity, tensor, accepted):
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.neg(fd.define_tensor([-1, -1], contiguity)))
    if accepted:
        assert torch.equal(fd.run([tensor])[0], -tensor)
    else:
        with pytest.raises(InputError, match="dim"):
            fd.run([tensor])


@pytest.mark.parametrize(
    "way", ["run", "run_kernel", "plan", "heuristics", "kernels", "segments", "explain", "audit"]
)
def test_sizes_that_an_op_does_not_take_are_an_error_of_the_inputs(way):
    with FusionDefinition() as fd:
        a, b = fd.define_tensor([-1, -1]), fd.define_tensor([-1, -1])
        fd.add_output(fd.ops.add(a, b))
    with pytest.raises(InputShapeError, match="add: the shapes of the operands do not") as error:
        getattr(fd, way)([torch.ones(3, 4), torch.ones(3, 5)])
    # As run() says, and as the same error of static sizes is.
    assert isinstance(error.value, InputError) and isinstance(error.value, DefinitionError)
    assert error.value.loc is not None and error.value.loc.file == __file__
    with FusionDefinition() as fd:
        a, b = fd.define_tensor([-1]), fd.define_tensor([-1])
        fd.add_output(fd.ops.neg(a), b)
    with pytest.raises(InputShapeError, match="cannot be written into"):
        getattr(fd, way)([torch.ones(3), torch.ones(4)])


def test_sizes_of_a_run_that_no_memory_holds_are_an_error_of_the_op():
    with FusionDefinition() as fd:
        n = fd.define_scalar(None, dtype=DataType.Int)
        fd.add_output(fd.ops.full([n], 1.0, DataType.Float))
    for size in (2**62, 2**63 - 1):
        with pytest.raises(InputShapeError, match="full: expected a result of less than") as error:
            fd.run([size])
        assert f"at {__file__}:" in str(error.value)
    assert fd.run([3])[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("way", ["run", "plan"])
def test_errors_of_later_calls_name_the_callers_line(way, x):
    """The function of a plan lies between them: it is no line of the user's."""
    fd = simple()
    call = fd.run if way == "run" else fd.plan([x, 2.0])
    for _ in range(3):
        call([x, 2.0])
    with pytest.raises(InputError, match="Expected 2 inputs but got 1") as error:
        call([x])
    assert f"at {__file__}:" in str(error.value)


def test_an_error_of_a_run_names_what_the_line_calls():
    """``broadcast_in_dim`` is recorded as two ops; that one of them refused is said behind it."""
    with FusionDefinition() as fd:
        t = fd.define_tensor([-1, -1], contiguity=True)
        fd.add_output(fd.ops.broadcast_in_dim(t, [3, 5, 8], [1, 2]))
    with pytest.raises(InputShapeError, match=r"^broadcast_in_dim: expand: expected") as error:
        fd.run([torch.ones(4, 8)])
    assert f"at {__file__}:" in str(error.value)
