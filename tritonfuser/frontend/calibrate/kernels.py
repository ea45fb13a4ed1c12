"""Kernels whose time is that of one thing: a load after another, multiplications."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

UNROLLED = tl.constexpr(64)
"""Multiplications of each element in a step of the loop."""


@triton.jit
def chase_pointers(links, end, steps):
    """Load ``steps`` times the element that the last one names."""
    place = tl.load(links)
    for _ in range(1, steps):
        place = tl.load(links + place)
    tl.store(end, place)


@triton.jit
def multiply_add(out, steps, BLOCK: tl.constexpr):
    """``steps * UNROLLED`` times ``x = x * a + b`` for each of ``BLOCK`` elements of a program."""
    lanes = tl.arange(0, BLOCK)
    x = lanes.to(tl.float32)
    for _ in range(steps):
        for _ in tl.static_range(UNROLLED):
            x = x * 0.999 + 1.0
    tl.store(out + tl.program_id(0) * BLOCK + lanes, x)
