"""``TimedChoices``: the segmentations of a fusion that were tried, with their predicted times."""

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
"""Calls of a definition that pay for the search, if it saves all excess time of its kernels."""

NODE_S = 1.5e-4
"""Seconds to try a segmentation, for each node times each store of the first one: 0.08 to 0.33 ms
of twelve definitions of random graphs and models, on a CPU of 2.5 GHz."""

FEWEST_TRIED = 8
"""Segmentations that are tried, at least."""


@dataclass(frozen=True)
class TimedChoices:
    """The segmentations of choices with their times, each made once.

    Attributes
    ----------
    device : DeviceProperties
        The device.
    base : callable
        The fusion with some reductions in pieces, before any choice's values are put in memory.
    make : callable
        Segments the fusion by a choice.
    known : dict of Choice to TimedKernels
        The segmentations that were made; the first is the heuristics'.
    most : float
        Most segmentations to make beside the first.
    should_continue : callable
        Whether there is time for another one.
    """

    device: DeviceProperties
    base: Callable[[tuple[str, ...]], Fusion]
    make: Callable[[Choice], SegmentedFusion]
    known: dict[Choice, TimedKernels]
    most: float = inf
    should_continue: Callable[[], bool] = lambda: True

    @property
    def may_try(self) -> bool:
        """Whether the time for another segmentation is left."""
        return len(self.known) <= self.most and self.should_continue()

    def __call__(self, choice: Choice) -> TimedKernels:
        if choice not in self.known:
            self.known[choice] = timed_kernels(self.make(choice), self.device)
        return self.known[choice]

    @property
    def least(self) -> float:
        """Seconds of the fastest segmentation so far."""
        return min(each.seconds for each in self.known.values())

    def choice(self, made: TimedKernels) -> Choice:
        """The first choice of a segmentation."""
        return next(choice for choice, found in self.known.items() if found is made)

    def may_be_beaten_by(self, seconds: float) -> bool:
        """Whether kernels of so many seconds would be faster than all so far.

        What a change may save is an estimate, so a change is tried if it may save anything: of 84
        random definitions four take 0.86 to 0.97 of the predicted time by those that may save less
        than a tenth, for a seventh more time of the search.
        """
        return seconds < self.least


def worth_trying(now: TimedKernels, fusion: Fusion) -> int:
    """Most segmentations to try: as many as ``CALLS`` calls may pay for."""
    stores = sum(len(segment.stores) for segment in now.segmented.segments)
    of_one = NODE_S * max(len(fusion.nodes) * stores, 1)
    return max(int(CALLS * now.excess / of_one), FEWEST_TRIED)
