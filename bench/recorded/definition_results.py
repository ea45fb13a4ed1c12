"""Results of the recorded definitions: the rows of the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tritonfuser.frontend.vocabulary.units import bytes_text, seconds_text

from ..measure.kernel_times import KernelTimes
from ..tables.formatting import human_ratio
from ..tables.records import OURS

EAGER, COMPILED = "eager", "compile"
ALL = (OURS, EAGER, COMPILED)
TOLERATED = 2e-2
"""Largest error that needs no error analysis."""


@dataclass(frozen=True)
class SegmentLine:
    """One segment of a definition: its scheduler, number of ops and params."""

    name: str
    scheduler: str
    ops: int
    params: str


@dataclass(frozen=True)
class Result:
    """The result of one definition, checked against float64 and timed.

    Attributes
    ----------
    calls : int
        Number of runs in the step that it was recorded in.
    size : str
        The size of the model that it was recorded at.
    held_out : bool
        Whether the model is held out: lines of its definitions are not shown.
    first_calls : dict
        On a GPU: seconds of the first call by contender, beside those of other processes.
    kernels : int
        Number of tritonfuser's kernels.
    bytes : int
        Bytes that these kernels move.
    least : int
        Minimum bytes: every input and every output once.
    bandwidth : float, optional
        Bandwidth of a copy on the same GPU, in bytes per second.
    bound : float, optional
        Least seconds that any kernel could take there, its launch left out.
    limit : str
        What ``bound`` is the time of: memory, or instructions of one kind.
    error : float, optional
        Largest error of tritonfuser.
    compiled_error : float, optional
        Largest error of the compiled function; None for definitions with random numbers.
    explained : bool, optional
        Whether rounding explains an error above ``TOLERATED``, element by element: what
        ``fd.validate`` says. None where the error is smaller, or the analysis has no memory.
    times : dict
        Number and time of kernels by contender: ours, eager, compile.
    failures : dict
        Error text of each contender without a time.
    first_call : float, optional
        Without a GPU: seconds of the first call, lowering included.
    registers, spilled : int, optional
        Without a GPU: most registers and spilled bytes of any kernel compiled for ``arch``.
    """

    name: str
    model: str
    calls: int
    reduced: bool
    ops: int
    kernels: int
    segments: tuple[SegmentLine, ...]
    bytes: int
    least: int
    bandwidth: float | None = None
    bound: float | None = None
    limit: str = ""
    error: float | None = None
    compiled_error: float | None = None
    explained: bool | None = None
    times: dict[str, KernelTimes] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    first_call: float | None = None
    registers: int | None = None
    spilled: int | None = None
    size: str = ""
    held_out: bool = False
    first_calls: dict[str, float] = field(default_factory=dict)

    def ratio(self, peer: str) -> float | None:
        """Time of the peer's kernels over the time of tritonfuser's; None where one has none."""
        if OURS not in self.times or peer not in self.times:
            return None
        ours, theirs = self.times[OURS].seconds, self.times[peer].seconds
        return theirs / ours if ours > 0 and theirs > 0 else None

    @property
    def share(self) -> float | None:
        """Time of a copy of the minimum bytes over the time taken; None without a kernel."""
        return None if self.traffic is None or not self._seconds else self.traffic / self._seconds

    @property
    def share_of_bound(self) -> float | None:
        """The least time over the time taken; None without a kernel."""
        return None if self.bound is None or not self._seconds else self.bound / self._seconds

    @property
    def _seconds(self) -> float:
        """Of tritonfuser's kernels. 0 where it has none, or was not timed."""
        return self.times[OURS].seconds if OURS in self.times else 0.0

    @property
    def traffic(self) -> float | None:
        """Seconds of a copy of the minimum bytes."""
        return None if self.bandwidth is None else self.least / self.bandwidth

    def row(self) -> dict[str, str]:
        """The line of the table."""
        cells = {
            "definition": self.name + (" (reduced)" if self.reduced else ""),
            "calls": str(self.calls),
            "ops": str(self.ops),
            "kernels": str(self.kernels),
            "moved": bytes_text(self.bytes),
            "max error": "" if self.error is None else f"{self.error:.1e}",
        }
        if self.first_call is not None:
            return cells | {
                "first call": seconds_text(self.first_call),
                "registers": str(self.registers),
                "spilled": str(self.spilled),
            }
        return cells | self._timed()

    def _timed(self) -> dict[str, str]:
        counts = {f"{who} kernels": self._of(who, _count) for who in (EAGER, COMPILED)}
        seconds = {who: self._of(who, _time) for who in ALL}
        reached = self.share_of_bound
        return {
            **counts,
            **seconds,
            "% of SOL": "" if self.share is None else f"{100 * self.share:.0f}",
            "% of bound": "" if reached is None else f"{100 * reached:.0f}",
            "limited by": self.limit,
            "vs eager": human_ratio(self.ratio(EAGER)),
            "vs compile": human_ratio(self.ratio(COMPILED)),
        }

    def _of(self, who: str, show: Callable[[KernelTimes], str]) -> str:
        if who in self.failures:
            return "failed"
        return show(self.times[who]) if who in self.times else ""


def _count(times: KernelTimes) -> str:
    return f"{times.count:g}"


def _time(times: KernelTimes) -> str:
    return seconds_text(times.seconds)
