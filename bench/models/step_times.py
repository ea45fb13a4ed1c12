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
    fused, library : KernelTimes
        Kernels that are no library's, and those that are, per step.
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
    library: KernelTimes
    seconds: float
    gaps: float
    peak: int
    first: float

    def row(self, ours: StepTimes | None) -> dict[str, str]:
        """The line of the table; ratios say how many times as long as ours it takes."""
        cells = {
            "launches": f"{self.fused.count + self.library.count:g}",
            "fused": seconds_text(self.fused.seconds),
            "library": seconds_text(self.library.seconds),
            "gaps": seconds_text(self.gaps),
            "step": seconds_text(self.seconds),
            "peak": bytes_text(self.peak),
            "first call": seconds_text(self.first),
        }
        if ours is None or ours.fused.seconds == 0:
            return {**cells, "fused vs ours": "", "step vs ours": ""}
        return {
            **cells,
            "fused vs ours": human_ratio(self.fused.seconds / ours.fused.seconds),
            "step vs ours": human_ratio(self.seconds / ours.seconds),
        }


def is_library(name: str) -> bool:
    """Whether a kernel of that name is a library's; generated ones never are."""
    return not _GENERATED.match(name) and bool(_LIBRARY.search(name))


def by_kind(found: Sequence[Ran], steps: int) -> tuple[KernelTimes, KernelTimes]:
    """Kernels of several steps as those that are fused and those of libraries, per step.

    Copies and fills by the driver count as fused: they are data movement that fusion may avoid.
    """
    kinds: tuple[list[Ran], list[Ran]] = ([], [])
    for ran in found:
        if not ran.name.startswith("Memcpy HtoD"):
            kinds[is_library(ran.name) and not ran.name.startswith(_MOVES)].append(ran)
    fused, library = (
        KernelTimes(len(kind) / steps, busy((ran.start, ran.end) for ran in kind) / steps)
        for kind in kinds
    )
    return fused, library
