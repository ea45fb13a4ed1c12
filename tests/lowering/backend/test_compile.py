"""Kernels compiled to machine code for GPUs that need not be here, and what is read of it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import triton
from triton.compiler.errors import CompilationError

from tests.lowering.kernels import (
    TARGETS,
    aligned,
    kernel,
    spilling,
    tensor,
    vector_add,
)
from tritonfuser import options
from tritonfuser.dtypes import DataType
from tritonfuser.errors import LoweringError, SourceLoc, UnsupportedDeviceError
from tritonfuser.lowering.backend import compile as compiling
from tritonfuser.lowering.backend import module_loader as modules
from tritonfuser.lowering.backend.kernel_report import amd_widths, ptx_widths, ptxas_facts
from tritonfuser.lowering.build import (
    compile_kernel,
    report,
    target_of,
)


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
