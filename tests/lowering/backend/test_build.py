"""Kernel text to module, to the interpreter, and to machine code."""

from __future__ import annotations

import gc
import inspect
import linecache
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError

from tests.lowering.kernels import (
    HEADER,
    kernel,
    program_numbers,
    scalar,
    spilling,
    tensor,
    vector_add,
)
from tritonfuser import options
from tritonfuser.dtypes import DataType
from tritonfuser.errors import InputError, LoweringError, SourceLoc, UnsupportedDeviceError
from tritonfuser.lowering.backend import compile as compiling
from tritonfuser.lowering.backend import module_loader as modules
from tritonfuser.lowering.backend.kernel_report import amd_widths, ptx_widths, ptxas_facts
from tritonfuser.lowering.build import (
    compile_kernel,
    interpret_kernel,
    load_module,
    report,
    target_of,
)

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")


def aligned(source, value=True):
    return (value,) * len(source.args)


# --- modules -------------------------------------------------------------------------------------


def test_source_is_found_by_inspect():
    source = vector_add()
    found = load_module(source).vector_add
    lines, first = inspect.getsourcelines(found.fn)
    assert first == HEADER.count("\n") + 1
    assert "".join(lines) == source.text[len(HEADER) :]
    assert found.fn.__code__.co_filename.startswith("<tritonfuser kernel vector_add ")


def test_equal_texts_share_a_module_and_others_do_not():
    one, two = load_module(vector_add()), load_module(vector_add())
    other = load_module(vector_add(size=999))
    assert one is two and one is not other
    assert one.__file__ != other.__file__


def test_text_is_forgotten_with_its_module():
    name = load_module(vector_add(size=77)).__file__
    linecache.checkcache()
    assert name in linecache.cache
    gc.collect()
    assert name not in linecache.cache


def test_functions_keep_their_text():
    function = load_module(vector_add(size=78)).vector_add
    gc.collect()
    assert "inside = i < 78" in inspect.getsource(function.fn)


@pytest.mark.parametrize("name", ["", "a b", "x(", "Ünï", "a\nb"])
def test_names_are_ours(name):
    with pytest.raises(LoweringError, match="is no name of a generated kernel"):
        load_module(replace(vector_add(), name=name))


def test_text_that_is_no_python_points_at_the_users_line():
    here = SourceLoc("model.py", 12)
    source = kernel(
        "bad", "@triton.jit\ndef bad(x):\n    a = = 1", [tensor("x")], lines=[(7, here)]
    )
    with pytest.raises(LoweringError, match=r">    7 \|     a = = 1") as caught:
        load_module(source)
    assert caught.value.loc == here


def test_text_without_its_kernel():
    with pytest.raises(LoweringError, match="does not define it"):
        load_module(replace(vector_add(), name="other"))


# --- the interpreter -----------------------------------------------------------------------------

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


def test_lines_of_a_module_that_came_back():
    """A module is collected while another thread loads the same text again."""
    source = vector_add(DataType.Float, 512, 128, name="came_back")
    name = modules.file_name(source)
    first = modules.load_module(source)
    modules._modules.pop(name)  # the first of its weak references
    second = modules.load_module(source)
    del first
    gc.collect()
    assert "".join(linecache.getlines(name)) == source.text
    del second
    gc.collect()
    assert name not in linecache.cache


@pytest.mark.parametrize("is_called", [False, True])
def test_a_parser_that_other_threads_disturb_is_asked_again(is_called, monkeypatch):
    """CPython counts the depth of all threads' parsers together. What fails for a function that the
    kernel calls, Triton raises as an error of the kernel."""
    tries, compile = [], triton.compile

    def disturbed(*given, **named):
        tries.append(given)
        if len(tries) < 3:
            error = SystemError("AST constructor recursion depth mismatch (before=97, after=95)")
            if is_called:
                raise CompilationError("x()", None, None) from error
            raise error
        return compile(*given, **named)

    monkeypatch.setattr(triton, "compile", disturbed)
    one = vector_add(DataType.Float, 420 + is_called, 128, name="disturbed")
    assert "ptx" in compile_kernel(one, "sm_90", aligned(one)).asm and len(tries) == 3

    def fails(*given, **named):
        tries.append(given)
        raise SystemError("something else")

    monkeypatch.setattr(triton, "compile", fails)
    other = vector_add(DataType.Float, 430 + is_called, 128, name="failing")
    with pytest.raises(LoweringError, match="something else"):
        compile_kernel(other, "sm_90", aligned(other))
    assert len(tries) == 4


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


# --- machine code --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_compiles_for_gpus_that_are_not_here(target):
    kernel_ = compile_kernel(vector_add(), target, (True,) * 3)
    kinds = {"amdgcn", "hsaco"} if target == "gfx942" else {"ptx", "cubin"}
    assert set(kernel_.asm) == kinds
    assert kernel_.shared_bytes == 0
    if target != "gfx942":
        assert f".target {target}" in kernel_.asm["ptx"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [DataType.Float, DataType.BFloat16, DataType.Int])
