"""Limits of fields that several schedulers have."""

from __future__ import annotations

from typing import Annotated

from ...device import MAX_BLOCK_ELEMENTS
from ..plain_data.limits import AtMostItems, Distinct, Within

MAX_TAILS = 3
"""Most tail tiles of a row."""

MAX_WARPS = 32
"""Most warps of one program: 1024 threads on NVIDIA."""

MAX_STAGES = 16
"""Most steps of a loop in flight. Beyond some five, shared memory runs out before it pays."""

MAX_UNROLLED = 16
"""Largest unroll factor of a loop: its code grows with it."""

Power = Within(1, MAX_BLOCK_ELEMENTS, powers_of_two=True)
"""Elements of a side of a tile."""

MAX_AXES = 128
"""Most axes of a kernel. A tensor of torch has at most 64 dims, of which those of two positions or
more, 63 at most, may be split."""

Side = Annotated[int, Power]
Tails = Annotated[tuple[Side, ...], AtMostItems(MAX_TAILS)]
Unroll = Annotated[int, Within(1, MAX_UNROLLED, powers_of_two=True)]
"""Unroll factor of a loop."""

Axes = Annotated[tuple[Annotated[int, Within(0, MAX_AXES - 1)], ...], Distinct()]
"""Numbers of axes of a kernel, outermost first."""
