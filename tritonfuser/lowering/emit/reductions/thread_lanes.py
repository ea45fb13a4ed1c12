"""How the elements of a thread share one running maximum, or one running mean."""

from __future__ import annotations

from dataclasses import dataclass

from ....heuristics.params import OuterPersistentParams
from ...segments import Segment
from ...tile.nest import Nest

LANE_BYTES = 16
"""What a thread loads at once."""

WARP = 32
"""Threads of a warp; where they are more, threads have to exchange what they could keep."""


@dataclass(frozen=True)
class Lanes:
    """Elements of a row that one thread has, and so can reduce by itself.

    Attributes
    ----------
    width : int
        Elements of a row for one thread, at least 1.
    apart : bool
        False: rows lie along memory, and the elements are neighbours, which one vectorized load
        takes. True: rows lie across memory, and the elements are as far apart as all threads
        together reach.
    """

    width: int
    apart: bool

    @property
    def arguments(self) -> str:
        """Both, as the device library's functions take them."""
        return f"{self.width}, {self.apart}"


def lanes_of_row(segment: Segment, nest: Nest) -> Lanes:
    """What a thread has of the rows of a kernel's tile."""
    sides = dict(nest.constants)
    rows, row = sides.get("XBLOCK", 1), sides["RBLOCK"]
    tensors = (v for v in segment.inputs if v.is_tensor and v.tensor.rank > 1)
    narrowest = min((v.dtype.info.bytes for v in tensors), default=4)
    loaded = LANE_BYTES // max(narrowest, 2)
    params = segment.params
    if isinstance(params, OuterPersistentParams):
        reached = max(WARP * params.num_warps * min(loaded, rows) // rows, 1)
        return Lanes(max(row // reached, 1), True)
    return Lanes(loaded if row % loaded == 0 else 1, False)
