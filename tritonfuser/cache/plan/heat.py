"""``Heat``: the count of calls after which ``HotSizes`` looks at a size again."""

from __future__ import annotations

from dataclasses import dataclass

from ...lowering.lowered import Lowered


@dataclass(slots=True, eq=False)
class Heat:
    """The state of one size in ``HotSizes``: its count, and what the looks found.

    A call decrements ``left`` and does nothing else with it. Threads may lose a count, which does
    no harm.

    Attributes
    ----------
    left : int
        Calls before the next look. The call that makes it negative takes the look.
    seconds : float
        The predicted time of a run. Set by the first look.
    alone : Lowered, optional
        The kernels with constant sizes. Set by the second look.
    gain : float
        The share of the time that these are taken to save. Set by the second look.
    """

    left: int
    seconds: float = 0.0
    alone: Lowered | None = None
    gain: float = 0.0
