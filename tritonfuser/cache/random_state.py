"""Seeds for random ops that were given none: from torch's generator of the device, advanced."""

from __future__ import annotations

import torch

OFFSET_PER_OP = 4
"""How far one random op moves a CUDA generator's Philox offset: one block of four words."""


def draw(device: torch.device, count: int) -> tuple[int, int]:
    """Seed and first offset, in blocks, for ``count`` random ops.

    On a GPU they are the generator's, which moves on by 4 for each op, as nvFuser does it. The
    CPU's generator has no offset: it gives a new seed for each run.
    """
    if device.type == "cpu":
        seed = int(torch.randint(0, 2**62, (1,), device="cpu").item())
        return seed, 0
    generator = torch.cuda.default_generators[device.index]
    offset = generator.get_offset()
    generator.set_offset(offset + OFFSET_PER_OP * count)
    return generator.initial_seed(), offset // OFFSET_PER_OP
