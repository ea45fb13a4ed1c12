"""What was found at a point, and the figures by which smoothness is judged."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..cases import size_name
from ..tables.records import SKIPPED

NAMES = ("ours", "shorter", "longer")
"""A point and its partners, in the order of their sizes."""

PEER = "compile"
JUMP = 1.3
"""Most that time per byte of a point and a partner may differ, where their bounds do not."""
FAST, LEAST = 0.95, 0.85
"""Times torch.compile's speed: most points should have the first, all the second."""
MOST_SLOW = 0.02
"""Share of the points that may be slower than ``FAST``."""


@dataclass(frozen=True)
class Found:
    """One point.

    Attributes
    ----------
    op, dtype : str
        What it is.
    sizes : list of list of int
        The point's size and those of its partners.
    bytes : dict
        Least bytes to move, by name.
    least : dict
        Seconds of the bound, by name.
    seconds : dict
        Median seconds, by name: the point, its partners, torch.compile. Those of a second timing,
        if there was one.
    first : dict, optional
        Those of the first timing then.
    failures : dict
        Why something has no time.
    """

    op: str
    dtype: str
    sizes: list[list[int]]
    bytes: dict[str, int]
    least: dict[str, float]
    seconds: dict[str, float]
    first: dict[str, float] | None = None
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``softmax 8192x4096 bfloat16``."""
        return f"{self.op} {size_name(self.sizes[0])} {self.dtype}"

    @property
    def is_complete(self) -> bool:
        """Whether all was timed, or failed by itself: nothing was skipped."""
        return NAMES[0] in self.seconds and SKIPPED not in self.failures.values()

    @property
    def jump(self) -> tuple[float, str]:
        """The largest factor between the time per byte of the point and of a partner, and which.

        Times over bounds are compared where that gives a smaller factor: then the bound differs.
        """
        found = [(self._factor(name), name) for name in NAMES[1:] if name in self.seconds]
        if NAMES[0] not in self.seconds or not found:
            return 1.0, ""
        return max(found)

    def _factor(self, partner: str) -> float:
        return min(self._apart(partner, self.bytes), self._apart(partner, self.least))

    def _apart(self, partner: str, scale: dict[str, int] | dict[str, float]) -> float:
        one, other = (self.seconds[name] / scale[name] for name in (NAMES[0], partner))
        return max(one / other, other / one)

    @property
    def against_peer(self) -> float | None:
        """torch.compile's time over ours; None where one is missing."""
        if NAMES[0] not in self.seconds or PEER not in self.seconds:
            return None
        return self.seconds[PEER] / self.seconds[NAMES[0]]

    @property
    def share_of_bound(self) -> float | None:
        """The bound over the time taken."""
        if NAMES[0] not in self.seconds:
            return None
        return self.least[NAMES[0]] / self.seconds[NAMES[0]]


def is_suspect(found: Found) -> bool:
    """Whether it misses a figure, and should be timed again."""
    against = found.against_peer
    return found.jump[0] > JUMP or (against is not None and against < FAST)
