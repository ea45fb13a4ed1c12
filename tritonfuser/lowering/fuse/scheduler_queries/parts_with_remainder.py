"""Numbers of equal parts of a reduction whose remainder the second step reduces."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm, prod

from ....device import CACHE_LINE_BYTES, VECTOR_BYTES
from ....heuristics.integers import ceil_div
from ....heuristics.problem import Problem
from ....ir import Node
from ...passes.splits.factors import (
    MAX_SHORTFALL,
    contiguous_factors,
    factors_of_any,
    interleaved_factors,
    is_near,
    splits_well,
)
from ...passes.splits.parts import Interleaved, Parts, Remainder, parts_of_factors, reduced_extents


def remainder_of(problem: Problem, node: Node, count: int, interleave: int) -> Parts:
    """The split of a reduction of neighbouring dims into about ``count`` parts.

    They leave a remainder if no divisors of the extent are near ``count``, or if interleaved parts
    by those divisors would begin inside vectors. Dims that are one run of memory are split as one
    dim, if divisors of each would leave parts that are several runs.

    Parameters
    ----------
    interleave : int
        What the number of interleaved parts should be a multiple of. 0 for parts of neighbouring
        elements.
    """
    extents = reduced_extents(node)
    extent = prod(extents)
    multiple = aligned_parts(problem, count, interleave)
    if interleave:
        wanted: Parts = Interleaved(count, interleave)
        factors = interleaved_factors(extents, count, interleave)
    else:
        wanted = neighbouring_parts(problem, extents, count)
        factors = contiguous_factors(extents, count)
    if len(extents) > 1 and not problem.one_run:
        return wanted
    exact = prod(factors)
    vector = _vector_of_rows(problem)
    even = exact % (multiple or 1) == 0 and extent // exact % vector == 0
    if is_near(exact, count) and even and _is_run(extents, factors, bool(interleave)):
        return wanted
    wave = problem.device.sm_count
    parts = nearest_multiple(count, multiple) or _with_whole_vectors(count, extent, vector, wave)
    if parts < 2 or extent <= 2 * parts:
        return wanted
    return Remainder(parts, multiple)


def neighbouring_parts(
    problem: Problem, extents: tuple[int, ...], count: int, known: tuple[int, ...] | None = None
) -> int | tuple[int, ...]:
    """About so many parts of neighbouring elements, padded where no divisors give them.

    Contiguous runs of memory lie across columns, so parts of several rows have whole runs. Columns
    need no padding if some dims have divisors enough.
    """
    if not problem.inner and not splits_well(extents, count, known):
        found = factors_of_any(extents, count, known)
        if is_near(prod(found), count):
            return parts_of_factors(extents, found, known)
    return count


def parts_at_size(problem: Problem, extent: int, count: int, multiple: int) -> int:
    """The number of equal parts of one extent, where it is an argument of a kernel.

    Parts without a remainder, if there are such near ``count``, as for constant sizes: the second
    step then reads no more than their results.

    Parameters
    ----------
    multiple : int
        What parts are a multiple of at all sizes. 0 for parts of neighbouring elements.
    """
    wanted = nearest_multiple(count, multiple) or count
    step, vector = multiple or 1, 1 if multiple else _vector_of_rows(problem)
    least = max(ceil_div(count, MAX_SHORTFALL), 2)
    near = range(wanted, least - 1, -step)
    return next((n for n in near if extent % n == 0 and extent // n % vector == 0), wanted)


def _is_run(extents: Sequence[int], factors: Sequence[int], interleaved: bool) -> bool:
    """Whether one dim alone is cut.

    Contiguous parts have one position of each dim outside it, and all positions of the dims inside;
    for interleaved parts it is the other way round.
    """
    pairs = list(zip(extents, factors, strict=True))[:: -1 if interleaved else 1]
    whole = next((place for place, (n, factor) in enumerate(pairs) if n != factor), len(pairs))
    return all(factor == 1 for _, factor in pairs[whole + 1 :])


def _vector_of_rows(problem: Problem) -> int:
    """The elements of a vector, where neighbouring ones of rows that begin at vectors are reduced.

    1 where parts begin inside vectors anyhow.
    """
    streams = [s for s in problem.streams if s.along_r]
    vector = VECTOR_BYTES // min((s.item_bytes for s in streams), default=VECTOR_BYTES)
    aligned = all(s.x_stride is None or s.x_stride % vector == 0 for s in streams if s.along_x)
    return vector if problem.inner and aligned and not problem.on_cpu else 1


def _with_whole_vectors(count: int, extent: int, vector: int, wave: int) -> int:
    """The number of parts next to ``count``, within a quarter of it, that have whole vectors.

    Programs beyond full waves of one a multiprocessor would take as long as a wave.
    """
    most = min(count + count // 4, ceil_div(count, wave) * wave)
    near = sorted(range(count - count // 4, most + 1), key=lambda n: abs(n - count))
    return next((n for n in near if extent // n % vector == 0), count)


def aligned_parts(problem: Problem, count: int, interleave: int) -> int:
    """What the number of interleaved parts is a multiple of, so that all begin at vectors.

    0 for parts of neighbouring elements, also if so few are wanted that no multiple is near. A
    multiple of a cache line suits any number of columns, so it serves sizes that vary.
    """
    if interleave <= 1:
        return 0
    line = lcm(interleave, max(CACHE_LINE_BYTES // problem.narrowest, 1))
    vector = min(interleave, max(VECTOR_BYTES // problem.narrowest, 1))
    near = (n for n in (line, interleave) if 4 * abs(nearest_multiple(count, n) - count) <= count)
    return next(near, vector if 3 * vector <= 4 * count else 0)


def nearest_multiple(count: int, multiple: int) -> int:
    """The multiple nearest to a count, above 0; the lower of two. 0 if ``multiple`` is 0."""
    if not multiple:
        return 0
    below = count - count % multiple
    return below if below and 2 * (count - below) <= multiple else below + multiple
