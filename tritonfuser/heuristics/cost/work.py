"""``KernelWork``: the instructions of a kernel's nodes, and ``ElementWork`` from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..bounds import Instructions
from ..problem import ElementWork, Problem


class NodeWork(NamedTuple):
    """Instructions of all nodes of a kernel with the same number of elements.

    Attributes
    ----------
    elements : int
        Elements of each of these nodes.
    before, after : float
        Instructions for an element, before and after the reductions: see ``ElementWork``.
    special_before, special_after : float
        Those of them that the special function unit executes.
    fast_before, fast_after : float
        Those of them that are issued at the full rate: see ``Instructions.full_rate``.
    reducing : float
        Instructions for an element of reductions and scans over so many elements.
    fast_reducing : float
        Those of ``reducing`` that are issued at the full rate.
    reductions, carried : int
        Numbers of these reductions and scans: see ``ElementWork``.
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
        """With the instructions of one more node; ``late`` if it depends on a reduction."""
        if late:
            return self._replace(
                after=self.after + more.issued,
                special_after=self.special_after + more.sfu,
                fast_after=self.fast_after + more.full_rate,
            )
        return self._replace(
            before=self.before + more.issued,
            special_before=self.special_before + more.sfu,
            fast_before=self.fast_before + more.full_rate,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelWork:
    """What a kernel computes. Element counts may be sizes that vary.

    Attributes
    ----------
    nodes : tuple of NodeWork
        Its nodes without random numbers.
    draws, lone_draws : int
        As in ``ElementWork``.
    """

    nodes: tuple[NodeWork, ...] = ()
    draws: int = 0
    lone_draws: int = 0


def element_work(work: KernelWork, problem: Problem) -> ElementWork:
    """The instructions for each element of a kernel's loop nest.

    A node with fewer elements, as the mean of a row, counts by its share of them. A reduction of
    results of rows does not count along the rows. Instructions are in units of the integer pipe,
    which is slower than the issue rate: those that are issued at the full rate count less.
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
        lone_draws=work.lone_draws,
    )


def _share(problem: Problem, elements: int, positions: int) -> float:
    """Elements of a node that are computed for each position of a kernel.

    A flat kernel computes broadcast values again at each position of its tile. In a tile of two
    sides this holds for values along the first side only; a value along the second side alone is
    computed once.
    """
    share = min(elements / positions, 1.0)
    if problem.is_flat and elements > 1 and elements != problem.crossing:
        return 1.0
    return share
