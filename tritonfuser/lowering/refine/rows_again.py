"""Segments in, whether rows are read again: by their own kernel, or by the one behind it."""

from __future__ import annotations

from itertools import product

from ...heuristics.cost.tiles import tile_of
from ...heuristics.params import HeuristicParams
from ...heuristics.problem import Problem
from ...heuristics.programs import are_few
from ...symbolic.choices import hinted
from ...symbolic.sizes import hint
from ..problem_sizes import env_of
from ..segments import Segment, SegmentedFusion


def reads_rows_again(segmented: SegmentedFusion) -> bool:
    """Whether what follows a kernel along rows and over rows reads the same data, and its rows.

    What needs the reductions over rows cannot be in their kernel. In a kernel of its own it reads
    data along rows once more, and could reduce these there: ``softmax(x, 1) * rsqrt(sum(x, 0))``.
    """
    pieces = segmented.segments
    hosts = [piece for piece in pieces if _is_along_and_over_rows(piece)]
    return any(_reads_again(host, user) for host, user in product(hosts, pieces))


def reads_rows_twice(segmented: SegmentedFusion) -> bool:
    """Whether a kernel reduces rows in a loop, and reads them again in another.

    As many kernels of two would, and the first may share each row out over several programs where
    rows are few.
    """
    return any(
        piece.problem is not None
        and piece.params is not None
        and piece.problem.normalizes
        and piece.params.row_parts == 1
        and _few_read_twice(hinted(env_of(piece.problem), piece.problem), piece.params)
        for piece in segmented.segments
    )


def _few_read_twice(problem: Problem, params: HeuristicParams) -> bool:
    """Whether programs that are few loop over their rows twice. Of many the second loop finds rows
    in caches: a layer norm of 3011 x 22040 in float32 took 144 us by one kernel (H200), where the
    bytes of two alone take 186."""
    tile = tile_of(problem, params)
    return tile.passes > 1 and are_few(problem, tile.programs)


def _is_along_and_over_rows(piece: Segment) -> bool:
    problem = piece.problem
    return problem is not None and problem.outer_members > 0 and problem.reduction_depth > 0


def _reads_again(host: Segment, user: Segment) -> bool:
    assert host.problem is not None
    made, read = set(host.outputs), set(user.inputs)
    most = hint(host.problem.parallel) * hint(host.problem.reduced)
    both = (value for value in host.inputs if value in read and value.is_tensor)
    return not made.isdisjoint(read) and any(hint(value.tensor.numel) >= most for value in both)