def test_aligned_pointers_are_read_16_bytes_at_a_time(target, dtype):
    source = vector_add(dtype, 4096, 4096)
    wide = report(source, "pointwise", target, (True,) * 3)
    assert (wide.max_load_bytes, wide.max_store_bytes) == (16, 16)
    assert wide.registers > 0 and wide.spill_bytes == 0
    assert wide.name == "vector_add" and wide.scheduler == "pointwise"
    mixed = report(source, "pointwise", target, (True, True, False))
    assert mixed.max_load_bytes == 16 and mixed.max_store_bytes == dtype.info.bytes


def test_unaligned_pointers_are_read_one_element_at_a_time():
    narrow = report(vector_add(DataType.Half), "pointwise", "sm_90", (False,) * 3)
    assert (narrow.max_load_bytes, narrow.max_store_bytes) == (2, 2)


@pytest.mark.parametrize("target", TARGETS)
def test_spills_are_seen(target):
    rows = 16 if target == "gfx942" else 3
    found = report(spilling(rows), "inner_persistent", target, (True,) * 2)
    assert found.spill_bytes > 1000
    assert found.shared_bytes > 0


def test_ptx_accesses():
    ptx = """
        ld.global.nc.L1::evict_last.v2.f64 {%fd1, %fd2}, [%rd1];
        @%p1 ld.global.b8 %rs1, [%rd2];
        ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];
        ld.param.b64 %rd1, [param];
        @!%p2 st.global.L1::evict_first.v8.b32 [ %rd3 + 0 ], {%r1};
    """
    assert ptx_widths(ptx) == (16, 32)
    assert ptx_widths("cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;") == (16, 0)
    assert ptx_widths("ret;") == (0, 0)


def test_amd_accesses():
    text = "\tglobal_load_ushort v1\n\tbuffer_store_dwordx2 v2\n\tglobal_load_dword v3\n"
    assert amd_widths(text) == (4, 8)
    assert amd_widths("\tglobal_load_b128 v1\n\tflat_store_byte v2\n") == (16, 1)


def test_ptxas_log():
    log = "8 bytes stack frame, 12 bytes spill stores, 30 bytes spill loads\nUsed 40 registers"
    assert ptxas_facts(log) == (40, 42)


@pytest.mark.parametrize("arch", ["h200", "sm_", "sm90", "cpu", "", "gfx942; rm", 90, None])
def test_what_is_no_gpu(arch):
    with pytest.raises(UnsupportedDeviceError, match="is no GPU architecture"):
        target_of(arch)


def test_amd_wavefronts():
    assert (target_of("gfx90a").warp_size, target_of("gfx1100").warp_size) == (64, 32)


def test_every_argument_needs_its_alignment():
    with pytest.raises(ValueError, match="3 arguments, but 2 alignments"):
        compile_kernel(vector_add(), "sm_90", (True, True))


def test_error_in_a_helper_points_into_the_helper():
    source = kernel(
        "outer",
        """
        @triton.jit
        def inner(a):
            return a.nothing()

        @triton.jit
        def outer(x):
            tl.store(x, inner(tl.load(x)))
        """,
        [tensor("x")],
        lines=[(11, SourceLoc("model.py", 5))],
    )
    with pytest.raises(LoweringError, match=r">    7 \|     return a.nothing\(\)"):
        compile_kernel(source, "sm_90", (True,))


def test_contraction_is_an_option(monkeypatch):
    source = kernel(
        "muladd",
        """
        @triton.jit
        def muladd(x, out, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            a = tl.load(x + i)
            tl.store(out + i, a * a + a)
        """,
        [tensor("x"), tensor("out")],
        [("BLOCK", 128)],
    )
    fused = compile_kernel(source, "gfx942", (True, True)).asm["amdgcn"]
    monkeypatch.setenv("TRITONFUSER_FMA", "0")
    options.refresh()
    try:
        apart = compile_kernel(source, "gfx942", (True, True)).asm["amdgcn"]
    finally:
        monkeypatch.undo()
        options.refresh()
    assert "fma" in fused and "fma" not in apart


def test_text_is_kept_for_the_user():
    found = modules.excerpt(vector_add(), 8)
    assert found.splitlines()[4].startswith(">    8 |")


def test_threads_that_compile_hash_triton_one_at_a_time(monkeypatch):
    """What Triton keeps, the others find: they do not work it out beside one another."""
    busy, most = [], []

    def hash_triton():
        busy.append(1)
        most.append(len(busy))
        time.sleep(0.01)
        busy.pop()

    monkeypatch.setattr(compiling.triton_cache, "triton_key", hash_triton)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: compiling.hash_triton(), range(4)))
    assert most == [1] * 4
