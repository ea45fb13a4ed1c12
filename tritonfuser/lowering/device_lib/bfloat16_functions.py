"""Rounding to bfloat16, two numbers at a time; of one number it is a cast.

See ``lowering/access/rounded_casts.py`` for where these take the place of a cast.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from .power_functions import is_nvidia


@triton.jit
def round_to_bfloat16(x):
    """float32 ``x`` rounded to bfloat16, in float32: ``x.to(tl.bfloat16).to(tl.float32)``."""
    if is_nvidia() and x.numel > 1:
        asm: tl.constexpr = """
        {
            .reg .b32 both;
            cvt.rn.bf16x2.f32 both, $3, $2;
            shl.b32 $0, both, 16;
            and.b32 $1, both, 0xffff0000;
        }
        """
        result = tl.inline_asm_elementwise(asm, "=f,=f,f,f", [x], tl.float32, is_pure=True, pack=2)
    else:
        result = x.to(tl.bfloat16).to(tl.float32)
    return result


@triton.jit
def to_bfloat16(x):
    """``x.to(tl.bfloat16)`` of float32 ``x``."""
    if is_nvidia() and x.numel > 1:
        result = tl.inline_asm_elementwise(
            "cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,f,f", [x], tl.bfloat16, is_pure=True, pack=2
        )
    else:
        result = x.to(tl.bfloat16)
    return result
