"""What a step takes: its kernels by kind, the host, memory, and the first call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tritonfuser.frontend.vocabulary.units import bytes_text, seconds_text

from ..measure.kernel_times import KernelTimes, Ran, busy
from ..tables.formatting import human_ratio

_LIBRARY = re.compile(
    r"gemm|gemv|cutlass|cublas|cudnn|nvjet|xmma|flash|fmha|wgrad|dgrad|conv|splitk|sort|topk|radix",
    re.IGNORECASE,
)
"""Kernels that every contender takes from a library: products, convolutions, attention, sorts."""
_GENERATED = re.compile(r"s\d+_|triton_")
"""How the names of our kernels and of torch.compile's begin."""
_MOVES = ("Memcpy", "Memset")


@dataclass(frozen=True)
class StepTimes:
    """One step of one contender.

    Attributes
    ----------
    fused, torch, library : KernelTimes
        Kernels that were generated, those of torch's own ops with copies and fills by the driver,
        and those of libraries, per step.
    seconds : float
        Wall-clock time of a step, of steps that follow each other.
    gaps : float
        The part of it in which no kernel ran.
    peak : int
        Most bytes allocated during a step.
    first : float
        Seconds of the first step, compilation included.
    """

    fused: KernelTimes
    torch: KernelTimes
    library: KernelTimes
    seconds: float
    gaps: float
    peak: int
    first: float

    @property
    def launches(self) -> float:
        """Kernels of a step, copies and fills among them."""
        return self.fused.count + self.torch.count + self.library.count

    @property
    def unfused(self) -> float:
        """Seconds of a step in kernels that are no library's: fusion may do what torch did."""
        return self.fused.seconds + self.torch.seconds

    def row(self, ours: StepTimes | None) -> dict[str, str]:
        """The line of the table; ratios say how many times as long as ours it takes."""
        cells = {
            "launches": f"{self.launches:g}",
            "fused": seconds_text(self.fused.seconds),
            "torch's": seconds_text(self.torch.seconds),
            "library": seconds_text(self.library.seconds),
            "gaps": seconds_text(self.gaps),
            "step": seconds_text(self.seconds),
            "peak": bytes_text(self.peak),
            "first call": seconds_text(self.first),
        }
        ratios = {} if ours is None else self._ratios(ours)
        names = "fused vs ours", "with torch's", "step vs ours"
        return cells | {name: ratios.get(name, "") for name in names}

    def _ratios(self, ours: StepTimes) -> dict[str, str]:
        pairs = {
            "fused vs ours": (self.fused.seconds, ours.fused.seconds),
            "with torch's": (self.unfused, ours.unfused),
            "step vs ours": (self.seconds, ours.seconds),
        }
        return {name: human_ratio(a / b) for name, (a, b) in pairs.items() if a and b}


def is_library(name: str) -> bool:
    """Whether a kernel of that name is a library's; generated ones never are."""
    return not _GENERATED.match(name) and bool(_LIBRARY.search(name))


def by_kind(found: Sequence[Ran], steps: int) -> dict[str, KernelTimes]:
    """Kernels of several steps by kind, per step: ``fused``, ``torch`` and ``library``.

    Copies and fills by the driver are torch's: they are data movement that fusion may avoid. Copies
    from the host do not count.
    """
    kinds: dict[str, list[Ran]] = {"fused": [], "torch": [], "library": []}
    for ran in found:
        if not ran.name.startswith("Memcpy HtoD"):
            kinds[_kind(ran.name)].append(ran)
    return {
        name: KernelTimes(len(kind) / steps, busy((ran.start, ran.end) for ran in kind) / steps)
        for name, kind in kinds.items()
    }


def _kind(name: str) -> str:
    if _GENERATED.match(name):
        return "fused"
    moves = name.startswith(_MOVES)
    return "library" if is_library(name) and not moves else "torch"
