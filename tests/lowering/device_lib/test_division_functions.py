"""Division by the inverse of a number: exact for all numbers that positions can be."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
import torch

from tests.lowering.kernels import kernel, scalar, tensor
from tritonfuser.dtypes import DataType
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.lowering.device_lib.division_functions import LEAST_DIVISOR, inverse_of
from tritonfuser.lowering.interpreter import language
from tritonfuser.lowering.interpreter.interpret import interpret_kernel

D = DataType
LANES = 16
TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")


def divisors(bits: int, rng: random.Random) -> list[int]:
    most = (1 << (bits - 1)) - 1
    powers = [1 << place for place in range(1, bits - 1)]
    beside = [n + by for n in powers for by in (-1, 0, 1)]
    drawn = [rng.randint(2, most) for _ in range(200)] + [rng.randint(2, 5000) for _ in range(200)]
    return [n for n in (*beside, *drawn, most) if LEAST_DIVISOR <= n <= most]


def numerators(divisor: int, bits: int, rng: random.Random) -> list[int]:
    """Around multiples of a divisor, and the largest ones."""
    most = (1 << (bits - 1)) - 1
    times = [0, 1, 2, most // divisor - 1, most // divisor, rng.randint(0, most // divisor)]
    found = [n * divisor + by for n in times for by in (-1, 0, 1)]
    return [n for n in (*found, most, rng.randint(0, most)) if 0 <= n <= most]


@pytest.mark.parametrize("bits", [32, 64])
def test_the_quotient_is_exact(bits: int) -> None:
    rng = random.Random(bits)
    for divisor in divisors(bits, rng):
        inverse, shift = inverse_of(divisor, bits)
        assert -(1 << (bits - 1)) <= inverse < 0 and 0 <= shift < bits - 1
        for number in numerators(divisor, bits, rng):
            found = number * (inverse % (1 << bits)) >> bits >> shift
            assert found == number // divisor, (number, divisor)


IMPORTED = "from tritonfuser.lowering.device_lib.functions import quotient, residue\n"

WRITTEN = """
@triton.jit
def divided(x, whole, rest, size, inverse, shift, LANES: tl.constexpr):
    i = tl.arange(0, LANES)
    given = tl.load(x + i)
    found = quotient(given, inverse, shift)
    tl.store(whole + i, found)
    tl.store(rest + i, residue(given, found, size, 1))
"""


@pytest.mark.parametrize(("bits", "dtype"), [(32, D.Int32), (64, D.Int)])
def test_as_written(bits: int, dtype: DataType) -> None:
    """The functions of the library, interpreted."""
    names, rng = ("size", "inverse", "shift"), random.Random(0)
    args = [tensor(name, dtype, n, LANES) for n, name in enumerate(("x", "whole", "rest"))]
    args += [scalar(name, dtype, n + 3) for n, name in enumerate(names)]
    source = kernel("divided", WRITTEN, args, [("LANES", LANES)])
    divide = interpret_kernel(replace(source, text=IMPORTED + source.text))
    for divisor in rng.sample(divisors(bits, rng), 40):
        x = torch.tensor((numerators(divisor, bits, rng) * 4)[:LANES], dtype=dtype.info.torch)
        whole, rest = torch.empty_like(x), torch.empty_like(x)
        with language.session():
            divide(x, whole, rest, divisor, *inverse_of(divisor, bits))
        assert torch.equal(whole, x // divisor) and torch.equal(rest, x % divisor)


BODY = """
@triton.jit
def divided(x, y, size, inverse, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    size = size // 8 * 8
    whole = quotient(i, inverse, shift, 8)
    rest = residue(i, whole, size, 8)
    tl.store(y + i, tl.load(x + rest))
"""


@pytest.mark.parametrize("arch", TARGETS)
def test_on_gpus(arch: str) -> None:
    """No division is left, and loads at residues are as wide as the size allows."""
    numbers = [scalar(name, D.Int32, n + 2) for n, name in enumerate(("size", "inverse", "shift"))]
    args = [tensor("x"), tensor("y", number=1), *numbers]
    source = kernel("divided", BODY, args, [("BLOCK", 1024)])
    source = replace(source, text=IMPORTED + source.text)
    made = compile_kernel(source, arch, (True, True, False, False, False))
    text = made.asm["ptx" if "ptx" in made.asm else "amdgcn"]
    assert not re.search(r"\b(div|rem)\.[su]32|v_rcp", text)
    assert re.search(r"mul\.hi\.u32|v_mul_hi_u32", text)
    assert re.search(r"ld\.global\.v4\.b32|global_load_dwordx4|buffer_load_dwordx4", text)
