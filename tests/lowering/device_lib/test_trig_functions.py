"""Sine and cosine: the constants of their assembly, and on a GPU the error of any angle."""

from __future__ import annotations

import math
import re

import pytest
import sympy
import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.lowering.device_lib.trig_assembly import (
    LARGE,
    PARTS,
    TWO_OVER_PI,
    operands,
    sine_text,
)

BITS = {
    "small": (0, 0x3F490FDB),
    "usual": (0x3F490FDB, 0x47CE4780),
    "large": (0x47CE4780, 0x7F800000),
}
"""Angles by their bits: within pi / 4, below ``LARGE``, and from there on."""


def test_the_words_are_those_of_two_over_pi():
    exact = int(sympy.floor(2 / sympy.pi * 2**192))
    assert sum(word << 32 * place for place, word in enumerate(TWO_OVER_PI)) == exact


def test_the_parts_add_up_to_half_of_pi():
    parts = [float(torch.tensor(part, dtype=torch.float32)) for part in PARTS]
    exact = sympy.Rational(parts[0]) + sympy.Rational(parts[1]) + sympy.Rational(parts[2])
    assert abs(float((exact - sympy.pi / 2).evalf(50))) * LARGE < 1e-11


@pytest.mark.parametrize("packed", [1, 2, 4])
def test_each_angle_has_a_result(packed):
    text = sine_text(1, packed)
    assert {int(n) for n in re.findall(r"\$(\d+)", text)} == set(range(2 * packed))
    assert operands(packed).count("f") == 2 * packed
    assert text.count("bra NEXT") == packed and text.count("bra DONE") == 1


def definition(op, dtype=DataType.Float):
    with FusionDefinition() as fd:
        x = fd.define_tensor([-1], dtype=dtype, contiguity=True)
        fd.add_output(getattr(fd.ops, op)(x))
    return fd


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "gfx942"])
@pytest.mark.parametrize("elements", [1, 33, 300, 1 << 20])
def test_all_sizes_compile(arch, elements):
    (report,) = definition("cos").compile_for(arch, [torch.empty(elements, device="meta")])
    assert not report.spill_bytes


def ulps(found, exact):
    """Errors in units of the last place."""
    places = torch.frexp(exact.float())[1].clamp(min=-125) - 24
    return (found.double() - exact).abs() / torch.ldexp(torch.ones_like(exact), places)


@pytest.mark.gpu
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("op", ["sin", "cos"])
def test_errors_are_below_two_ulp(op, bits):
    given = torch.randint(*BITS[bits], (1 << 24,), device="cuda", dtype=torch.int32)
    x = given.view(torch.float32)
    x = torch.where(torch.rand_like(x) < 0.5, x, -x)
    (found,) = definition(op).run([x])
    assert ulps(found, getattr(torch, op)(x.double())).max() < 2


@pytest.mark.gpu
@pytest.mark.parametrize("op", ["sin", "cos"])
def test_numbers_that_are_special(op):
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1e-40, LARGE, -3.4e38]
    x = torch.tensor(special, device="cuda")
    (found,), expected = definition(op).run([x]), getattr(torch, op)(x)
    assert torch.equal(found.isnan(), expected.isnan())
    there = ~expected.isnan()
    assert torch.equal(found[there].signbit(), expected[there].signbit())
    torch.testing.assert_close(found, expected, rtol=3e-7, atol=0, equal_nan=True)


@pytest.mark.gpu
@pytest.mark.parametrize("elements", [1, 2, 3, 127, 129, 1000, 4099])
def test_threads_with_few_elements(elements):
    x = torch.randn(elements, device="cuda") * 10.0 ** torch.arange(
        elements, device="cuda"
    ).remainder(8)
    (found,) = definition("sin").run([x])
    assert ulps(found, x.double().sin()).max() < 2
