"""Whether rows are read from memory twice: by one kernel in two loops, or by two kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...heuristics.cost.tiles import KernelTile, tile_of
from ...heuristics.problem import Problem
from ...heuristics.programs import are_few
from ...symbolic.choices import with_hints
from ...symbolic.sizes import hint
from ..problem_sizes import env_of
from ..segments.segment import Segment
from ..segments.segmented_fusion import SegmentedFusion


def rereads_rows_in_next_kernel(segmented: SegmentedFusion) -> bool:
    """Whether a kernel that reduces along and over rows is followed by one that reads them again.

    Values that need the results of columns cannot be in the kernel of these. The later kernel reads
    the rows again, and could compute the row reductions too: ``softmax(x, 1) * rsqrt(sum(x, 0))``.
    """
    segments = segmented.segments
    first = [segment for segment in segments if _is_along_and_over_rows(segment)]
    return any(_reads_again(earlier, later) for earlier, later in product(first, segments))


def reduces_along_and_over_rows(segmented: SegmentedFusion) -> bool:
    """Whether some kernel reduces both along its rows and over them."""
    return any(map(_is_along_and_over_rows, segmented.segments))


def reads_rows_twice(segmented: SegmentedFusion) -> bool:
    """Whether some kernel reads its rows in two loops."""
    return any(_read_twice(segmented))


def few_read_rows_twice(segmented: SegmentedFusion) -> bool:
    """Whether some kernel of few programs reads its rows in two loops.

    Two kernels would read the same bytes, and the first could divide each row among programs. With
    many programs the second loop hits caches: a layer norm of 3011 x 22040 in float32 takes 144 us
    as one kernel (H200), where the bytes of two kernels alone take 186.
    """
    return any(are_few(problem, tile.programs) for problem, tile in _read_twice(segmented))


def _read_twice(segmented: SegmentedFusion) -> Iterator[tuple[Problem, KernelTile]]:
    """The problems and tiles of kernels that loop over their rows twice."""
    for segment in segmented.segments:
        if segment.problem is None or segment.params is None or segment.params.row_parts > 1:
            continue
        if segment.problem.normalizes:
            problem = with_hints(env_of(segment.problem), segment.problem)
            tile = tile_of(problem, segment.params)
            if tile.passes > 1:
                yield problem, tile


def _is_along_and_over_rows(segment: Segment) -> bool:
    """Whether a kernel has reductions along its rows and over them."""
    problem = segment.problem
    return problem is not None and problem.outer_members > 0 and problem.reduction_depth > 0


def _reads_again(earlier: Segment, later: Segment) -> bool:
    """Whether a kernel reads results of an earlier one, and a full tensor that this one reads."""
    assert earlier.problem is not None
    stored, read = set(earlier.outputs), set(later.inputs)
    full = hint(earlier.problem.parallel) * hint(earlier.problem.reduced)
    both = (value for value in earlier.inputs if value in read and value.is_tensor)
    return not stored.isdisjoint(read) and any(hint(value.tensor.numel) >= full for value in both)
