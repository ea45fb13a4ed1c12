"""Kernels run by the interpreter, alone and while other threads compile."""

from __future__ import annotations

import threading

import pytest
import torch
import triton
import triton.language as tl

from tests.lowering.kernels import (
    TARGETS,
    aligned,
    kernel,
    program_numbers,
    scalar,
    tensor,
    vector_add,
)
from tritonfuser.dtypes import DataType
from tritonfuser.errors import InputError, LoweringError, SourceLoc
from tritonfuser.lowering.build import (
    compile_kernel,
    interpret_kernel,
)

NUMBERS = (
    DataType.Double,
    DataType.Float,
    DataType.Half,
    DataType.BFloat16,
    DataType.Int,
    DataType.Int32,
)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("size", [1, 1000, 2048])
def test_interpreted_sum(dtype, size):
    torch.manual_seed(0)
    x = (torch.randn(size) * 100).to(dtype.info.torch)
    y = (torch.randn(size) * 100).to(dtype.info.torch)
    out = torch.zeros_like(x)
    interpret_kernel(vector_add(dtype, size, 512))(x, y, out)
    assert torch.equal(out, x + y)


def test_int64_beyond_int32():
    x = torch.tensor([2**40, -(2**50)])
    out = torch.zeros_like(x)
    interpret_kernel(vector_add(DataType.Int, 2, 2))(x, x, out)
    assert out.tolist() == [2**41, -(2**51)]


def test_bool_tensors():
    source = kernel(
        "both",
        """
        @triton.jit
        def both(x, y, out, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(out + i, tl.load(x + i) & tl.load(y + i))
        """,
        [tensor(name, DataType.Bool) for name in ("x", "y", "out")],
        [("BLOCK", 4)],
    )
    x, y = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    out = torch.zeros(4, dtype=torch.bool)
    interpret_kernel(source)(x, y, out)
    assert torch.equal(out, x & y)
    for target in TARGETS:
        compile_kernel(source, target, aligned(source))


def test_specials_in_bfloat16():
    special = [float("nan"), float("inf"), float("-inf"), -0.0, 3e38, 1e-40]
    x = torch.tensor(special).to(torch.bfloat16)
    out = torch.zeros_like(x)
    zero = torch.full_like(x, -0.0)
    interpret_kernel(vector_add(DataType.BFloat16, 6, 8))(x, zero, out)
    assert out[0].isnan()
    assert torch.equal(out.view(torch.int16)[1:], (x + zero).view(torch.int16)[1:])


def test_misaligned_view_and_strides():
    base = torch.arange(40.0)
    x, y = base[3:13], base[21:31]
    store = torch.zeros(20)
    interpret_kernel(vector_add(size=10, block=16))(x, y, store[5:15])
    assert torch.equal(store[5:15], x + y)
    assert store[:5].eq(0).all() and store[15:].eq(0).all()


def test_no_elements():
    empty = torch.zeros(0)
    interpret_kernel(vector_add(size=0, block=16))(empty, empty, empty)


def test_result_shares_memory_with_an_input():
    x = torch.arange(8.0)
    interpret_kernel(vector_add(size=8, block=8))(x, x, x)
    assert torch.equal(x, torch.arange(8.0) * 2)


SCALARS = [
    (DataType.Int, 5, torch.int64),
    (DataType.Int, 2**40, torch.int64),
    (DataType.Index, 7, torch.int64),
    (DataType.Int32, -5, torch.int32),
    (DataType.UInt64, 2**63 + 1, torch.uint64),
    (DataType.Double, 0.1, torch.float64),
    (DataType.Double, 3, torch.float64),
    (DataType.Float, 0.1, torch.float32),
    (DataType.Half, 0.1, torch.float16),
    (DataType.BFloat16, 0.1, torch.bfloat16),
    (DataType.Bool, True, torch.bool),
]


def store_scalar(dtype):
    return kernel(
        "store_scalar",
        """
        @triton.jit
        def store_scalar(s, out, wanted: tl.constexpr):
            tl.static_assert(s.dtype.primitive_bitwidth == wanted)
            tl.store(out, s)
        """,
        [scalar("s", dtype), tensor("out", dtype)],
        [("wanted", 1 if dtype is DataType.Bool else dtype.info.bits)],
    )


