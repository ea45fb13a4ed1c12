"""``ElementWork``: the instructions of a kernel for each element, and its reductions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ElementWork:
    """Instructions of a kernel for each element of its loop nest, and its reductions.

    Attributes
    ----------
    before, after : float
        Instructions before and after the reductions: of operands of reductions, and of all other
        values. In kernels that read rows more than once, the former are repeated in every pass.
    reducing : float
        Instructions of the reductions.
    special_before, special_after : float
        Those of ``before`` and ``after`` that the special function unit executes.
    reductions : int
        Reductions along rows, and scans.
    carried : int
        Those of ``reductions`` with an accumulator for every element of a step. Means and variances
        have accumulators for each thread instead.
    draws : int
        Random numbers.
    lone_draws : int
        Those of ``draws`` that take a Philox counter of their own, whatever the params.
    registers : float
        Factor on the registers that the cost model predicts. Above 1 where a compiled kernel of the
        segment took more.
    """

    before: float = 0.0
    after: float = 0.0
    reducing: float = 0.0
    special_before: float = 0.0
    special_after: float = 0.0
    reductions: int = 0
    carried: int = 0
    draws: int = 0
    lone_draws: int = 0
    registers: float = 1.0
