"""``KernelCost``: what the kernel of a segment has to do at least, as the cost model counts it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...heuristics.cost.work import KernelWork


@dataclass(frozen=True, kw_only=True)
class KernelCost:
    """What a segment takes whatever its params.

    Attributes
    ----------
    work : KernelWork
        The instructions of its nodes, as the cost model counts them. None of what torch runs.
    bytes_read, bytes_written : int
        Bytes of tensors that it has to move, each element once.
    depth : int
        The longest chain of reductions along its rows. 0 without reductions.
    """

    work: KernelWork = field(default=KernelWork())
    bytes_read: int = 0
    bytes_written: int = 0
    depth: int = 0
