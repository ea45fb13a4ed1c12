"""Seeds for random ops that were given none: from torch's generator of the device, advanced."""

from __future__ import annotations

import torch

_SEEDS = 2**62

OFFSET_PER_OP = 4
"""How far one random op moves a CUDA generator's Philox offset: one block of four words."""


Drawn = tuple[int, int, object]


def draw(device: torch.device, count: int) -> Drawn:
    """Seed and first offset, in blocks, for ``count`` random ops, and what must live till then.

    On a GPU they are the generator's, which moves on by 4 for each op, as nvFuser does it. The
    CPU's generator has no offset: it gives a new seed for each run. Where a graph is captured,
    what a replay draws is not known: a kernel of torch's draws the seed then, and what is given
    is where it lies, with an offset below zero.
    """
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
