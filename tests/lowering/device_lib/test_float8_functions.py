"""Conversions of eight-bit floats, every byte and every tie, against torch; and their code."""

from __future__ import annotations

import re
from functools import partial

import pytest
import torch

from tests.ops.pointwise_harness import EIGHTS, interpret, kernel
from tritonfuser.dtypes import DataType, e4m3_saturates
from tritonfuser.ir import Const
from tritonfuser.lowering.backend.compile import compile_kernel
from tritonfuser.lowering.emit.expressions import cast_text, literal
from tritonfuser.lowering.interpreter import language

D = DataType
TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "gfx942")


@pytest.fixture(params=["arrays", "as written"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """By torch, as the interpreter does it, and by the functions that a GPU runs."""
    if request.param == "as written":
        monkeypatch.setattr(language, "namespace", partial(language.namespace, plain=True))
    return str(request.param)


def numbers(dtype: DataType) -> torch.Tensor:
    """All halves and bfloat16s, and what lies between two neighbours and beside that."""
    words = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)
    found = [words.view(torch.float16).float(), words.view(torch.bfloat16).float()]
    every = torch.arange(256, dtype=torch.uint8).view(dtype.info.torch).float()
    every = every[every.isfinite()].unique()
    # As torch rounds what is behind the largest number.
    ends = torch.tensor([464.0, 61440.0, 465.0, 463.9, 480.0, 65536.0, 1e30, 1e-30])
    ties = torch.cat([(every[1:] + every[:-1]) / 2, ends, -ends])
    above, below = (torch.nextafter(ties, torch.tensor(s)) for s in (torch.inf, -torch.inf))
    found += [every, ties, above, below]
    x = torch.cat(found)
    return torch.cat([x, torch.zeros((1 << 18) - len(x))])


def assert_same(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Equal numbers, with the sign of zeros; nan is nan."""
    one, other = found.float(), wanted.float()
    differ = ~((one == other) & (one.signbit() == other.signbit()) | one.isnan() & other.isnan())
    assert not differ.any(), (one[differ][:5], other[differ][:5])


@pytest.mark.usefixtures("how")
@pytest.mark.parametrize("dtype", EIGHTS, ids=lambda d: d.name)
def test_from_float(dtype: DataType) -> None:
    x = numbers(dtype)
    text = cast_text("x0", D.Float, dtype)
    (found,) = interpret(kernel([f"r0 = {text}"], [D.Float], [dtype], len(x)), [x])
    assert_same(found, x.to(dtype.info.torch))


def test_both_ways_to_round_what_e4m3_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """nan, as torch had it once; the largest number, as GPUs and a newer torch have it."""
    monkeypatch.setattr(language, "namespace", partial(language.namespace, plain=True))
    x = numbers(D.Float8_e4m3fn)
    plain = x.clamp(-448, 448).to(torch.float8_e4m3fn).float()
    for saturates in (True, False):
        line = f"r0 = float_to_e4m3(x0, {saturates})"
        (found,) = interpret(kernel([line], [D.Float], [D.Float8_e4m3fn], len(x)), [x])
        lost = torch.full_like(x, torch.nan)
        assert_same(found, plain if saturates else torch.where(x.abs() <= 464, plain, lost))


def test_which_of_them_is_told_by_torch() -> None:
    top = torch.tensor(1e9).to(torch.float8_e4m3fn).float().item()
    assert e4m3_saturates() is (top == 448.0)
    assert cast_text("x", D.Float, D.Float8_e4m3fn) == f"float_to_e4m3(x, {e4m3_saturates()})"


@pytest.mark.usefixtures("how")
@pytest.mark.parametrize("dtype", EIGHTS, ids=lambda d: d.name)
def test_to_float(dtype: DataType) -> None:
    x = torch.arange(256, dtype=torch.uint8).view(dtype.info.torch)
    text = cast_text("x0", dtype, D.Float)
    (found,) = interpret(kernel([f"r0 = {text}"], [dtype], [D.Float], 256), [x])
    assert_same(found, x.float())


@pytest.mark.parametrize("dtype", EIGHTS, ids=lambda d: d.name)
def test_literals_are_bytes(dtype: DataType) -> None:
    for number in (0.0, -0.0, 1.0, -2.5, 3.3, 1e9, torch.inf, torch.nan):
        byte = torch.tensor(number).to(dtype.info.torch).view(torch.uint8)
        assert literal(Const.of(number), dtype) == str(int(byte))


@pytest.mark.parametrize("arch", TARGETS)
@pytest.mark.parametrize("dtype", EIGHTS, ids=lambda d: d.name)
def test_compiled(dtype: DataType, arch: str) -> None:
    """From sm_90 on by the instruction for it; elsewhere by integers: their own round twice."""
    for source, target in ((D.Float, dtype), (dtype, D.Float), (D.Double, dtype), (dtype, D.Bool)):
        text = cast_text("x0", source, target)
        source_kernel = kernel([f"r0 = {text}"], [source], [target], 1024)
        compiled = compile_kernel(source_kernel, arch, (True, True))
        if arch.startswith("sm_") and (source, target) == (D.Float, dtype):
            name = f"cvt.rn.satfinite.{dtype.info.letter}x2.f32"
            assert (name in compiled.asm["ptx"]) is (int(arch[3:]) >= 90)
            assert not re.search(r"cvt\.r[nz]\.f16\.f32", compiled.asm["ptx"])
