"""Seeds for random ops without one, drawn from torch's generator of the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_SEEDS = 2**62

OFFSET_PER_OP = 4
"""Advance of a CUDA generator's Philox offset for each random op: one block of four words."""


Drawn = tuple[int, int, object]

_noted: ContextVar[list[tuple[int, int]] | None] = ContextVar("noted", default=None)


@contextmanager
def noted_draws() -> Iterator[list[tuple[int, int]]]:
    """Note the seed and the offset of each draw of this thread within."""
    found: list[tuple[int, int]] = []
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def draw(device: torch.device, count: int) -> Drawn:
    """``(seed, offset, held)`` for ``count`` random ops.

    On a GPU seed and offset are the generator's, whose offset advances by 4 for each op, as in
    nvFuser. The CPU's generator has no offset: each run draws a new seed. While a CUDA graph is
    captured, a kernel of torch draws the seed in each replay. Then ``seed`` is the address of that
    seed, ``offset`` is negative, and ``held`` is the tensor to keep alive.

    Parameters
    ----------
    count : int
        Random ops of the run.

    Returns
    -------
    tuple of (int, int, object)
        The offset is in blocks of four words.
    """
    drawn = _draw(device, count)
    if (noted := _noted.get()) is not None:
        noted.append(drawn[:2])
    return drawn


def _draw(device: torch.device, count: int) -> Drawn:
    if device.type == "cpu":
        seed = int(torch.randint(0, _SEEDS, (1,), device="cpu").item())
        return seed, 0, None
    if torch.cuda.is_current_stream_capturing():
        held = torch.randint(0, _SEEDS, (1,), device=device)
        return held.data_ptr(), -count, held
    generator = torch.cuda.default_generators[device.index]
    offset = generator.get_offset()
    generator.set_offset(offset + OFFSET_PER_OP * count)
    return generator.initial_seed(), offset // OFFSET_PER_OP, None
