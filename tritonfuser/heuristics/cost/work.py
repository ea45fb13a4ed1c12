"""The instructions of a kernel, by the number of elements that its nodes compute."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..bounds import Instructions
from ..problem import ElementWork, Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeWork:
    """Instructions of all nodes of a kernel that have as many elements.

    Attributes
    ----------
    elements : int
        Elements of each of these nodes.
    before, after : float
        Instructions for an element of what the kernel's reductions need and none of their results,
        and of all else.
    special_before, special_after : float
        Those of them that the pipe of special functions takes.
    fast_before, fast_after : float
        Those of them that no pipe of half the issue rate takes: ``Instructions.full_rate``.
    reducing : float
        Instructions of the reductions and scans of so many elements, for each of them.
    fast_reducing : float
        As ``fast_before``.
    reductions, carried : int
        Of these, as in ``ElementWork``.
    """

    elements: int
    before: float = 0.0
    after: float = 0.0
    special_before: float = 0.0
    special_after: float = 0.0
    fast_before: float = 0.0
    fast_after: float = 0.0
    reducing: float = 0.0
    fast_reducing: float = 0.0
    reductions: int = 0
    carried: int = 0

    def add(self, more: Instructions, late: bool) -> NodeWork:
        """With the instructions of one more node."""
        if late:
            return replace(
                self,
                after=self.after + more.issued,
                special_after=self.special_after + more.sfu,
                fast_after=self.fast_after + more.full_rate,
            )
        return replace(
            self,
            before=self.before + more.issued,
            special_before=self.special_before + more.sfu,
            fast_before=self.fast_before + more.full_rate,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelWork:
    """What a kernel computes. Sizes that vary are open in it.

    Attributes
    ----------
    nodes : tuple of NodeWork
        Its nodes without random numbers.
    draws : int
        As in ``ElementWork``.
    """

    nodes: tuple[NodeWork, ...] = ()
    draws: int = 0


def element_work(work: KernelWork, problem: Problem) -> ElementWork:
    """The instructions for each element of a kernel's loop nest.

    What has fewer elements, as the mean of a row, counts by its share of them. A reduction of the
    results of rows counts for nothing along them. Instructions are as many of the integer pipe,
    which starts fewer in a clock than are issued, as take as long.
    """
    rates = problem.device.rates
    saved = max(1 - rates.integer / rates.issue, 0.0)
    positions = max(problem.parallel * max(problem.reduced, 1), 1)
    before = after = special_before = special_after = 0.0
    for node in work.nodes:
        share = _share(problem, node.elements, positions)
        before += (node.before - saved * node.fast_before) * share
        after += (node.after - saved * node.fast_after) * share
        special_before += node.special_before * share
        special_after += node.special_after * share
    along = [
        node for node in work.nodes if problem.reduced <= 1 or node.elements > problem.parallel
    ]
    return ElementWork(
        before=before,
        after=after,
        reducing=sum(node.reducing - saved * node.fast_reducing for node in along),
        special_before=special_before,
        special_after=special_after,
        reductions=sum(node.reductions for node in along),
        carried=sum(node.carried for node in along),
        draws=work.draws,
    )


def _share(problem: Problem, elements: int, positions: int) -> float:
    """Elements that are computed of a node for each position of a kernel.

    A flat kernel computes what is broadcast at each position of its tile. In a tile of two sides
    all threads along a column compute what lies along its rows; only what lies along the second
    side alone counts once.
    """
    share = min(elements / positions, 1.0)
    if problem.is_flat and elements > 1 and elements != problem.crossing:
        return 1.0
    return share
