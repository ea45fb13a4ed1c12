"""The random numbers of the generated kernels, in plain torch: a Philox4x32-10 reference.

Takes shape, seed and offset, gives the same bits (uniform) as ``lowering.device_lib.functions``'s
``philox_uniform``, and the same numbers up to the last places of log, sin and cos (normal).

The generator is counter based: ``key = seed``, ``counter = (offset, subsequence)``, one counter
gives four 32-bit words. Element ``i`` (row-major) of a float32 tensor is word ``i % 4`` of
subsequence ``i // 4``; of a float64 tensor the word pair ``i % 2`` of subsequence ``i // 2``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

MASK = 0xFFFFFFFF
ROUND_A, ROUND_B = 0xD2511F53, 0xCD9E8D57
KEY_A, KEY_B = 0x9E3779B9, 0xBB67AE85


def words(count: int, seed: int, offset: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """The four words of subsequences ``0 .. count - 1``: int64 of shape ``(count, 4)``."""
    subsequence = torch.arange(count, dtype=torch.int64, device=device)
    c0 = torch.full_like(subsequence, offset & MASK)
    c1 = torch.full_like(subsequence, offset >> 32 & MASK)
    c2, c3 = subsequence & MASK, subsequence >> 32 & MASK
    k0, k1 = seed & MASK, seed >> 32 & MASK
    for _ in range(10):
        high0, low0 = _multiply(c0, ROUND_A)
        high1, low1 = _multiply(c2, ROUND_B)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + KEY_A & MASK, k1 + KEY_B & MASK
    return torch.stack((c0, c1, c2, c3), dim=1)


def _multiply(a: torch.Tensor, b: int) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low word of a 32x32-bit product; int64 wraps around, which keeps the bits."""
    product = a * b
    return product >> 32 & MASK, product & MASK


def _unit(
    shape: Sequence[int], seed: int, offset: int, dtype: torch.dtype, device: torch.device | str
) -> torch.Tensor:
    """Uniform numbers in (0, 1], float64 for float64 and float32 for all else, flat and even."""
    count = math.prod(shape)
    per = 2 if dtype is torch.float64 else 4
    bits = words(-(-count // per), seed, offset, device)
    if dtype is torch.float64:
        mixed = bits[:, 0::2] ^ bits[:, 1::2] << 21
        return ((mixed.double() + 0.5) * 2.0**-53).reshape(-1)
    return ((bits.float() + 0.5) * 2.0**-32).reshape(-1)


def uniform(
    shape: Sequence[int],
    seed: int,
    offset: int,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    """Numbers in [0, 1).

    Parameters
    ----------
    shape : sequence of int
        The result's shape.
    seed, offset : int
        64-bit; ``offset`` counts blocks of four words.
    dtype : torch.dtype
        float64, or anything else for float32: narrower types are drawn in float32, and the
        caller rounds after scaling (see ``round_below``).
    """
    unit = _unit(shape, seed, offset, dtype, device)
    return torch.where(unit == 1, 0, unit)[: math.prod(shape)].reshape(tuple(shape))


def normal(
    shape: Sequence[int],
    seed: int,
    offset: int,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    """Standard normal numbers by Box and Muller, parameters as for ``uniform``.

    Neighbours share a pair of uniform numbers (u, v): even elements take the sine, odd ones
    the cosine of ``2 pi v``, times ``sqrt(-2 log u)``.
    """
    pairs = _unit(shape, seed, offset, dtype, device).reshape(-1, 2)
    radius = torch.sqrt(-2 * torch.log(pairs[:, 0]))
    angle = pairs[:, 1] * (2 * math.pi)
    both = torch.stack((radius * torch.sin(angle), radius * torch.cos(angle)), dim=1)
    return both.reshape(-1)[: math.prod(shape)].reshape(tuple(shape))


def round_below(values: torch.Tensor, high: float, dtype: torch.dtype) -> torch.Tensor:
    """``values`` in ``dtype``; what rounds up to ``high`` becomes the next number below it.

    Scaled uniform numbers must stay inside [low, high) also in a narrow type.
    """
    rounded = values.to(dtype)
    limit = torch.full_like(rounded, high)
    floor = torch.nextafter(limit, torch.full_like(rounded, -math.inf))
    return torch.where(rounded >= limit, floor, rounded)


def next_below(number: float, dtype: torch.dtype) -> float:
    """The greatest number of ``dtype`` that is less than one that it has.

    Both are tensors of a given number, which have it inside of a FakeTensorMode too.
    """
    exact, lowest = (torch.tensor(n, dtype=dtype, device="cpu") for n in (number, -math.inf))
    return float(torch.nextafter(exact, lowest).item())


def held(bound: float, dtype: torch.dtype) -> float:
    """A bound of a range as ``dtype`` holds it; one beyond its largest number becomes that."""
    largest = torch.finfo(dtype).max
    rounded = torch.tensor(bound, dtype=torch.float64, device="cpu").to(dtype).item()
    return min(max(float(rounded), -largest), largest)


def is_too_wide(low: float, high: float, dtype: torch.dtype) -> bool:
    """Whether ``high - low`` is more than any number of ``dtype``."""
    return abs(high - low) > torch.finfo(dtype).max


def spread(unit: torch.Tensor, low: float, high: float, dtype: torch.dtype) -> torch.Tensor:
    """Numbers of [0, 1) spread over [low, high), whose bounds are rounded to ``dtype`` first.

    Bounds the other way round spread them over (high, low], as nvFuser's formula does.

    Parameters
    ----------
    unit : Tensor
        float64 for a float64 ``dtype``, float32 for others.

    Returns
    -------
    Tensor
        In ``dtype``. ``low`` alone where the rounded range is empty.
    """
    low, high = held(low, dtype), held(high, dtype)
    if is_too_wide(low, high, unit.dtype):
        values = (low / 2 + unit * (high / 2 - low / 2)) * 2
    else:
        values = low + unit * (high - low)
    if high < low:
        return values.to(dtype)
    rounded = round_below(values, high, dtype)
    return torch.where(rounded < low, torch.full_like(rounded, low), rounded)
