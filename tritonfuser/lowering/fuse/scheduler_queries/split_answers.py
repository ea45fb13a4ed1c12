"""How reductions are split, in plain numbers: the answers to the questions of ``splits.py``.

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
class SplitFacts:
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


def are_shared(facts: SplitFacts) -> bool:
    """Whether rows can be shared by about as many programs as wanted, or by enough of them."""
    count, interleave = wanted_parts(facts.problem)
    found = part_count(exact_parts(facts.extents, count, interleave, facts.known))
    if 4 * found >= 3 * count:
        return True
    each = schedulers.propose(facts.problem).row_parts
    programs = found * facts.problem.outer_batch * each
    if not leaves_idle(facts.problem, programs):
        return True
    shares = _uneven_shares(facts, count, interleave)
    if shares is None:
        return False
    programs = programs_of_shares(facts.extents, shares) * facts.problem.outer_batch * each
    return not leaves_idle(facts.problem, programs)


def _uneven_shares(facts: SplitFacts, count: int, interleave: int) -> Padded | None:
    """The best shares where the last one may have fewer rows; None where that is not allowed."""
    if not facts.allows_uneven:
        return None
    return uneven_shares(facts.problem, facts.extents, count, interleave, facts.varies)


def shares_of(facts: SplitFacts, count: int, interleave: int) -> Parts:
    """The shares of rows for reductions over them: even ones, unless uneven ones are faster."""
    problem, extents = facts.problem, facts.extents
    even = exact_parts(extents, count, interleave, facts.known)
    exact = part_count(even)
    found = _uneven_shares(facts, count, interleave)
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


def best_parts(facts: SplitFacts) -> Parts:
    """How to split the reductions. The count of ``Padded`` and ``Remainder`` parts is left at 0.

    ``count_at`` gives it for each size. A row is split along its outermost dim, so that parts are
    contiguous. An extent that varies has few known divisors, and is padded.
    """
    count, interleave = wanted_parts(facts.problem)
    if count < 2:
        return 1
    if facts.allows_uneven:
        found = shares_of(facts, count, interleave)
        return replace(found, count=0) if isinstance(found, Padded) else found
    if not facts.allows_padding:
        return exact_parts(facts.extents, count, interleave, facts.known)
    return _padded_if_needed(facts, count, interleave)


def _padded_if_needed(facts: SplitFacts, count: int, interleave: int) -> Parts:
    """Parts that divisors give; padded ones, or a remainder, where divisors are too few."""
    many = facts.extents[0] > 2 * count
    remainder = Remainder(0, aligned_parts(facts.problem, count, interleave))
    if not facts.moments and facts.known[0] != facts.extents[0] and many:
        interleaved = 1 < interleave <= count
        return remainder if facts.allows_remainder else Padded(0, 0, interleaved)
    if interleave:
        exact = prod(interleaved_factors(facts.extents, count, interleave, facts.known))
        if exact > 1 and is_near(exact, count):
            return Interleaved(exact, interleave)
    found = neighbouring_parts(facts.problem, facts.extents, count, facts.known)
    if isinstance(found, int) and not splits_well(facts.extents, count, facts.known):
        if facts.allows_remainder and many:
            return remainder
        return Padded(place_of_longest(facts.extents), 0)
    return found


def count_at(question: tuple[Padded | Remainder, SplitFacts]) -> int:
    """The number of parts: 2 or more, each of two elements or more where there are four.

    Padded parts always have a row more than ``rows // count``, so that there is padding at all
    sizes. A count that divides the rows would give, for instance, parts of 9 rows where 8 are
    wanted, and these need a block of 16.
    """
    parts, split = question
    count, interleave = wanted_parts(split.problem)
    if isinstance(parts, Remainder):
        count = max(min(count, (split.extents[0] - 1) // 2), 2)
        return parts_at_size(split.problem, split.extents[0], count, parts.multiple_of)
    if split.allows_uneven:
        return shares_at(split.extents, parts, count, interleave)
    size = split.extents[parts.place]
    count = max(min(count, size // 2), 2)
    if parts.interleaved and count > interleave:
        count -= count % interleave
        return count + interleave if size % count == 0 else count
    return equal_shares(size, count)
