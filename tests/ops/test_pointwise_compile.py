"""The pointwise rows as real GPU code, for four GPUs, without one: they compile, and how."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import pytest

from tests.ops.pointwise_harness import BY_NAME, cases, kernel, row_text, typing_of
from tritonfuser.dtypes import DataType
from tritonfuser.lowering.backend.compile import CompiledKernel, compile_kernel
from tritonfuser.lowering.kernel_source import KernelSource

D = DataType
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
COMPUTED = (D.Double, D.Float, D.Int, D.Int32, D.Bool)
_SIZE = 128


def compiled(source: KernelSource, target: str) -> CompiledKernel:
    return compile_kernel(source, target, (True,) * len(source.args))


@cache
def all_rows(dtype: DataType) -> KernelSource:
    """One kernel that applies every row that takes ``dtype`` and stores each result."""
    lines: list[str] = []
    outputs: list[DataType] = []
    names = [name for name, taken in cases() if taken is dtype and name != "cast"]
    for name in names:
        typing = typing_of(BY_NAME[name], dtype)
        assert typing is not None
        prefixes = {D.Bool: "b", dtype: "x"} if dtype is not D.Bool else {D.Bool: "x"}
        used = [f"{prefixes.get(want, 'f')}{i}" for i, want in enumerate(typing.operands)]
        text = row_text(BY_NAME[name], typing, used)
        lines.append(f"r{len(outputs)} = {text}")
        outputs.append(typing.result)
    casts = [f"b{i} = x{i} != 0\nf{i} = x{i}.to(tl.float32)" for i in range(4)]
    lines = [part for text in casts for part in text.split("\n")] + lines
    return kernel(lines, [dtype] * 4, outputs, _SIZE)


@pytest.mark.parametrize(("dtype", "target"), list(product(COMPUTED, TARGETS)))
def test_every_row_compiles(dtype: DataType, target: str) -> None:
    assert compiled(all_rows(dtype), target).asm


def one(name: str, dtype: DataType) -> str:
    """The PTX of a kernel of one row."""
    typing = typing_of(BY_NAME[name], dtype)
    assert typing is not None
    count = len(typing.operands)
    text = row_text(BY_NAME[name], typing, [f"x{i}" for i in range(count)])
    source = kernel([f"r0 = {text}"], [dtype] * count, [typing.result], _SIZE)
    return str(compiled(source, "sm_90").asm["ptx"])


@pytest.mark.parametrize(
    ("name", "dtype", "instruction"),
    [
        ("maximum", D.Float, "max.NaN.f32"),
        ("minimum", D.Float, "min.NaN.f32"),
        ("relu", D.Float, "max.NaN.f32"),
        ("clamp", D.Float, "max.NaN.f32"),
        ("div", D.Float, "div.rn.f32"),
        ("div", D.Double, "div.rn.f64"),
        ("truediv", D.Float, "div.rn.f32"),
        ("reciprocal", D.Float, "fma.rn.f32"),  # of rcp.approx: tests/gpu/test_rounded.py
        ("reciprocal", D.Double, "div.rn.f64|rcp.rn.f64"),
        ("sqrt", D.Float, "fma.rn.f32"),  # of rsqrt.approx
        ("sqrt", D.Double, "sqrt.rn.f64"),
        ("round", D.Float, "cvt.rni.f32.f32"),
    ],
)
def test_exact_instructions(name: str, dtype: DataType, instruction: str) -> None:
    assert re.search(instruction, one(name, dtype))


def floating_instructions(ptx: str) -> list[str]:
    """What a GPU spends on the numbers: constants, addresses and operand signs left out."""
    return re.findall(r"^\s+((?!mov|ld|st|neg|abs)[a-z0-9]+\.\S*f32)", ptx, re.M)


@pytest.mark.parametrize(
    ("name", "most"), [("exp", 8), ("sigmoid", 10), ("silu", 10), ("tanh", 17)]
)
def test_hot_functions_are_short(name: str, most: int) -> None:
    """A memory-bound kernel of bf16 has about 28 instructions an element on an H100."""
    ptx = one(name, D.Float)
    assert len(floating_instructions(ptx)) <= most, floating_instructions(ptx)
    assert "ex2.approx" in ptx
    assert not re.search(r"^\s+(@\S+\s+)?bra\b", ptx, re.M)
