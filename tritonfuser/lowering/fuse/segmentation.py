"""Fusion in, SegmentedFusion out: what shares a kernel, by which scheduler, and why it was cut."""

from __future__ import annotations

from ...device import DeviceProperties
from ...ir import Fusion, Value
from ...symbolic.sizes import hint
from ..passes.contract_to_mma import candidates, contract_to_mma
from ..passes.materialization import materialize_shared
from ..passes.split_reduction import split_reductions
from ..product_policy import ProductPolicy
from ..segments import SegmentedFusion
from .common_rows import FirstSteps, last_steps
from .grouper import Grouper
from .reasons import split_reasons
from .scheduling import schedule
from .split_policy import first_steps, losing, tile_parts


def segment(
    fusion: Fusion,
    device: DeviceProperties,
    two_steps: bool = True,
    products: ProductPolicy = ProductPolicy.AUTO,
    misaligned: frozenset[Value] = frozenset(),
) -> SegmentedFusion:
    """Cut a simplified, concrete fusion into kernels for a device.

    Matrix products become kernels where that is worth it: the fusion is grouped with all that
    may be, and once more without those that lose by it.

    Reductions with too few rows to fill the device are done in two steps: the fusion is
    rewritten (``sum(t)`` -> ``sum(sum(reshape(t)))``) and grouped once more; not so where
    ``two_steps`` is off. Whether reductions of rows begin along parts of them too, so that others
    of the same data can join them, is decided by the bytes that all kernels move.

    Parameters
    ----------
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes.
    """
    fusion = materialize_shared(fusion)
    chosen = candidates(fusion, device, products)
    fuse_all = products is not ProductPolicy.AUTO

    def grouped() -> Grouper:
        found = Grouper(contracted.fusion, device, fuse_all, misaligned)
        parts = tile_parts(found) if two_steps else {}
        if not parts:
            return found
        return Grouper(split_reductions(contracted.fusion, parts), device, fuse_all, misaligned)

    contracted = contract_to_mma(fusion, chosen)
    grouper = grouped()
    while not fuse_all and (lost := losing(grouper)):
        chosen -= {contracted.products[value] for value in lost}
        contracted = contract_to_mma(fusion, chosen)
        grouper = grouped()

    def stepped(steps: FirstSteps) -> SegmentedFusion:
        if not steps.parts:
            return schedule(grouper)
        whole = split_reductions(grouper.fusion, steps.parts)
        co_reduced = last_steps(whole, steps.co_reduced)
        again = Grouper(whole, device, fuse_all, misaligned, co_reduced)
        return schedule(again, split_reasons(grouper, again, steps.parts))

    if not two_steps:
        return schedule(grouper)
    steps = first_steps(grouper, cut_rows=True)
    if not steps.cuts_rows:
        return stepped(steps)
    return min(stepped(first_steps(grouper, cut_rows=False)), stepped(steps), key=cost)


LAUNCH = 8 << 20
"""Bytes that are moved in the time of a launch."""


def cost(segmented: SegmentedFusion) -> int:
    """Bytes that all kernels read and write, in this run, and what it takes to launch them."""
    moved = sum(piece.bytes_read + piece.bytes_written for piece in segmented.segments)
    return hint(moved) + LAUNCH * len(segmented.segments)
