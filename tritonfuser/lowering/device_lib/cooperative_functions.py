"""Functions with which the programs of one kernel tell one another numbers.

A number is its own sign that it is there: the memory is filled with a bit pattern that no result
of arithmetic has, a nan with all bits set. So nothing has to be in order, and nobody has to wait
for what others wrote before (the same idea as the low-latency protocol of NVIDIA's NCCL, whose
words carry a flag).
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from .power_functions import is_nvidia


@triton.jit
def _float_of(word):
    return word.to(tl.float64 if word.dtype == tl.int64 else tl.float32, bitcast=True)


@triton.jit
def tell(place, number, mask):
    """Put floats where other programs look for them."""
    word = number.to(tl.int64 if number.dtype == tl.float64 else tl.int32, bitcast=True)
    # A nan that an input brought along may have all bits set: another one says the same.
    tl.store(place, tl.where(word == -1, -2, word), mask=mask)


@triton.jit
def look(place, mask):
    """The words that are there by now; 0 where the mask is off."""
    return tl.load(place, mask=mask, other=0, volatile=True)


@triton.jit
def heard(words, place):
    """The floats that other programs tell, from words that were looked at before.

    Those that were not there then are waited for. A loop of Triton's would keep the loop around
    it from being pipelined, so there is none where the hardware's own will do.
    """
    if is_nvidia():
        if words.dtype == tl.int64:
            words = tl.inline_asm_elementwise(
                _WAIT_FOR_LONG, "=&l,l,l", [words, place.to(tl.int64)], tl.int64, False, 1
            )
        else:
            words = tl.inline_asm_elementwise(
                _WAIT, "=&r,r,l", [words, place.to(tl.int64)], tl.int32, False, 1
            )
    else:
        while tl.max((words == -1).to(tl.int32), 0) != 0:
            words = tl.load(place, mask=words == -1, other=words, volatile=True)
    return _float_of(words)


_TEXT = """{
    .reg .pred there;
    mov.bBITS $0, $1;
WAIT:
    setp.ne.sBITS there, $0, -1;
    @there bra DONE;
    nanosleep.u32 20;
    ld.relaxed.gpu.global.bBITS $0, [$2];
    bra WAIT;
DONE:
}"""
_WAIT = tl.constexpr(_TEXT.replace("BITS", "32"))
_WAIT_FOR_LONG = tl.constexpr(_TEXT.replace("BITS", "64"))
