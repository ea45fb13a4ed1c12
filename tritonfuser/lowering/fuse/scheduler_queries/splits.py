"""How the reductions of a group are split into two steps, and whether that is faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from ....device import CACHE_LINE_BYTES
from ....heuristics import schedulers
from ....heuristics.integers import ceil_div
from ....heuristics.problem import Problem
from ....heuristics.programs import leaves_idle, programs_of, share_of_bandwidth
from ....ops.builder import as_call
from ....ops.forms import Moments, Reduction
from ....symbolic.choices import choose, choose_number, env_among
from ...passes.splits.factors import known_divisors
from ...passes.splits.parts import (
    Interleaved,
    Padded,
    Parts,
    Remainder,
    exact_parts,
    part_count,
    reduced_extents,
    without_unit_dims,
)
from ...passes.splits.remainders import may_leave_remainder
from ...problem_sizes import env_of
from ...segments.member import Member
from .parts_with_remainder import remainder_of
from .split_answers import SplitFacts, are_shared, best_parts, count_at, shares_of, wanted_parts

FIRST_RESULT_BYTES = 4
"""Bytes of a partial result."""

MOST_PARTS = 1 << 24
"""The upper bound of the number of parts: far more than programs run at a time."""


def split(problem: Problem) -> tuple[int, int]:
    """``(count, interleave)``: see ``wanted_parts``."""
    return choose(env_of(problem), wanted_parts, problem)


def shares_rows(problem: Problem, member: Member) -> bool:
    """Whether the rows of a problem can be shared by about as many programs as wanted.

    Parameters
    ----------
    problem : Problem
        The kernel's problem.
    member : Member
        A reduction over its rows.
    """
    return choose(env_of(problem), are_shared, _facts_for_sharing(problem, member))


def _facts_for_sharing(problem: Problem, member: Member) -> SplitFacts:
    extents = reduced_extents(member.node)
    sums = isinstance(as_call(member.node).op.form, Reduction) and not problem.on_cpu
    varies = env_of(problem) is not None
    known = known_divisors(extents)
    return SplitFacts(problem, extents, known, False, allows_uneven=sums, varies=varies)


def _facts_for_splitting(problem: Problem, members: Sequence[Member]) -> SplitFacts:
    extents = reduced_extents(members[0].node)
    return SplitFacts(
        problem,
        extents,
        known_divisors(extents),
        allows_padding=True,
        moments=any(isinstance(as_call(m.node).op.form, Moments) for m in members),
        allows_remainder=len(extents) == 1 and _may_leave_remainder(problem, members),
    )


def is_slower_in_steps(problem: Problem, rows: int, results: int) -> bool:
    """Whether a reduction in two steps is slower than one more kernel that reads the data again.

    Parameters
    ----------
    rows : int
        Results of the first step, one for each row of the problem's data.
    results : int
        Results of the second step.
    """
    env = env_of(problem) or env_among(rows, results)
    return choose(env, steps_are_slow, (problem, rows, results))


def choose_parts(problem: Problem, members: Sequence[Member], over_rows: bool) -> Parts:
    """How to split the reductions of a problem, so that programs fill the device.

    Parameters
    ----------
    problem : Problem
        The kernel's problem.
    members : sequence of Member
        The reductions.
    over_rows : bool
        Whether they reduce over the rows of a kernel, which programs then share without padding.

    Returns
    -------
    Parts
        1 for no split. Where sizes vary, the number of padded parts is a size too, which kernels
        take as an argument. Dims are those of the first reduction.
    """
    env = env_of(problem)
    if env is None or not _reduce_same_extents(members, over_rows):
        return _constant_parts(problem, members, over_rows)
    facts = (
        _facts_for_sharing(problem, members[0])
        if over_rows
        else _facts_for_splitting(problem, members)
    )
    found = choose(env, best_parts, facts)
    if not isinstance(found, Padded | Remainder):
        return found
    multiple = found.multiple_of if isinstance(found, Remainder) else 0
    count = choose_number(env, count_at, (found, facts), 2, MOST_PARTS, max(multiple, 1))
    return replace(found, count=count)


def _reduce_same_extents(members: Sequence[Member], over_rows: bool) -> bool:
    """Whether all are reductions, no scans, and reduce the same extents.

    Rows are the same whatever dims of one position they have.
    """
    shown = without_unit_dims if over_rows else tuple
    return _are_reductions(members) and (
        len({repr(shown(reduced_extents(member.node))) for member in members}) == 1
    )


def _are_reductions(members: Sequence[Member]) -> bool:
    return all(isinstance(as_call(m.node).op.form, Reduction | Moments) for m in members)


def _have_same_extents(members: Sequence[Member]) -> bool:
    return len({repr(reduced_extents(member.node)) for member in members}) == 1


def _constant_parts(problem: Problem, members: Sequence[Member], over_rows: bool) -> Parts:
    """As ``choose_parts``, with a number of parts that is the same at all sizes."""
    count, interleave = split(problem)
    if count < 2:
        return 1
    if over_rows:
        return _for_all(
            members, shares_of(_facts_for_sharing(problem, members[0]), count, interleave)
        )
    if problem.full_outputs and _are_reductions(members):
        # Padded rows that are stored too would be read once more.
        exact = _without_padding(problem, members[0], count, interleave)
        if exact is not None:
            return _for_all(members, exact)
    if env_of(problem) is None and _may_leave_remainder(problem, members):
        return _for_all(members, remainder_of(problem, members[0].node, count, interleave))
    return Interleaved(count, interleave) if interleave else count


def _for_all(members: Sequence[Member], found: Parts) -> Parts:
    """The parts found for one reduction, for several: their number where extents differ."""
    if _have_same_extents(members):
        return found
    if isinstance(found, Padded):
        return found.count
    return prod(found) if isinstance(found, tuple) else found


def _may_leave_remainder(problem: Problem, members: Sequence[Member]) -> bool:
    """Whether all reductions may have equal parts and a remainder.

    A sum of exponentials is split as its maximum, whose parts have to hold all elements.
    """
    return not problem.online_softmax and all(may_leave_remainder(m.node) for m in members)


def _without_padding(problem: Problem, member: Member, count: int, interleave: int) -> Parts | None:
    """The parts that divide the reduced extents; None where these give too few programs."""
    exact = exact_parts(reduced_extents(member.node), count, interleave)
    idle = choose(env_of(problem), parts_leave_idle, (problem, part_count(exact)))
    return None if idle else exact


def parts_leave_idle(facts: tuple[Problem, int]) -> bool:
    """Whether so many parts of each row give too few programs, in plain numbers."""
    problem, parts = facts
    return leaves_idle(problem, parts * programs_of(problem, schedulers.propose(problem)))


def steps_are_slow(facts: tuple[Problem, int, int]) -> bool:
    """``is_slower_in_steps`` in plain numbers: facts are the problem, rows and results.

    Two steps are slow where a step has too few programs for the device: one for each row, or for
    each cache line of columns.
    """
    problem, rows, results = facts
    bandwidth = problem.device.bandwidth_bytes_per_s
    columns = 1 if problem.inner else CACHE_LINE_BYTES // problem.narrowest
    once = problem.moved_bytes / bandwidth
    first = once / share_of_bandwidth(problem, ceil_div(rows, columns))
    partial = FIRST_RESULT_BYTES * rows * problem.accumulators / bandwidth
    line = CACHE_LINE_BYTES // FIRST_RESULT_BYTES
    second = partial / share_of_bandwidth(problem, ceil_div(results, line))
    return first + second > 2 * once + problem.device.launch_s
