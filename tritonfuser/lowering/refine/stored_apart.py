"""Values that kernels with reductions store, and that kernels without could.

A kernel that reduces rows has tiles of whole rows. Where these are short, and the tensors of a
kernel lie in several orders, each row is a piece of memory by itself: its ends are parts of
sectors. A kernel without reductions has tiles over all dims, and transposes whatever their lengths
are. It reads the rows once more, and the results of their reductions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...device import LEAST_KERNEL_S
from ...ir import Value
from ...symbolic.sizes import hint
from ..access.read_footprint import is_reducer
from ..segments.segment import Segment
from .kernel_times import TimedKernels


def stored_apart(now: TimedKernels) -> Iterator[tuple[tuple[str, ...], float]]:
    """The names of such values of slow kernels, each with the most seconds that this may save: of
    those that need no result of their kernel, and of all."""
    for each in now.excesses:
        full = list(_of_rows(each.piece))
        after = _after_reductions(each.piece)
        without = [value for value in full if value not in after]
        for values in (without, full):
            if values and (values is full or len(without) < len(full)):
                yield tuple(value.name for value in values), each.seconds - LEAST_KERNEL_S


def _of_rows(piece: Segment) -> Iterator[Value]:
    """What a kernel with reductions along its rows stores for each of their elements."""
    problem = piece.problem
    if problem is None or not problem.reduction_depth or problem.scans:
        return
    for store in piece.stores:
        if hint(store.value.tensor.numel) > hint(problem.parallel):
            yield store.value


def _after_reductions(piece: Segment) -> set[Value]:
    """The results of a kernel's reductions, and all that it computes of them."""
    found: set[Value] = set()
    for node in piece.nodes:
        if is_reducer(node) or not found.isdisjoint(node.operands()):
            found.update(node.outs)
    return found
