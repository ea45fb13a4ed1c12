"""How rows are split, in plain numbers: the functions that ``splits.py`` asks by ``choose``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from ....heuristics import schedulers
from ....heuristics.problem import Problem
from ....heuristics.programs import leaves_idle
from ...passes.splits.factors import interleaved_factors, is_near, splits_well
from ...passes.splits.split_factors import (
    Interleaved,
    Padded,
    Parts,
    Remainder,
    exact_parts,
    longest_extent,
    number_of,
)
from .parts_with_remainder import aligned_parts, neighbouring_parts, parts_at_size
from .uneven_shares import (
    UNALIGNED_LOSS,
    UNEVEN_LOSS,
    equal_shares,
    programs_of_shares,
    sequential_rows,
    shared_rows,
    shares_at,
    uneven_shares,
)


@dataclass(frozen=True)
class Rows:
    """What decides how the rows of a problem are split.

    Attributes
    ----------
    problem : Problem
        The problem.
    extents : tuple of int
        The reduced extents of each reduction.
    known : tuple of int
        What divides each of them at all sizes.
    paddable : bool
        Whether a dim may be padded.
    moments : bool
        Whether means and variances are among the results. Of padded parts they take more than of
        parts of equal size.
    equal : bool
        Whether the second step may reduce elements behind the parts instead of padding.
    uneven : bool
        Whether programs may share rows out that their number does not divide.
    varies : bool
        Whether sizes vary.
    """

    problem: Problem
    extents: tuple[int, ...]
    known: tuple[int, ...]
    paddable: bool
    moments: bool = False
    equal: bool = False
    uneven: bool = False
    varies: bool = False


def parts(problem: Problem) -> tuple[int, int]:
    """In how many parts the reductions should be done, and what that should be a multiple of."""
    return schedulers.split(problem), schedulers.interleave(problem)


def are_shared(rows: Rows) -> bool:
    """Whether the extents have divisors for about the parts wanted, and for programs enough."""
    count, of = parts(rows.problem)
    found = number_of(exact_parts(rows.extents, count, of, rows.known))
    if 4 * found >= 3 * count:
        return True
    each = schedulers.propose(rows.problem).row_parts
    programs = found * rows.problem.outer_batch * each
    if not leaves_idle(rows.problem, programs):
        return True
    way = _uneven(rows, count, of)
    if way is None:
        return False
    programs = programs_of_shares(rows.extents, way) * rows.problem.outer_batch * each
    return not leaves_idle(rows.problem, programs)


def _uneven(rows: Rows, count: int, of: int) -> Padded | None:
    """How to share rows out where the last share may have fewer."""
    if not rows.uneven:
        return None
    return uneven_shares(rows.problem, rows.extents, count, of, rows.varies)


def shares_of(rows: Rows, count: int, of: int) -> Parts:
    """How to share rows out for reductions over them: evenly where that gives shares enough."""
    problem, extents = rows.problem, rows.extents
    even = exact_parts(extents, count, of, rows.known)
    exact = number_of(even)
    found = _uneven(rows, count, of)
    if found is None:
        return even
    times = (
        sequential_rows(problem, exact, prod(extents) // exact, count),
        shared_rows(problem, extents, found, count),
    )
    alike = (of < 2 or exact % of == 0, of < 2 or found.interleaved)
    begun = [n if begin else n * UNALIGNED_LOSS for n, begin in zip(times, alike, strict=True)]
    return found if UNEVEN_LOSS * begun[1] <= begun[0] else even


def way_of(rows: Rows) -> Parts:
    """How to split; the number of padded parts is left open.

    A row is split along its outermost dim, so that parts lie together. Where its extent varies it
    has few divisors at all sizes, and is padded.
    """
    count, of = parts(rows.problem)
    if count < 2:
        return 1
    if rows.uneven:
        found = shares_of(rows, count, of)
        return replace(found, count=0) if isinstance(found, Padded) else found
    free = rows.paddable and not rows.moments
    many = rows.extents[0] > 2 * count
    remainder = Remainder(0, aligned_parts(rows.problem, count, of))
    if free and rows.known[0] != rows.extents[0] and many:
        return remainder if rows.equal else Padded(0, 0, interleaved=1 < of <= count)
    exact = prod(interleaved_factors(rows.extents, count, of, rows.known)) if of else 1
    if exact > 1 and (not rows.paddable or is_near(exact, count)):
        return Interleaved(exact, of)
    if not rows.paddable:
        return exact_parts(rows.extents, count, 0, rows.known)
    found = neighbouring_parts(rows.problem, rows.extents, count, rows.known)
    if isinstance(found, int) and not splits_well(rows.extents, count, rows.known):
        if rows.equal and many:
            return remainder
        return Padded(longest_extent(rows.extents), 0)
    return found


def parts_at(facts: tuple[Padded | Remainder, Rows]) -> int:
    """The number of parts: 2 or more, each of two elements or more where there are four.

    Padded parts have a row more than whole ones, so that there is padding at all sizes: a number
    that divides the rows would make parts of 9 rows where 8 are wanted, which take a block of 16.
    """
    padded, rows = facts
    count, of = parts(rows.problem)
    if isinstance(padded, Remainder):
        count = max(min(count, (rows.extents[0] - 1) // 2), 2)
        return parts_at_size(rows.problem, rows.extents[0], count, padded.multiple_of)
    if rows.uneven:
        return shares_at(rows.extents, padded, count, of)
    size = rows.extents[padded.place]
    count = max(min(count, size // 2), 2)
    if padded.interleaved and count > of:
        count -= count % of
        return count + of if size % count == 0 else count
    return equal_shares(size, count)
