"""Random words of generated kernels: Philox4x32-10, to the bit as ``ops.creation.philox``."""

# Triton reads the annotations of a jitted function as types of its arguments.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from .power_functions import is_nvidia


@triton.jit
def drawn(seed, offset):
    """Seed and offset of a run. Where ``offset`` is negative, ``seed`` is the address of the seed.

    So it is in a captured graph: what a replay draws is not known when it is launched.
    """
    is_place = offset < 0
    held = tl.load(seed.to(tl.pointer_type(tl.int64)), mask=is_place, other=0)
    return tl.where(is_place, held, seed), tl.where(is_place, -1 - offset, offset)


@triton.jit
def _product(word, factor, asm: tl.constexpr):
    """Low and high word of a product: one instruction, which Triton's two products are not."""
    if is_nvidia():
        low, high = tl.inline_asm_elementwise(
            asm, "=r,=r,r", [word], (tl.uint32, tl.uint32), is_pure=True, pack=1
        )
    else:
        low, high = word * factor, tl.umulhi(word, tl.full(word.shape, factor, tl.uint32))
    return low, high


@triton.jit
def philox_rounds(c0, c1, c2, c3, k0, k1):
    """Ten rounds of Philox4x32 on uint32 words."""
    for _ in tl.static_range(10):
        low0, high0 = _product(
            c0, 0xD2511F53, "{ .reg .b64 t; mul.wide.u32 t, $2, 0xD2511F53; mov.b64 {$0, $1}, t; }"
        )
        low1, high1 = _product(
            c2, 0xCD9E8D57, "{ .reg .b64 t; mul.wide.u32 t, $2, 0xCD9E8D57; mov.b64 {$0, $1}, t; }"
        )
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 = k0 + 0x9E3779B9
        k1 = k1 + 0xBB67AE85
    return c0, c1, c2, c3


@triton.jit
def philox_words(seed, offset, subsequence):
    """Four uint32 words of counter (offset, subsequence) under key seed."""
    seed = tl.cast(seed, tl.uint64)
    offset = tl.cast(offset, tl.uint64)
    subsequence = tl.cast(subsequence, tl.uint64)
    c2 = subsequence.to(tl.uint32)
    c3 = (subsequence >> 32).to(tl.uint32)
    c0 = tl.zeros_like(c2) + offset.to(tl.uint32)
    c1 = tl.zeros_like(c2) + (offset >> 32).to(tl.uint32)
    return philox_rounds(c0, c1, c2, c3, seed.to(tl.uint32), (seed >> 32).to(tl.uint32))


@triton.jit
def unsigned(index):
    """A linear index without a sign: then neighbours visibly share a counter, drawn once."""
    if index.dtype.primitive_bitwidth == 32:
        bits = index.to(tl.uint32, bitcast=True)
    else:
        bits = index.to(tl.uint64, bitcast=True)
    return bits


@triton.jit
def word_of_index(seed, offset, index):
    """The word of each linear index."""
    index = unsigned(index)
    w0, w1, w2, w3 = philox_words(seed, offset, index >> 2)
    part = index & 3
    return tl.where(part < 2, tl.where(part == 0, w0, w1), tl.where(part == 2, w2, w3))


@triton.jit
def words_by_four(seed, offset, subsequence, shape: tl.constexpr):
    """Words of a tile of ``shape`` whose last axis has four elements a counter."""
    w0, w1, w2, w3 = philox_words(seed, offset, unsigned(subsequence))
    return tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), shape)


@triton.jit
def words_by_eight(seed, offset, start, eighth, shape: tl.constexpr):
    """Words of a tile whose rows begin anywhere, at the linear index ``start + 8 * eighth``.

    Eight neighbours have words of three counters; which ones, depends on ``start % 4``.
    """
    first = (start >> 2) + eighth * 2
    a0, a1, a2, a3 = philox_words(seed, offset, unsigned(first))
    b0, b1, b2, b3 = philox_words(seed, offset, unsigned(first + 1))
    c0, c1, c2, _ = philox_words(seed, offset, unsigned(first + 2))
    begin = start + eighth * 0
    return eight_of(begin, a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, shape)


@triton.jit
def eight_of(start, a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, shape: tl.constexpr):
    """Eight of the eleven numbers of three counters: those from ``start % 4`` on."""
    far = (start & 2) != 0
    a0, a1, a2, a3 = _select_words(far, a0, a1, a2, a3, a2, a3, b0, b1)
    b0, b1, b2, b3 = _select_words(far, b0, b1, b2, b3, b2, b3, c0, c1)
    c0 = tl.where(far, c2, c0)
    odd = (start & 1) != 0
    a0, a1, a2, a3 = _select_words(odd, a0, a1, a2, a3, a1, a2, a3, b0)
    b0, b1, b2, b3 = _select_words(odd, b0, b1, b2, b3, b1, b2, b3, c0)
    even = tl.join(tl.join(a0, b0), tl.join(a2, b2))
    return tl.reshape(tl.join(even, tl.join(tl.join(a1, b1), tl.join(a3, b3))), shape)


@triton.jit
def _select_words(which, p0, p1, p2, p3, q0, q1, q2, q3):
    """``q`` where ``which`` holds, else ``p``: the four words of one of two counters."""
    return (
        tl.where(which, q0, p0),
        tl.where(which, q1, p1),
        tl.where(which, q2, p2),
        tl.where(which, q3, p3),
    )


@triton.jit
def _signed(word):
    return word.to(tl.int32, bitcast=True)


@triton.jit
def philox_word(seed, offset, index):
    """The 32 random bits of each linear index, as int32."""
    return _signed(word_of_index(seed, offset, index))


@triton.jit
def philox_word_by_four(seed, offset, subsequence, shape: tl.constexpr):
    """``philox_word`` of a tile, from ``words_by_four``."""
    return _signed(words_by_four(seed, offset, subsequence, shape))


@triton.jit
def philox_word_by_eight(seed, offset, start, eighth, shape: tl.constexpr):
    """``philox_word`` of a tile, from ``words_by_eight``."""
    return _signed(words_by_eight(seed, offset, start, eighth, shape))
