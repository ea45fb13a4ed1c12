"""``Times``: the ways to cut a fusion that were tried, with their kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from ...device import DeviceProperties
from ...ir import Fusion
from ..fuse.segmentation import Choice
from ..segments.segmented_fusion import SegmentedFusion
from .kernel_times import TimedKernels, timed_kernels

CALLS = 50_000
"""Calls that win back the time in which ways to cut are tried, if all that is lost is saved."""

NODE_S = 1.5e-4
"""Seconds of a way to cut for each node, and each store of the heuristics' kernels: 0.08 to 0.33 ms
of twelve definitions of random graphs and models, on a CPU of 2.5 GHz."""

BETTER = 0.1
"""Share of the time of the fastest that a change must be able to save to be tried. What may save
less seldom does: of 125 random definitions two have another cut for it, of 0.95 times the speed by
the model, and the search takes a sixth less."""

FEWEST_TRIED = 8
"""Ways to cut that are tried at least."""


@dataclass(frozen=True)
class Times:
    """The kernels of choices and their times, each found once.

    Attributes
    ----------
    most : float
        Choices that are worth their time.
    """

    device: DeviceProperties
    make: Callable[[Choice], SegmentedFusion]
    known: dict[Choice, TimedKernels]
    most: float = inf

    @property
    def may_try(self) -> bool:
        """Whether another choice is worth its time."""
        return len(self.known) <= self.most

    def __call__(self, choice: Choice) -> TimedKernels:
        if choice not in self.known:
            self.known[choice] = timed_kernels(self.make(choice), self.device)
        return self.known[choice]

    @property
    def least(self) -> float:
        """Seconds of the fastest."""
        return min(each.seconds for each in self.known.values())

    def may_be_beaten_by(self, seconds: float) -> bool:
        """Whether kernels that take so long would be much faster than all that are known."""
        return seconds < (1 - BETTER) * self.least


def worth_trying(now: TimedKernels, fusion: Fusion) -> int:
    """Ways to cut a fusion that are worth their time."""
    stores = sum(len(piece.stores) for piece in now.segmented.segments)
    of_one = NODE_S * max(len(fusion.nodes) * stores, 1)
    return max(int(CALLS * now.excess / of_one), FEWEST_TRIED)
