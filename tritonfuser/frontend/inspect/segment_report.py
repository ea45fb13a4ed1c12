"""``SegmentReport``: what is known of one segment of a run, as data."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import SourceLoc
from ...heuristics.bounds import Bound
from ...heuristics.cost.model import KernelTime
from ...heuristics.params import HeuristicParams


@dataclass(frozen=True)
class SegmentReport:
    """One segment: a kernel, a call into torch, or nothing to launch.

    Attributes
    ----------
    name : str
        ``s0``, ``s1``, ...
    kernel : str
        The kernel's name; empty where torch runs it or nothing is launched.
    scheduler : str
        The first that takes it.
    refusals : tuple of str
        Why the schedulers before it do not: ``"scan: it has no scan"``.
    reason : str
        What is in it.
    overruled : str
        By what the cost model chose other params than the scheduler proposes; empty where it did
        not.
    cut : str
        Why it is not in a kernel before it; empty where there is no other to be in.
    ops : tuple of str
        Its ops by name, in recording order.
    lines : tuple of SourceLoc
        The lines of the program that recorded them, each once.
    params : HeuristicParams
        Tile sizes.
    grid : tuple of int, optional
        Programs along x, y, z; None where no kernel is launched.
    bytes_read, bytes_written : int
        Bytes of tensors it has to move, each element once.
    predicted_seconds : float
        Those bytes at the device's bandwidth: what a kernel bound by memory takes at least.
    bound : Bound
        The least time that any kernel for the segment takes, and what limits it: memory, a kind of
        instructions, matrix products, the launch.
    model : KernelTime, optional
        The time of the kernel by the cost model, and how long each resource of the device is busy.
        None where torch runs the segment, and in the interpreter.
    measured_seconds : float, optional
        Median on the GPU, the L2 cache cold when the run starts; None where it was not measured.
        Of a launch of several segments the first has that of all.
    finishes, beside : str
        The segment whose kernel computes it too, by its last programs or by others; empty for one
        of its own.
    """

    name: str
    kernel: str
    scheduler: str
    refusals: tuple[str, ...]
    reason: str
    overruled: str
    cut: str
    ops: tuple[str, ...]
    lines: tuple[SourceLoc, ...]
    params: HeuristicParams
    grid: tuple[int, int, int] | None
    bytes_read: int
    bytes_written: int
    predicted_seconds: float
    bound: Bound
    model: KernelTime | None = None
    measured_seconds: float | None = None
    finishes: str = ""
    beside: str = ""

    @property
    def share_of_bound(self) -> float | None:
        """The least time by the measured time: at 1.0 nothing is left to gain.

        By the model's time where nothing was measured. None without either.
        """
        if self.measured_seconds is None and self.model is not None:
            return self.bound.share(float(self.model.seconds))
        return self.bound.share(self.measured_seconds)

    @property
    def speed_of_light(self) -> float | None:
        """Predicted by measured time: 1.0 moves its bytes as fast as a copy does."""
        if not self.measured_seconds:
            return None
        return self.predicted_seconds / self.measured_seconds
