"""``Rationale``: why a segment is what it is, in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rationale:
    """Why a segment has its nodes, its scheduler and its params.

    For reports, and the head of the kernel's text: nothing is decided by it.

    Attributes
    ----------
    reason : str
        Why these nodes are together.
    cut : str
        Why the kernels before it did not take it in. Empty where there were none.
    refusals : tuple of str
        Why each scheduler before the chosen one does not take it.
    overruled : str
        By what the cost model chose other params than the scheduler proposes. Empty where it did
        not.
    """

    reason: str
    cut: str = ""
    refusals: tuple[str, ...] = ()
    overruled: str = ""
