"""What was found of a case, and the figures by which tuning is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["params", "schedule"]
"""That of ``fd.autotune``."""
SHORT, LONG = 5.0, 60.0
"""Seconds of the two tunings."""
NEAR = 1.03
"""Most that the short tuning's schedule may take, at the median, in times of the long one's."""
HEURISTIC = 1.05
"""The same of the heuristics' schedule."""
NEVER_BELOW = 0.98
"""Least of the heuristics' time over that of a tuned schedule, in every case."""
CANDIDATES = 60
"""Least candidates of one kernel that are timed in ``PER_SECONDS``."""
PER_SECONDS = 10.0


@dataclass(frozen=True)
class Tuning:
    """One tuning of a case.

    Attributes
    ----------
    budget, spent : float
        Seconds that were given, and that it took.
    tried, timed : int
        Schedules other than the heuristics', and those of them that ran.
    change : str
        How the schedule differs from the heuristics'; empty where it does not.
    seconds : float
        Of the schedule, timed in the same rounds as the heuristics' and the other tuning's.
    """

    budget: float
    spent: float
    tried: int
    timed: int
    change: str
    seconds: float


@dataclass(frozen=True)
class Found:
    """One case.

    Attributes
    ----------
    name, origin : str
        The case; ``"suite"`` or ``"random"``.
    kernels : int
        Of the heuristics' schedule.
    bytes : int
        Of inputs and outputs.
    heuristic : float
        Seconds of the heuristics' schedule.
    tunings : tuple of Tuning
        The shorter one first.
    failure : str
        Why there are no times; empty where there are.
    """

    name: str
    origin: str
    kernels: int = 0
    bytes: int = 0
    heuristic: float = 0.0
    tunings: tuple[Tuning, ...] = field(default_factory=tuple)
    failure: str = ""

    @property
    def short(self) -> Tuning:
        return self.tunings[0]

    @property
    def long(self) -> Tuning:
        return self.tunings[-1]

    @property
    def best(self) -> float:
        """Seconds of the long tuning's best."""
        return self.long.seconds

    @property
    def least_gain(self) -> float:
        """The heuristics' time over that of a tuned schedule, the slower one's."""
        return min(self.heuristic / tuning.seconds for tuning in self.tunings)

    @property
    def pace(self) -> float:
        """Schedules that the long tuning timed in ``PER_SECONDS``."""
        return self.long.timed / self.long.spent * PER_SECONDS


def parsed(item: dict[str, Any]) -> Found:
    """What ``dataclasses.asdict`` made of one.

    Raises
    ------
    TypeError, KeyError
        It is something else.
    """
    return Found(**{**item, "tunings": tuple(Tuning(**tuning) for tuning in item["tunings"])})
