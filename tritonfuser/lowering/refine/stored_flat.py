"""Values that kernels with reductions store, and that a flat kernel could store instead.

A kernel that reduces rows has tiles of whole rows. If rows are short, and the tensors of the kernel
have different memory orders, each row of some tensors is a short run of its own, whose ends share
sectors with other rows. A flat kernel has tiles over all dims and can transpose, whatever their
lengths. It reads the rows once more, and the results of their reductions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...device import LEAST_KERNEL_S
from ...ir import Value
from ...symbolic.sizes import hint
from ..access.node_kinds import is_reducer
from ..segments.segment import Segment
from .kernel_times import TimedKernels


def stored_flat(now: TimedKernels) -> Iterator[tuple[tuple[str, ...], float]]:
    """Tuples of names of such values, each with the most seconds that a flat kernel may save.

    For each slow kernel two tuples: the values that need no result of its reductions, and all.
    """
    for each in now.excesses:
        full = list(_of_rows(each.segment))
        dependent = _dependent_on_reductions(each.segment)
        independent = [value for value in full if value not in dependent]
        for values in (independent, full):
            if values and (values is full or len(independent) < len(full)):
                yield tuple(value.name for value in values), each.seconds - LEAST_KERNEL_S


def _of_rows(segment: Segment) -> Iterator[Value]:
    """The values that a kernel with reductions along its rows stores for each element of a row."""
    problem = segment.problem
    if problem is None or not problem.reduction_depth or problem.scans:
        return
    for store in segment.stores:
        if hint(store.value.tensor.numel) > hint(problem.parallel):
            yield store.value


def _dependent_on_reductions(segment: Segment) -> set[Value]:
    """The results of a kernel's reductions, and all values that it computes from them."""
    found: set[Value] = set()
    for node in segment.nodes:
        if is_reducer(node) or not found.isdisjoint(node.operands()):
            found.update(node.outs)
    return found
