"""What is asked of schedulers about a group, by the sizes of this run.

Where sizes vary each question is kept, so that it can be asked at other sizes: a variant whose
schedule another size would not choose is not taken for that size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

from ...device import CACHE_LINE_BYTES, DeviceProperties
from ...heuristics import schedulers
from ...heuristics.cost.work import KernelWork, element_work
from ...heuristics.integers import ceil_div
from ...heuristics.params import HeuristicParams, InnerOuterPersistentParams, KernelParams
from ...heuristics.problem import Problem, Product, Stream
from ...heuristics.product_gain import FusedWork, gain
from ...heuristics.programs import (
    Finishing,
    Sharing,
    finishing_params,
    leaves_idle,
    moved_bytes,
    programs_of,
    programs_of_share,
    saves_by_sharing,
    share_of_bandwidth,
)
from ...heuristics.search.choice import chosen, difference
from ...ops.builder import as_call
from ...ops.table import Moments, Reduction
from ...symbolic.choices import choose, choose_number, env_among, hinted
from ...symbolic.shape_env import ConstantSizesWanted, ShapeEnv
from ..passes.remainders import may_leave_remainder
from ..passes.split_factors import (
    Interleaved,
    Padded,
    Parts,
    Remainder,
    contiguous_factors,
    exact_parts,
    interleaved_factors,
    is_near,
    known_divisors,
    longest_extent,
    reduced_extents,
    splits_well,
)
from ..segments import Member
from .parts_with_remainder import aligned_parts, parts_at_size, remainder_of
from .region_work import StoreWork, pays
from .uneven_shares import (
    UNALIGNED_LOSS,
    UNEVEN_LOSS,
    programs_of_shares,
    rows_in_turn,
    shared_rows,
    shares_at,
    uneven_shares,
)

FIRST_RESULT_BYTES = 4
"""Bytes of a partial result."""

MOST_PARTS = 1 << 24
"""No reduction is split into more parts: far more programs than run at a time."""


def reject_reason(problem: Problem) -> str | None:
    """None where some scheduler takes the problem, else all their reasons.

    Raises
    ------
    ConstantSizesWanted
        Of constant sizes one takes it: its programs share each row.
    """
    env = env_of(problem)
    reason = schedulers.reject_reason(hinted(env, problem))
    if reason is None:
        return None
    choose(env, is_refused, problem)
    wanted = env is not None and env.may_want_constants
    if wanted and problem.published_sums and choose(env, wants_constants, problem):
        raise ConstantSizesWanted(f"programs share rows of constant sizes alone: {reason}")
    return reason


def refusals(problem: Problem) -> list[str]:
    """Why each scheduler before the chosen one does not take the problem."""
    return schedulers.refusals(hinted(env_of(problem), problem))


def propose(problem: Problem, work: KernelWork) -> HeuristicParams:
    """The params of a kernel; errors as ``schedulers.propose``.

    Parameters
    ----------
    work : KernelWork
        What it computes.
    """
    return choose(_env_of(problem, work), proposed, Worked(problem, work))


def why_overruled(problem: Problem, work: KernelWork, params: HeuristicParams) -> str:
    """By what the cost model chose other params than the rules propose; empty where it did not."""
    problem, work = hinted(_env_of(problem, work), (problem, work))
    return difference(problem, element_work(work, problem), params)


def scatters(problem: Problem) -> bool:
    """Whether a large tensor lies along neither axis of the problem's tiles."""
    return choose(env_of(problem), is_scattered, problem)


def is_scattered(problem: Problem) -> bool:
    """The same, at the sizes of a run."""
    return problem.scatters


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
            return shares_of(_rows_to_share(problem, members[0]), count, of)
        if reduces and problem.full_outputs:
            count = _without_padding(problem, members[0], count, of)
        # Rows that are stored too would be read once more.
        stored = bool(problem.full_outputs)
        if env is None and not stored and _may_leave_remainder(problem, members):
            return remainder_of(problem, members[0].node, count, of)
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


def _may_leave_remainder(problem: Problem, members: Sequence[Member]) -> bool:
    """Whether the second steps of all reductions may reduce elements behind the parts.

    A sum of exponentials follows the parts of its maximum, which have to hold all elements.
    """
    return not problem.online_softmax and all(may_leave_remainder(m.node) for m in members)


def _without_padding(problem: Problem, member: Member, count: int, of: int) -> int:
    """The parts of rows that a kernel also stores results of, which it would read once more if they
    were padded: those that divide the rows where they are programs enough."""
    exact = exact_parts(reduced_extents(member.node), count, of)
    programs = exact * programs_of(problem, schedulers.propose(problem))
    return count if leaves_idle(problem, programs) else exact


def is_slow(product: Product, fused: FusedWork, device: DeviceProperties) -> bool:
    """Whether torch is expected to compute a product faster than a kernel with what is fused."""
    env = env_among(product.batch, product.m)
    return choose(env, loses, (product, fused, device))


def pays_in_boxes(whole: StoreWork, boxes: StoreWork, device: DeviceProperties) -> bool:
    """Whether a value is expected to be stored faster box by box than as a whole."""
    sizes = (*_positions(whole), *_positions(boxes), whole.total_bytes, boxes.total_bytes)
    return choose(env_among(*sizes), pays, (whole, boxes, device))


