"""How reductions are split, in plain numbers: the questions that ``splits.py`` asks by ``choose``.

A question is asked at the sizes of a run, and again at other sizes, so its facts are ints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from ....heuristics import schedulers
from ....heuristics.problem import Problem
from ....heuristics.programs import leaves_idle
from ...passes.splits.factors import interleaved_factors, is_near, splits_well
from ...passes.splits.parts import Interleaved, Padded, Parts, Remainder, exact_parts, part_count
from ...passes.splits.split_factors import place_of_longest
from .parts_with_remainder import aligned_parts, neighbouring_parts, parts_at_size
from .uneven_shares import (
    UNALIGNED_LOSS,
    UNEVEN_LOSS,
    equal_shares,
    programs_of_shares,
    sequential_rows,
    sequential_rows_of_shares,
    shares_at,
    uneven_shares,
)


@dataclass(frozen=True)
class Rows:
    """The facts that decide how the reductions of a problem are split.

    Attributes
    ----------
    problem : Problem
        The problem.
    extents : tuple of int
        The extents that each reduction reduces, outermost first.
    known : tuple of int
        For each extent, its greatest known divisor at all sizes.
    allows_padding : bool
        Whether a dim may be padded to a multiple of the parts.
    moments : bool
        Whether means and variances are among the results. Padded parts of these need more
        instructions than equal parts.
    allows_remainder : bool
        Whether parts may be equal and leave a remainder, which the second step reduces too.
    allows_uneven : bool
        Whether the last share of rows may have fewer rows than the others.
    varies : bool
        Whether sizes vary between runs.
    """

    problem: Problem
    extents: tuple[int, ...]
    known: tuple[int, ...]
    allows_padding: bool
    moments: bool = False
    allows_remainder: bool = False
    allows_uneven: bool = False
    varies: bool = False


def wanted_parts(problem: Problem) -> tuple[int, int]:
    """``(count, interleave)``: parts that the scheduler wants, and a divisor of their number.

    ``interleave`` is 0 where parts have neighbouring elements.
    """
    return schedulers.split(problem), schedulers.interleave(problem)


def are_shared(rows: Rows) -> bool:
    """Whether rows can be shared by about as many programs as wanted, or by enough of them."""
    count, interleave = wanted_parts(rows.problem)
    found = part_count(exact_parts(rows.extents, count, interleave, rows.known))
    if 4 * found >= 3 * count:
        return True
    each = schedulers.propose(rows.problem).row_parts
    programs = found * rows.problem.outer_batch * each
    if not leaves_idle(rows.problem, programs):
        return True
    shares = _uneven_shares(rows, count, interleave)
    if shares is None:
        return False
    programs = programs_of_shares(rows.extents, shares) * rows.problem.outer_batch * each
    return not leaves_idle(rows.problem, programs)


def _uneven_shares(rows: Rows, count: int, interleave: int) -> Padded | None:
    """The best shares where the last one may have fewer rows; None where that is not allowed."""
    if not rows.allows_uneven:
        return None
    return uneven_shares(rows.problem, rows.extents, count, interleave, rows.varies)


def shares_of(rows: Rows, count: int, interleave: int) -> Parts:
    """The shares of rows for reductions over them: even ones, unless uneven ones are faster."""
    problem, extents = rows.problem, rows.extents
    even = exact_parts(extents, count, interleave, rows.known)
    exact = part_count(even)
    found = _uneven_shares(rows, count, interleave)
    if found is None:
        return even
    times = (
        sequential_rows(problem, exact, prod(extents) // exact, count),
        sequential_rows_of_shares(problem, extents, found, count),
    )
    aligned = (interleave < 2 or exact % interleave == 0, interleave < 2 or found.interleaved)
    even_time, uneven_time = (
        n if is_aligned else n * UNALIGNED_LOSS
        for n, is_aligned in zip(times, aligned, strict=True)
    )
    return found if UNEVEN_LOSS * uneven_time <= even_time else even


def best_parts(rows: Rows) -> Parts:
    """How to split the reductions. The count of ``Padded`` and ``Remainder`` parts is left at 0.

    ``count_at`` gives it for each size. A row is split along its outermost dim, so that parts are
    contiguous. An extent that varies has few known divisors, and is padded.
    """
    count, interleave = wanted_parts(rows.problem)
    if count < 2:
        return 1
    if rows.allows_uneven:
        found = shares_of(rows, count, interleave)
        return replace(found, count=0) if isinstance(found, Padded) else found
    free = rows.allows_padding and not rows.moments
    many = rows.extents[0] > 2 * count
    remainder = Remainder(0, aligned_parts(rows.problem, count, interleave))
    if free and rows.known[0] != rows.extents[0] and many:
        return (
            remainder
            if rows.allows_remainder
            else Padded(0, 0, interleaved=1 < interleave <= count)
        )
    exact = (
        prod(interleaved_factors(rows.extents, count, interleave, rows.known)) if interleave else 1
    )
    if exact > 1 and (not rows.allows_padding or is_near(exact, count)):
        return Interleaved(exact, interleave)
    if not rows.allows_padding:
        return exact_parts(rows.extents, count, 0, rows.known)
    found = neighbouring_parts(rows.problem, rows.extents, count, rows.known)
    if isinstance(found, int) and not splits_well(rows.extents, count, rows.known):
        if rows.allows_remainder and many:
            return remainder
        return Padded(place_of_longest(rows.extents), 0)
    return found


def count_at(facts: tuple[Padded | Remainder, Rows]) -> int:
    """The number of parts: 2 or more, each of two elements or more where there are four.

    Padded parts always have a row more than ``rows // count``, so that there is padding at all
    sizes. A count that divides the rows would give, for instance, parts of 9 rows where 8 are
    wanted, and these need a block of 16.
    """
    padded, rows = facts
    count, interleave = wanted_parts(rows.problem)
    if isinstance(padded, Remainder):
        count = max(min(count, (rows.extents[0] - 1) // 2), 2)
        return parts_at_size(rows.problem, rows.extents[0], count, padded.multiple_of)
    if rows.allows_uneven:
        return shares_at(rows.extents, padded, count, interleave)
    size = rows.extents[padded.place]
    count = max(min(count, size // 2), 2)
    if padded.interleaved and count > interleave:
        count -= count % interleave
        return count + interleave if size % count == 0 else count
    return equal_shares(size, count)
