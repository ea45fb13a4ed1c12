"""Communication between programs: arrival counters, and a workspace of published words.

What programs wait for is published in a workspace, which is filled with a nan whose bits are all
set: no arithmetic gives it. Any other word is a published float, so no flag and no memory fence is
needed. The low-latency protocol of NVIDIA's NCCL does the same with a flag in each word.
"""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from .power_functions import is_nvidia


@triton.jit
def is_last(counter, programs):
    """Whether this is the last of so many programs that arrive at a counter; it is 0 again then.

    What all of them have stored before can be read by the last one. The barrier orders the stores
    of a program's threads before its ticket, which is drawn by one of them: release and acquire
    for the whole device (PTX ISA, memory consistency model, causality order).
    """
    tl.debug_barrier()
    ticket = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu")
    last = ticket == programs - 1
    tl.store(counter, 0, mask=last)
    return last


@triton.jit
def _float_of(word):
    return word.to(tl.float64 if word.dtype == tl.int64 else tl.float32, bitcast=True)


@triton.jit
def publish(place, number, mask):
    """Write floats to the workspace."""
    word = number.to(tl.int64 if number.dtype == tl.float64 else tl.int32, bitcast=True)
    # A nan from an input may have all bits set: another nan is published in its place.
    tl.store(place, tl.where(word == -1, -2, word), mask=mask)


@triton.jit
def peek(place, mask):
    """The words in the workspace by now; 0 where the mask is off."""
    return tl.load(place, mask=mask, other=0, volatile=True)


@triton.jit
def wait_for(words, place):
    """The floats that other programs publish; ``words`` are those that ``peek`` found.

    Words that were missing are loaded until they are there. On NVIDIA GPUs that loop is inline
    assembly: a loop of Triton's would keep the loop around it from being pipelined.
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
