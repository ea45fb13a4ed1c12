"""In how many parts the reductions of a group are split, and whether two steps pay."""

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
from ....ops.table import Moments, Reduction
from ....symbolic.choices import choose, choose_number, env_among
from ...passes.splits.factors import known_divisors
from ...passes.splits.remainders import may_leave_remainder
from ...passes.splits.split_factors import (
    Interleaved,
    Padded,
    Parts,
    Remainder,
    exact_parts,
    number_of,
    reduced_extents,
)
from ...problem_sizes import env_of
from ...segments import Member
from .parts_with_remainder import remainder_of
from .rows import Rows, are_shared, parts, parts_at, shares_of, way_of

FIRST_RESULT_BYTES = 4
"""Bytes of a partial result."""

MOST_PARTS = 1 << 24
"""No reduction is split into more parts: far more programs than run at a time."""


def split(problem: Problem) -> tuple[int, int]:
    """In how many parts the reductions should be done, and what that should be a multiple of."""
    return choose(env_of(problem), parts, problem)


def shares_rows(problem: Problem, member: Member) -> bool:
    """Whether rows can be shared out over about as many programs as wanted.

    Parameters
    ----------
    member : Member
        A reduction over the rows.
    """
    return choose(env_of(problem), are_shared, _rows_to_share(problem, member))


def _rows_to_share(problem: Problem, member: Member) -> Rows:
    extents = reduced_extents(member.node)
    sums = isinstance(as_call(member.node).op.form, Reduction) and not problem.on_cpu
    varies = env_of(problem) is not None
    return Rows(problem, extents, known_divisors(extents), False, uneven=sums, varies=varies)


def steps_lose(problem: Problem, rows: int, results: int) -> bool:
    """Whether either step of a reduction in two steps loses what one read of the data saves.

    Parameters
    ----------
    rows : int
        Results of the first step, each of a row of the problem's data.
    results : int
        Results of the second step.
    """
    env = env_of(problem) or env_among(rows, results)
    return choose(env, steps_are_slow, (problem, rows, results))


def split_over(problem: Problem, members: Sequence[Member], whole: bool) -> Parts:
    """How to split the reductions of a problem, so that programs fill the device. 1 for not.

    Where sizes vary and padding is possible, the number of parts is chosen at each size, and is an
    argument of the kernels.

    Parameters
    ----------
    members : sequence of Member
        The reductions.
    whole : bool
        Whether rows must stay as they are, without padding.
    """
    env = env_of(problem)
    forms = [as_call(member.node).op.form for member in members]
    reduces = all(isinstance(form, Reduction | Moments) for form in forms)
    extents = {repr(reduced_extents(member.node)) for member in members} if reduces else ()
    if env is None or len(extents) != 1:
        count, of = split(problem)
        if count < 2:
            return 1
        if whole:
            return _of_all(members, shares_of(_rows_to_share(problem, members[0]), count, of))
        if reduces and problem.full_outputs:
            # Rows that are stored too would be read once more.
            exact = _without_padding(problem, members[0], count, of)
            if exact is not None:
                return _of_all(members, exact)
        if env is None and _may_leave_remainder(problem, members):
            return _of_all(members, remainder_of(problem, members[0].node, count, of))
        return Interleaved(count, of) if of else count
    sizes = reduced_extents(members[0].node)
    moments = any(isinstance(form, Moments) for form in forms)
    equal = not whole and len(sizes) == 1 and _may_leave_remainder(problem, members)
    if whole:
        facts = _rows_to_share(problem, members[0])
    else:
        facts = Rows(problem, sizes, known_divisors(sizes), True, moments, equal)
    found = choose(env, way_of, facts)
    if not isinstance(found, Padded | Remainder):
        return found
    of = found.multiple_of if isinstance(found, Remainder) else 0
    count = choose_number(env, parts_at, (found, facts), 2, MOST_PARTS, max(of, 1))
    return replace(found, count=count)


def _of_all(members: Sequence[Member], found: Parts) -> Parts:
    """The parts of one reduction for several: so many where their dims are not the same."""
    if len({repr(reduced_extents(member.node)) for member in members}) == 1:
        return found
    if isinstance(found, Padded):
        return found.count
    return prod(found) if isinstance(found, tuple) else found


def _may_leave_remainder(problem: Problem, members: Sequence[Member]) -> bool:
    """Whether the second steps of all reductions may reduce elements behind the parts.

    A sum of exponentials follows the parts of its maximum, which have to hold all elements.
    """
    return not problem.online_softmax and all(may_leave_remainder(m.node) for m in members)


def _without_padding(problem: Problem, member: Member, count: int, of: int) -> Parts | None:
    """The parts of rows that a kernel also stores results of, which it would read once more if they
    were padded: those that divide the rows. None where these are too few programs."""
    exact = exact_parts(reduced_extents(member.node), count, of)
    programs = number_of(exact) * programs_of(problem, schedulers.propose(problem))
    return None if leaves_idle(problem, programs) else exact


def steps_are_slow(facts: tuple[Problem, int, int]) -> bool:
    """Whether two steps take longer than one kernel more, which reads the data once more.

    The programs of each step, of a row or a line of columns each, may be too few for the device.
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
