"""Sine and cosine in float32, with one branch for every four elements of a thread.

libdevice's have a branch for each element, behind which large angles are reduced: the compiler
computes one element after another, and converts each to an integer and back. These are inline
assembly that looks at up to four angles at a time.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice

from ...device import NVIDIA_WARP_SIZE
from .power_functions import is_nvidia
from .trig_assembly import operands, sine_text

MOST_PACKED = tl.constexpr(4)
"""Angles that one branch looks at, at most."""

_SINE_4, _SINE_2, _SINE_1 = (tl.constexpr(sine_text(0, packed)) for packed in (4, 2, 1))
_COSINE_4, _COSINE_2, _COSINE_1 = (tl.constexpr(sine_text(1, packed)) for packed in (4, 2, 1))
_OPERANDS_4, _OPERANDS_2, _OPERANDS_1 = (tl.constexpr(operands(packed)) for packed in (4, 2, 1))


@tl.core.builtin
def _packed(x, most, _semantic=None):
    """How many elements a thread has at least, up to ``most``."""
    threads = NVIDIA_WARP_SIZE * _semantic.builder.options.num_warps
    return tl.constexpr(min(max(tl.constexpr(x.numel).value // threads, 1), most.value))


@triton.jit
def _by_packs(x, four: tl.constexpr, two: tl.constexpr, one: tl.constexpr):
    """What an assembly of four, two or one angles gives for each."""
    packed: tl.constexpr = _packed(x, MOST_PACKED)
    if packed == 4:
        result = tl.inline_asm_elementwise(four, _OPERANDS_4, [x], tl.float32, True, 4)
    elif packed == 2:
        result = tl.inline_asm_elementwise(two, _OPERANDS_2, [x], tl.float32, True, 2)
    else:
        result = tl.inline_asm_elementwise(one, _OPERANDS_1, [x], tl.float32, True, 1)
    return result


@triton.jit
def sine(x):
    """Sine of an angle in radians, to 2 ulp."""
    return _by_packs(x, _SINE_4, _SINE_2, _SINE_1) if is_nvidia() else libdevice.sin(x)


@triton.jit
def cosine(x):
    """Cosine of an angle in radians, to 2 ulp."""
    return _by_packs(x, _COSINE_4, _COSINE_2, _COSINE_1) if is_nvidia() else libdevice.cos(x)
