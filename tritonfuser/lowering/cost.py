"""A segment in, its time by the cost model out."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod

from ..heuristics.cost.constants import H200_CONSTANTS
from ..heuristics.cost.kernels import predicted
from ..heuristics.cost.model import KernelTime
from ..heuristics.params import HeuristicParams
from ..heuristics.problem import ElementWork
from ..ir import Node, Value
from ..ops.builder import as_call
from ..ops.table import Moments, Random, Reduction, Scan
from ..symbolic.choices import hinted
from ..symbolic.sizes import hint
from .access.instructions import instructions_of
from .fuse.questions import env_of
from .segments import Segment, SegmentedFusion


def segment_time(piece: Segment, params: HeuristicParams | None = None) -> KernelTime | None:
    """The time of a segment's kernel by the model, at the sizes of this run.

    None where torch runs the segment, where nothing runs, and in the interpreter.

    Parameters
    ----------
    params : HeuristicParams, optional
        Other ones than the segment's.
    """
    return _time_by_params(piece)(params or piece.params)


def _time_by_params(piece: Segment) -> Callable[[HeuristicParams], KernelTime | None]:
    """The time of a segment's kernel as a function of its params."""
    if piece.problem is None:
        return lambda params: None
    problem, work = hinted(env_of(piece.problem), piece.problem), element_work(piece)
    return lambda params: predicted(problem, params, work)


def kernel_predictors(segmented: SegmentedFusion) -> list[Callable[[HeuristicParams], float]]:
    """For each segment its seconds as a function of its params; 0 for what torch runs."""

    def seconds(piece: Segment) -> Callable[[HeuristicParams], float]:
        time = _time_by_params(piece)
        if piece.problem is not None and piece.problem.on_cpu:
            return lambda params: inf

        def of(params: HeuristicParams) -> float:
            found = time(params)
            return 0.0 if found is None else float(found.seconds)

        return of

    return [seconds(piece) for piece in segmented.segments]


def fusion_seconds(segmented: SegmentedFusion) -> float | None:
    """The sum over the kernels, and a launch, without what torch runs. None on a CPU."""
    total = H200_CONSTANTS.launch_s
    for piece in segmented.segments:
        found = segment_time(piece)
        if found is not None:
            total += float(found.seconds)
        elif piece.problem is not None and piece.problem.on_cpu:
            return None
    return total


def element_work(piece: Segment) -> ElementWork:
    """The instructions that a kernel needs for each element of its loop nest.

    What has fewer elements, as the mean of a row, counts by its share of them.
    """
    elements = max(hint(piece.parallel_extent) * hint(piece.reduced_extent), 1)
    after: set[Value] = set()
    found = _Total()
    for node in piece.nodes:
        form = as_call(node).op.form
        depends = any(value in after for value in node.operands())
        if isinstance(form, Moments | Reduction | Scan):
            found.reducing += instructions_of(node).issued
            found.reductions += 1
            found.carried += isinstance(form, Reduction)
            after.update(node.outs)
            continue
        if depends:
            after.update(node.outs)
        share = min(_elements(node) / elements, 1.0)
        if isinstance(form, Random):
            found.draws += 1
            continue
        found.add(node, share, depends)
    return found.work()


class _Total:
    """Instructions so far."""

    def __init__(self) -> None:
        self.plain, self.special = [0.0, 0.0], [0.0, 0.0]
        self.reducing = 0.0
        self.reductions = self.carried = self.draws = 0

    def add(self, node: Node, share: float, depends: bool) -> None:
        """A node that is computed for a share of the elements, before or after the reductions."""
        instructions = instructions_of(node)
        self.plain[depends] += instructions.issued * share
        self.special[depends] += instructions.sfu * share

    def work(self) -> ElementWork:
        return ElementWork(
            before=self.plain[0],
            after=self.plain[1],
            reducing=self.reducing,
            special_before=self.special[0],
            special_after=self.special[1],
            reductions=self.reductions,
            carried=self.carried,
            draws=self.draws,
        )


def _elements(node: Node) -> int:
    return prod(hint(size) for size in node.out.tensor.sizes) if node.out.is_tensor else 1