def _positions(work: StoreWork) -> list[int]:
    return [positions for positions, _ in work.nests]


def finishing(facts: Finishing) -> KernelParams | None:
    """The params by which the last programs of a kernel compute a segment. None for not."""
    env = env_of(facts.problem) or env_among(facts.counters)
    return choose(env, finishing_params, facts)


def shares_launch(facts: Sharing) -> bool:
    """Whether segments that need nothing of one another share a launch."""
    return choose(env_among(facts.moved), saves_by_sharing, facts)


def env_of(problem: Problem) -> ShapeEnv | None:
    """The shape env of the sizes in a problem. None where none varies."""
    p = problem
    sizes = chain.from_iterable(map(_sizes, p.streams))
    product = () if p.product is None else (p.product.batch, p.product.m)
    extents = (p.parallel, p.reduced, p.outer_batch, p.co_reduced, p.crossing, *p.axes)
    return env_among(*extents, *sizes, *product)


def _env_of(problem: Problem, work: KernelWork) -> ShapeEnv | None:
    return env_of(problem) or env_among(*(node.elements for node in work.nodes))


def _sizes(stream: Stream) -> tuple[int, ...]:
    steps = (stream.x_stride, stream.r_stride)
    legs = chain.from_iterable((leg.div, leg.extent, leg.step) for leg in stream.legs)
    known = (s for s in steps if s is not None)
    return (*known, stream.contiguous_run, stream.total_bytes, *legs)


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


@dataclass(frozen=True)
class Worked:
    """A problem, and what its kernel computes."""

    problem: Problem
    work: KernelWork


# --- the questions, in plain numbers -------------------------------------------------------------


def is_refused(problem: Problem) -> bool:
    """Whether no scheduler takes the problem."""
    return schedulers.reject_reason(problem) is not None


def wants_constants(problem: Problem) -> bool:
    """Whether programs would share the rows of a problem if sizes did not vary."""
    fixed = replace(problem, row_varies=False, rows_vary=False)
    if schedulers.reject_reason(fixed) is not None:
        return False
    params = schedulers.propose(fixed)
    return isinstance(params, InnerOuterPersistentParams) and params.parts > 1


def proposed(kernel: Worked) -> HeuristicParams:
    """The params of a kernel."""
    return chosen(kernel.problem, element_work(kernel.work, kernel.problem))


def parts(problem: Problem) -> tuple[int, int]:
    """In how many parts the reductions should be done, and what that should be a multiple of."""
    return schedulers.split(problem), schedulers.interleave(problem)


def steps_are_slow(facts: tuple[Problem, int, int]) -> bool:
    """Whether two steps take longer than one kernel more, which reads the data once more.

    The programs of each step, of a row or a line of columns each, may be too few for the device.
    """
    problem, rows, results = facts
    bandwidth = problem.device.bandwidth_bytes_per_s
    columns = 1 if problem.inner else CACHE_LINE_BYTES // problem.narrowest
    once = moved_bytes(problem) / bandwidth
    first = once / share_of_bandwidth(problem, ceil_div(rows, columns))
    partial = FIRST_RESULT_BYTES * rows * problem.accumulators / bandwidth
    line = CACHE_LINE_BYTES // FIRST_RESULT_BYTES
    second = partial / share_of_bandwidth(problem, ceil_div(results, line))
    return first + second > 2 * once + problem.device.launch_s


def are_shared(rows: Rows) -> bool:
    """Whether the extents have divisors for about the parts wanted, and for programs enough."""
    count, of = parts(rows.problem)
    found = exact_parts(rows.extents, count, of, rows.known)
    if 4 * found >= 3 * count:
        return True
    each = programs_of_share(schedulers.propose(rows.problem))
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
    exact = exact_parts(extents, count, of, rows.known)
    even = Interleaved(exact, of) if of else exact
    found = _uneven(rows, count, of)
    if found is None:
        return even
    times = (
        rows_in_turn(problem, exact, prod(extents) // exact, count),
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
    exact = prod(interleaved_factors(rows.extents, Interleaved(count, of), rows.known)) if of else 1
    if exact > 1 and (not rows.paddable or is_near(exact, count)):
        return Interleaved(exact, of)
    if rows.paddable and not splits_well(rows.extents, count, rows.known):
        if rows.equal and many:
            return remainder
        return Padded(longest_extent(rows.extents), 0)
    return prod(contiguous_factors(rows.extents, count, rows.known))


def parts_at(facts: tuple[Padded | Remainder, Rows]) -> int:
    """The number of parts: 2 or more, each of two elements or more where there are four."""
    padded, rows = facts
    count, of = parts(rows.problem)
    if isinstance(padded, Remainder):
        count = max(min(count, (rows.extents[0] - 1) // 2), 2)
        return parts_at_size(rows.problem, rows.extents[0], count, padded.multiple_of)
    if rows.uneven:
        return shares_at(rows.extents, padded, count, of)
    count = max(min(count, rows.extents[padded.place] // 2), 2)
    return count - count % of if padded.interleaved and count > of else count


def loses(facts: tuple[Product, FusedWork, DeviceProperties]) -> bool:
    """Whether one kernel for a product and what is fused with it saves no time."""
    return gain(*facts) <= 0
