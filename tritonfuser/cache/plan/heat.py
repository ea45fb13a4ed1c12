"""``Heat``: the count of calls after which ``HotSizes`` looks at a size again."""

from __future__ import annotations

from dataclasses import dataclass

from ...lowering.pipeline import Lowered


@dataclass(slots=True, eq=False)
class Heat:
    """What is known of the time that the kernels of one size take; for ``HotSizes``.

    A call takes one from ``left``, and does nothing else with it. Threads that lose a call do no
    harm.

    Attributes
    ----------
    left : int
        Calls before the next look, which is in the call that makes it negative.
    seconds : float
        A run by the cost model, from the first look on.
    alone : Lowered, optional
        The kernels for this size alone, from the second look on.
    gain : float
        Share of the time that these are taken to save.
    """

    left: int
    seconds: float = 0.0
    alone: Lowered | None = None
    gain: float = 0.0
