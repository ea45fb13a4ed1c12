"""The least time that a case can take: its bytes at the speed of this machine's copy, and more."""

from __future__ import annotations

from dataclasses import replace

import torch

from tritonfuser import devices
from tritonfuser.heuristics.bounds import Bound, bound
from tritonfuser.lowering.segments.segmented_fusion import SegmentedFusion
from tritonfuser.lowering.work import fusion_work


def least_time(
    cut: SegmentedFusion, moved: int, bandwidth: float, device: str, *, launches: int = 1
) -> Bound:
    """The bound of one kernel for all of a definition.

    Parameters
    ----------
    moved : int
        Bytes that it has to move, each once.
    bandwidth : float
        Of a copy on this machine, in bytes per second.
    device : str
        ``"cuda"`` or ``"cpu"``.
    launches : int
        0 for times that have no launch in them, those of a profiler.
    """
    work = replace(fusion_work(cut), read_bytes=moved, written_bytes=0, launches=launches)
    facts = replace(devices.of(torch.device(device)), bandwidth_bytes_per_s=bandwidth)
    return bound(work, facts)
