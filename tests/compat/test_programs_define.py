"""Inputs of programs written for nvFuser: every form, dtype and number that can be given."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.compat.programs import equal, noise, printed, ran, record, run
from tritonfuser.compat.nvfuser_direct import DataType, compute_tensor_descriptor

pytestmark = pytest.mark.usefixtures("cpu_as_cuda")
D = DataType


def column(rows, columns):
    """A matrix that is one column, repeated."""
    return noise(rows, 1).expand(rows, columns)


# --- tensors -----------------------------------------------------------------------------------

FORMS = {
    "shape": (([-1, -1],), {}, noise(3, 4).t()),
    "tuple": (((-1, 4), (True, True)), {}, noise(3, 4)),
    "torch.Size": ((torch.Size([3, 4]), True), {}, noise(3, 4)),
    "all by place": (([-1, -1], True, D.Half, False, [0, 1]), {}, noise(4, 3).half().t()),
    "all by name": (
        (),
        {
            "shape": (-1, 1),
            "contiguity": (True, None),
            "dtype": D.Float,
            "is_cpu": False,
            "stride_order": (1, 0),
        },
        noise(3, 1),
    ),
    "negative stride order": (([-1, -1, -1], True), {"stride_order": [0, -1, 1]}, None),
    "sizes and strides": (([3, 4], [4, 1]), {}, noise(3, 4)),
    "static sizes": (([4, 3], (1, 4), D.Float, True, False), {}, noise(3, 4).t()),
    "0-dim": (([],), {}, torch.tensor(2.0)),
    "0-dim, no strides": ((), {"sizes": [], "strides": []}, torch.tensor(2.0)),
    "0-dim on the CPU": (
        (),
        {"shape": [], "contiguity": [], "dtype": D.Float, "is_cpu": True},
        torch.tensor(2.0),
    ),
    "twelve dims": (([-1] * 12, True), {}, noise(*[2, 1] * 6)),
    "no elements": (([0, -1], True), {}, noise(0, 3)),
    "no elements, None there": (([0, -1], [None, True]), {}, noise(0, 3)),
    "None at a -1 that is 1": (([-1, -1], [None, True]), {}, noise(1, 3)),
    "None at a -1 that is expanded": (([-1, -1], [None, True]), {}, noise(1, 3).expand(5, 3)),
    "None at a static size": (([5, 3], [False, None]), {}, column(5, 3)),
    "size 1 with any stride": (([1, 1], True), {}, noise(1).as_strided((1, 1), (2, 1))),
    "size 1 inside": (([-1, 1, -1], True), {}, noise(12).as_strided((3, 1, 4), (4, 77, 1))),
    "size 1 off its order": (([-1, -1], True), {"stride_order": [0, 1]}, noise(1, 4)),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_define_tensor(form):
    args, kwargs, x = FORMS[form]
    x = noise(5, 6, 7).permute(2, 0, 1) if x is None else x
    (out,) = run(lambda fd: fd.add_output(fd.ops.relu(fd.define_tensor(*args, **kwargs))), [x])
    equal(out, x.relu())


def test_contiguity_is_in_memory_order():
    """Dim 0 is the fastest and dense, dim 1 has gaps: the flags are [False, True]."""
    x = noise(4, 6)[:, :3].t()

    def make(fd, contiguity):
        fd.add_output(fd.ops.neg(fd.define_tensor([-1, -1], contiguity, stride_order=[0, 1])))

    equal(run(lambda fd: make(fd, [False, True]), [x])[0], -x)
    with pytest.raises(RuntimeError, match="Stride mismatch with contiguity info"):
        record(lambda fd: make(fd, [True, False])).execute([x])


@pytest.mark.parametrize(
    ("sizes", "strides", "contiguity", "order"),
    [
        ((2, 1, 3), (3, 3, 1), [True, None, True], [2, 1, 0]),
        ((2, 4, 3), (3, 0, 1), [True, None, True], [2, 1, 0]),
        ((4, 2, 3), (0, 1, 2), [None, True, True], [2, 0, 1]),
        ((3, 2), (1, 3), [True, True], [0, 1]),
        ((2, 3), (0, 0), [None, None], [1, 0]),
        ((2, 3, 4, 5), (60, 1, 15, 3), [True] * 4, [3, 0, 2, 1]),
    ],
)
def test_sizes_and_strides_describe_a_layout(sizes, strides, contiguity, order):
    """What Thunder does with each input: torch.Size and a tuple in, shape and flags out."""
    assert compute_tensor_descriptor(torch.Size(sizes), strides) == (contiguity, order)
    x = noise(400).as_strided(sizes, strides)
    for static in (False, True):

        def make(fd, static=static):
            t = fd.define_tensor(sizes=sizes, strides=strides, static_sizes=static)
            assert [v.is_symbolic() for v in t.shape()] == [n != 1 and not static for n in sizes]
            fd.add_output(fd.ops.neg(t))

        equal(run(make, [x])[0], -x)


def test_a_tensor_has_a_dtype():
    with pytest.raises(RuntimeError, match=r"a tensor cannot be of DataType\.Null"):
        record(lambda fd: fd.define_tensor([2], dtype=D.Null))


# --- scalars -----------------------------------------------------------------------------------

SCALARS = {
    D.Double: 0.1,
    D.Float: 0.1,
    D.Half: 0.1,
    D.BFloat16: 1.0 + 3 * 2**-9,
    D.Int: 2**53 + 1,
    D.Int32: -(2**31),
    D.Bool: True,
    D.UInt64: 2**64 - 1,
    D.ComplexFloat: 1 + 0.1j,
    D.ComplexDouble: 1 + 0.1j,
}


@pytest.mark.parametrize("dtype", SCALARS, ids=lambda d: d.name)
def test_a_scalar_is_rounded_to_its_dtype(dtype):
    """Not cut off: bf16 rounds to the nearest even."""
    value = SCALARS[dtype]

    def make(fd):
        fd.add_output(fd.ops.full([2], fd.define_scalar(dtype), dtype))

    equal(run(make, [value])[0], torch.tensor([value, value], dtype=dtype.info.torch))


@pytest.mark.parametrize("dtype", [D.Half, D.BFloat16])
def test_a_scalar_beyond_the_greatest_is_infinite(dtype):
    """65520 is the first number that is no half any more; a launcher would refuse it."""
    x = torch.zeros(2, dtype=torch.float64)
    value = {D.Half: 65520.0, D.BFloat16: 3.4e38}[dtype]

    def make(fd):
        fd.add_output(fd.ops.add(fd.from_pytorch(x), fd.define_scalar(dtype)))

    equal(run(make, [x, value])[0], torch.full_like(x, torch.inf))


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        (D.Int, [2**63 - 1, -(2**63)], [2**63, -(2**63) - 1, 10**30]),
        (D.Int32, [2**31 - 1, -(2**31)], [2**31, -(2**31) - 1, 2**40]),
        (D.UInt64, [0, 2**64 - 1], [-1, 2**64]),
        (D.Double, [2**63 - 1, 1e300], [2**63, 10**400]),
        (D.BFloat16, [3, 1e30], [-(2**63) - 1]),
    ],
    ids=lambda case: case.name if isinstance(case, DataType) else "",
)
def test_a_number_that_a_scalar_cannot_hold_is_refused_in_every_call(dtype, good, bad):
    kept = D.Double if dtype is D.BFloat16 else dtype
    fd = record(lambda fd: fd.add_output(fd.ops.full([1], fd.define_scalar(dtype), kept)))
    for value in bad + good + bad:
        if value in good:
            rounded = torch.tensor(value, dtype=dtype.info.torch).to(kept.info.torch)
            assert fd.execute([value])[0].item() == rounded.item()
            continue
        with pytest.raises(RuntimeError, match=f"Scalar value {value} is not compatible with the"):
            fd.execute([value])


@pytest.mark.parametrize("dtype", [D.Double, D.Float, D.Half, D.BFloat16, D.Int, D.Int32])
def test_one_scalar_as_a_size_and_as_a_number(dtype):
    x = noise(12)

    def make(fd):
        t, s = fd.from_pytorch(x), fd.define_scalar(dtype)
        fd.add_output(fd.ops.reshape(t, [s, -1]))
        fd.add_output(fd.ops.full([s], s, dtype))
        fd.add_output(fd.ops.add(fd.ops.cast(t, D.Double), fd.ops.add(s, s)))

    exact = dtype in (D.Int, D.Int32)
    for value in (2, 3, True) if exact else (2, 2.0, 2.3, 3.7, True):
        number = torch.tensor(value, dtype=torch.float64).to(dtype.info.torch)
        size = int(number)
        viewed, filled, added = run(make, [x, value])
        assert torch.equal(viewed, x.view(size, -1))
        assert torch.equal(filled, number.expand(size))
        equal(added, x.double() + 2 * number.double(), within=1e-6)


def test_a_constant_of_any_real_dtype_is_a_size():
    x = noise(12)
    for dtype in (D.Int, D.Int32, D.Double, D.Float, D.Half):

        def make(fd, dtype=dtype):
            fd.add_output(fd.ops.reshape(fd.from_pytorch(x), [fd.define_scalar(3, dtype), -1]))

        equal(run(make, [x])[0], x.view(3, 4))
    for wrong in (3.0, float("inf"), 3j):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ran(lambda ops, t, wrong=wrong: ops.reshape(t, [wrong, -1]), x)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        record(lambda fd: fd.ops.reshape(fd.from_pytorch(x), [fd.define_scalar(np.inf), -1]))


def test_scalar_arithmetic_makes_sizes():
    """A reciprocal of an Int is a Float, and still a size; a product of Doubles a pad width."""
    x = noise(8)

    def make(fd):
        ops, i, f, t = fd.ops, fd.define_scalar(D.Int), fd.define_scalar(), fd.from_pytorch(x)
        assert ops.reciprocal(i).dtype() is D.Float
        fd.add_output(ops.reshape(t, [ops.mul(ops.reciprocal(i), 8.0), -1]))
        fd.add_output(ops.pad(t, [ops.cast(ops.mul(f, 2.5), D.Int), 0]))

    for i, f in ((4, 7.0), (2, 1.0), (8, 0.0)):
        viewed, padded = run(make, [i, f, x])
        assert torch.equal(viewed, x.view(8 // i, -1))
        assert torch.equal(padded, torch.nn.functional.pad(x, [int(2.5 * f), 0]))


def test_inputs_come_in_order_and_lists_are_opened():
    x, y = noise(6), noise(2, 3, seed=1)

    def make(fd):
        t, sizes, s = fd.define_tensor([-1], True), fd.define_vector(2), fd.define_scalar()
        fd.add_output(fd.ops.mul(fd.ops.reshape(t, sizes), s))
        fd.add_output(fd.define_tensor([-1, -1], True))

    fd = record(make)
    for inputs in (
        [x, [2, 3], 0.5, y],
        (x, (2, 3), 0.5, y),
        [[x, (2, [3])], [0.5, y]],
        [x, torch.Size([2, 3]), 0.5, y],
        [x, 2, 3, 0.5, y],
    ):
        halved, same = fd.execute(inputs)
        assert torch.equal(halved, x.view(2, 3) * 0.5)
        assert same is y
    assert torch.equal(fd.execute([x, [3, 2], 2.0, y])[0], x.view(3, 2) * 2)
    assert torch.equal(printed(fd).execute([x, [6, 1], 1.0, y])[0], x.view(6, 1))
    with pytest.raises(RuntimeError, match="Expected 5 inputs but got 4"):
        fd.execute([x, [2], 0.5, y])


# --- inputs that do not fit --------------------------------------------------------------------


def test_the_texts_of_refusals_are_nvfusers_before_and_after_a_good_call():
    x = noise(3)

    def make(fd):
        fd.add_output(fd.ops.mul(fd.define_tensor([-1], True), fd.define_scalar()))

    fd = record(make)
    refused = [
        ([2.0, x], "Expected input 0, T0_g_float[iS0{i0}], to be an at::Tensor but got scalar 2"),
        ([x, x], "Expected input 1, d2, to be a scalar but got float tensor of rank 1"),
        (
            [x.half(), 2.0],
            "Expected input 0, T0_g_float[iS0{i0}], to be bound to a tensor of dtype float, "
            "but got a tensor of dtype __half",
        ),
        ([x, 2 + 1j], "Scalar value (2,1) is not compatible with the expected data type: double."),
        ([x], "Expected 2 inputs but got 1"),
        ([x, 1.0, 1.0], "Expected 2 inputs but got 3"),
        ([x, "2"], "to be a scalar but got a value of type str"),
        ([None, 2.0], "to be an at::Tensor but got a value of type NoneType"),
    ]
    for _ in range(2):
        for inputs, text in refused:
            with pytest.raises(RuntimeError) as error:
                fd.execute(inputs)
            assert text in str(error.value)
        assert torch.equal(fd.execute([x, 2.0])[0], 2 * x)


def test_scalars_are_no_outputs():
    for value in (None, 2.0):
        with pytest.raises(TypeError, match="output must be a TensorView, got a scalar"):
            record(lambda fd, value=value: fd.add_output(fd.define_scalar(value)))
