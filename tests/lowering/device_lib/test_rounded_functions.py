"""Reciprocals, roots, shares of sums: no branches in the machine code, the same interpreted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.lowering import sass
from tests.lowering.kernels import kernel, tensor
from tritonfuser.dtypes import DataType
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.lowering.interpreter import language
from tritonfuser.lowering.interpreter.interpret import interpret_kernel
from tritonfuser.lowering.kernel_source import KernelSource

IMPORTED = """
from tritonfuser.lowering.device_lib.functions import (
    div_by_sum,
    div_rounded,
    reciprocal,
    square_root,
)


"""
STEPS, LANES = 1000, 128
CALLS = ["a * reciprocal(b)", "a * square_root(b)", "div_by_sum(a * 0.5, b + 1.0)"]


def sums(call: str) -> KernelSource:
    """Sums of a function of two tensors, by a loop."""
    found = kernel(
        "sums",
        f"""
        @triton.jit
        def sums(x, y, out, LANES: tl.constexpr):
            i = tl.arange(0, LANES)
            total = tl.full([LANES], 0.0, tl.float32)
            for step in range(0, {STEPS}):
                a = tl.load(x + step * LANES + i)
                b = tl.load(y + step * LANES + i)
                total = total + {call}
            tl.store(out + i, total)
        """,
        [
            tensor(name, DataType.Float, place, STEPS * LANES)
            for place, name in enumerate(("x", "y", "out"))
        ],
        [("LANES", LANES)],
    )
    text = found.text.replace("@triton.jit", IMPORTED + "@triton.jit", 1)
    return KernelSource(found.name, text, found.args, found.constants, found.grid, 4, 1, ())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("call", CALLS)
def test_loops_have_no_branches_inside_and_are_unrolled(
    call: str, arch: str, tmp_path: Path
) -> None:
    found = compile_kernel(sums(call), arch, (True,) * 3)
    _, (loop,) = sass.loops(sass.disassembled(found.asm["cubin"], tmp_path))
    # The assembler of sm_80 may leave a loop by a call, and repeat it by a branch.
    assert loop["BRA"] + loop["CALL.REL.NOINC"] <= 2 and not loop["BSSY"]
    loads = sum(count for name, count in loop.items() if name.startswith("LDG"))
    assert loads >= 4


@pytest.mark.covering
@pytest.mark.parametrize("call", [*CALLS[:2], "div_rounded(a, b)"])
@pytest.mark.parametrize("how", ["arrays", "plain"])
def test_interpreted(call: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "plain":
        names = language.namespace(plain=True)
        monkeypatch.setattr(language, "namespace", lambda plain=False: dict(names))
    x, y = torch.rand(STEPS * LANES) + 0.5, torch.rand(STEPS * LANES) + 0.5
    out = torch.empty(LANES)
    interpret_kernel(sums(call))(x, y, out)
    function = {
        "a * reciprocal(b)": x * y.double().reciprocal().float(),
        "a * square_root(b)": x * y.double().sqrt().float(),
        "div_rounded(a, b)": x / y,
    }[call]
    total = torch.zeros(LANES)
    for step in function.reshape(STEPS, LANES):
        total += step
    assert torch.equal(out, total)


def test_compiles_for_amd() -> None:
    found = compile_kernel(sums("a * reciprocal(b) + square_root(b)"), "gfx942", (True,) * 3)
    assert found.asm["hsaco"]