@pytest.mark.parametrize(("dtype", "value", "torch_dtype"), SCALARS)
def test_scalars_have_their_declared_type(dtype, value, torch_dtype):
    out = torch.zeros((), dtype=torch_dtype)
    interpret_kernel(store_scalar(dtype))(value, out)
    assert torch.equal(out, torch.tensor(value, dtype=torch_dtype))
    for target in ("sm_90", "gfx942"):
        compile_kernel(store_scalar(dtype), target, (False, True))


def test_products_of_scalars_do_not_overflow():
    source = kernel(
        "product",
        "@triton.jit\ndef product(a, b, out):\n    tl.store(out, a * b)",
        [scalar("a", DataType.Int), scalar("b", DataType.Int, 1), tensor("out", DataType.Int)],
    )
    out = torch.zeros((), dtype=torch.int64)
    interpret_kernel(source)(10**6, 10**6, out)
    assert out.item() == 10**12


def test_grid_of_three_axes():
    out = torch.full((2, 3, 4), -1, dtype=torch.int32)
    interpret_kernel(program_numbers())(out)
    assert out.flatten().tolist() == [
        x * 100 + y * 10 + z for x in range(2) for y in range(3) for z in range(4)
    ]


def test_kernels_may_call_jit_functions():
    source = kernel(
        "helped",
        """
        @triton.jit
        def larger(a, b):
            both = tl.maximum(a, b)
            return both

        @triton.jit
        def twice(a):
            zero = tl.zeros_like(a)
            return a + a + zero

        @triton.jit
        def helped(x, out, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            a = twice(tl.load(x + i))
            tl.store(out, tl.sum(a, 0))
            tl.store(out + 1, tl.reduce(a, 0, larger))
            tl.store(out + 2, tl.max(tl.flip(a, 0), 0))
        """,
        [tensor("x"), tensor("out")],
        [("BLOCK", 8)],
    )
    out = torch.zeros(3)
    interpret_kernel(source)(torch.arange(8.0), out)
    assert out.tolist() == [56.0, 14.0, 14.0]
    compile_kernel(source, "sm_90", aligned(source))


def test_interpreter_leaves_triton_as_it_was():
    before = {name: getattr(tl, name) for name in ("load", "sum", "reduce", "program_id")}
    call = triton.JITFunction.__call__
    x = torch.ones(8)
    interpret_kernel(vector_add(size=8, block=8))(x, x, x)
    assert {name: getattr(tl, name) for name in before} == before
    assert triton.JITFunction.__call__ is call
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        tl.sum(x, 0)


def test_wrong_tensors_are_refused():
    run = interpret_kernel(vector_add(size=8, block=8))
    x = torch.ones(8)
    with pytest.raises(InputError, match=r"argument y: expected a CPU tensor of torch.float32"):
        run(x, x.double(), x)
    with pytest.raises(InputError, match=r"argument out: .* on meta"):
        run(x, x, x.to("meta"))


def test_failure_while_interpreted_points_at_the_users_line():
    here = SourceLoc("model.py", 34)
    source = kernel(
        "wrong",
        """
        @triton.jit
        def wrong(x):
            i = tl.arange(0, 4)
            j = tl.arange(0, 8)
            k = i + j
            tl.store(x + k, 1.0)
        """,
        [tensor("x")],
        lines=[(8, SourceLoc("model.py", 33)), (9, here)],
    )
    with pytest.raises(LoweringError, match=r">    9 \|     k = i \+ j") as caught:
        interpret_kernel(source)(torch.zeros(8))
    assert caught.value.loc == here
    with pytest.raises(LoweringError, match=r">    9 \|     k = i \+ j") as caught:
        compile_kernel(source, "sm_90", (True,))
    assert caught.value.loc == here
    x = torch.ones(8)
    interpret_kernel(vector_add(size=8, block=8))(x, x, x)


def test_threads_interpret_and_compile_at_once():
    source = vector_add(DataType.Float, 256, 128, name="threaded")
    failures = []

    def interpret(number):
        run = interpret_kernel(source)
        for _ in range(3):
            x, out = torch.full((256,), float(number)), torch.zeros(256)
            run(x, x, out)
            if not out.eq(2.0 * number).all():
                failures.append(number)

    def compile_one(number):
        one = vector_add(DataType.Float, 300 + number, 128, name=f"compiled{number}")
        if "ptx" not in compile_kernel(one, "sm_90", aligned(one)).asm:
            failures.append(number)

    def guarded(work, number):
        try:
            work(number)
        except Exception as error:
            failures.append(error)

    threads = [
        threading.Thread(target=guarded, args=(work, number))
        for number in range(4)
        for work in (interpret, compile_one)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
