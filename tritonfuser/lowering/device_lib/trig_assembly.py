"""The inline assembly of sine and cosine: PTX that takes a few angles at a time."""

from __future__ import annotations

import math
import struct

LARGE = 105615.0
"""Angles from which on products with ``PARTS`` are not exact enough."""

PARTS = (1.57079601, 3.13916473e-07, 5.39030253e-15)
"""Parts of pi / 2, of which products with small integers are exact (Cody and Waite, 1980)."""

SINE = (-1.95152959e-4, 8.33216087e-3, -1.66666546e-1)
COSINE = (2.44331571e-5, -1.38873162e-3, 4.16666456e-2)
"""Coefficients of sinf and cosf in Cephes (Moshier, 1989), that of the highest power first."""

INTEGER = 12582912.0
"""1.5 * 2 ** 23. A float of this size has no bits behind the point, and an integer in its last."""

TWO_OVER_PI = (0x3C439041, 0xDB629599, 0xF534DDC0, 0xFC2757D1, 0x4E441529, 0xA2F9836E)
"""192 bits of 2 / pi behind the point, 32 in each word; the last word has the first bits."""


def operands(packed: int) -> str:
    """The constraints of so many results and angles."""
    return ",".join(["=f"] * packed + ["f"] * packed)


def sine_text(quadrants: int, packed: int) -> str:
    """The sine so many quadrants further, of each of a few angles.

    Of each angle the nearest quadrant and what is left; both anew where one of them is large; then
    the polynomials. All of it is assembly, so that what is known of an angle in between is no
    longer in registers when the next few are looked at.
    """
    places = range(packed)
    results, angles = ([f"${place + packed * k}" for place in places] for k in range(2))
    sizes = [f"abs.f32 each, {angle}; max.f32 most, most, each;" for angle in angles]
    return f"""{{
        .reg .pred any, odd, below;
        .reg .b32 last, quadrant<{packed}>;
        .reg .f32 most, each, turns, square, scale, tail, next, rest<{packed}>;
        {"".join(map(_reduced, angles, places))}
        mov.f32 most, {_number(0.0)};
        {" ".join(sizes)}
        setp.gt.f32 any, most, {_number(LARGE)};
        @!any bra DONE;
        {"".join(map(_reduced_exactly, angles, places))}
    DONE:
        {"".join(_sine_of(results[place], place, quadrants) for place in places)}
    }}"""


def _number(value: float) -> str:
    """A float32 as PTX has it."""
    return "0f" + struct.pack(">f", value).hex().upper()


def _reduced(angle: str, place: int) -> str:
    """The nearest quadrant of an angle, of which the last two bits count, and what is left."""
    products = (f"fma.rn.f32 rest{place}, turns, {_number(-n)}, rest{place};" for n in PARTS)
    return f"""
        fma.rn.f32 turns, {angle}, {_number(2 / math.pi)}, {_number(INTEGER)};
        mov.b32 quadrant{place}, turns;
        add.f32 turns, turns, {_number(-INTEGER)};
        mov.f32 rest{place}, {angle};
        {" ".join(products)}"""


def _reduced_exactly(angle: str, place: int) -> str:
    """The same of a large angle, by Payne and Hanek's reduction (1983).

    The mantissa is multiplied by the 96 bits of 2 / pi that matter at its exponent: those before
    them give multiples of four quadrants. Of the product 2 bits are the quadrant, 62 what is left.
    """
    return f"""{{
        .reg .pred large, first, second, negative;
        .reg .b32 bits, exponent, high, low, other, word<4>;
        .reg .b64 whole, wide;
        .reg .f64 part;
        .reg .f32 size;
        abs.f32 size, {angle};
        setp.gt.f32 large, size, {_number(LARGE)};
        @!large bra NEXT;
        mov.b32 bits, {angle};
        bfe.u32 exponent, bits, 23, 8;
        sub.u32 exponent, exponent, 128;
        shl.b32 bits, bits, 8;
        or.b32 bits, bits, 0x80000000;
        and.b32 other, exponent, 32;
        setp.ne.u32 first, other, 0;
        and.b32 other, exponent, 64;
        setp.ne.u32 second, other, 0;
        and.b32 exponent, exponent, 31;
        {"".join(map(_word, range(4)))}
        shf.l.wrap.b32 word0, word1, word0, exponent;
        shf.l.wrap.b32 word1, word2, word1, exponent;
        shf.l.wrap.b32 word2, word3, word2, exponent;
        mul.lo.u32 high, word0, bits;
        mul.hi.u32 low, word2, bits;
        mov.b64 whole, {{low, high}};
        mul.wide.u32 wide, word1, bits;
        add.u64 whole, whole, wide;
        mov.b64 {{low, high}}, whole;
        shr.u32 quadrant{place}, high, 30;
        shl.b64 whole, whole, 2;
        bfe.u32 other, high, 29, 1;
        add.u32 quadrant{place}, quadrant{place}, other;
        cvt.rn.f64.s64 part, whole;
        mul.f64 part, part, {_double(math.pi / 2 * 2.0**-64)};
        cvt.rn.f32.f64 rest{place}, part;
        setp.lt.f32 negative, {angle}, {_number(0.0)};
        @negative neg.f32 rest{place}, rest{place};
        @negative neg.s32 quadrant{place}, quadrant{place};
        setp.eq.f32 large, size, {_number(math.inf)};
        @large mov.f32 rest{place}, {_number(math.nan)};
    NEXT:
    }}"""


def _word(number: int) -> str:
    """32 bits of 2 / pi, from the word on that two bits of the exponent say."""
    words = (0, *reversed(TWO_OVER_PI))
    zero, one, two, three = (f"0x{words[number + skipped]:08x}" for skipped in range(4))
    return f"""
        selp.b32 word{number}, {one}, {zero}, first;
        selp.b32 other, {three}, {two}, first;
        selp.b32 word{number}, other, word{number}, second;"""


def _double(value: float) -> str:
    """A float64 as PTX has it."""
    return "0d" + struct.pack(">d", value).hex().upper()


def _sine_of(result: str, place: int, quadrants: int) -> str:
    """The sine so many quadrants further: by the polynomial of the cosine in odd ones.

    The product with the scale is added to 0, so that the sine of -0.0 is -0.0.
    """
    pairs = [f"{_number(b)}, {_number(a)}" for a, b in zip(SINE, COSINE, strict=True)]
    return f"""
        add.s32 quadrant{place}, quadrant{place}, {quadrants};
        and.b32 last, quadrant{place}, 1;
        setp.ne.s32 odd, last, 0;
        and.b32 last, quadrant{place}, 2;
        setp.ne.s32 below, last, 0;
        mul.rn.f32 square, rest{place}, rest{place};
        selp.f32 scale, {_number(1.0)}, rest{place}, odd;
        selp.f32 tail, {pairs[0]}, odd;
        selp.f32 next, {pairs[1]}, odd;
        fma.rn.f32 tail, tail, square, next;
        selp.f32 next, {pairs[2]}, odd;
        fma.rn.f32 tail, tail, square, next;
        @odd fma.rn.f32 tail, tail, square, {_number(-0.5)};
        fma.rn.f32 square, square, scale, {_number(0.0)};
        fma.rn.f32 {result}, tail, square, scale;
        @below neg.f32 {result}, {result};"""
