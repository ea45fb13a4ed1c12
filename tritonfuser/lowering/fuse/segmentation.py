"""Fusion in, SegmentedFusion out: which nodes share a kernel, under which params, and why.

``segment`` chooses a schedule and makes the segments of it on the way. The stages, each from the
result of the one before:

1. Groups: each reduction, product and result joins a kernel or starts one (``grouper.py``).
   Legality says what one kernel can hold, and a scheduler has to take it.
2. Splits: which reductions are done in two steps (``split_policy.py``). The fusion is rewritten
   and grouped once more.
3. Schedule: each group becomes a segment with params (``scheduling.py``), which is then emitted.

``segment_as`` makes the segments of a given schedule. It chooses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from ...device import DeviceProperties
from ...heuristics.schedule import Schedule
from ...ir import Fusion, Value
from ...symbolic.sizes import hint
from ..passes.contract_to_mma import candidates, contract_to_mma
from ..passes.invariants.materialize import choose_invariants, materialize_invariants
from ..passes.materialization import materialize_shared
from ..passes.split_reduction import split_reductions
from ..product_policy import ProductPolicy
from ..segments import SegmentedFusion
from .common_rows import Splits, last_steps
from .given_groups import GivenGroups
from .given_splits import split_as
from .grouper import Grouper
from .reasons import split_reasons
from .rewriting import chosen_rewrites, contracted_as, materialized_as, with_invariants
from .scheduling import schedule
from .slow_products import slow_products
from .split_policy import CommonRows, choose_splits, tile_parts


@dataclass(frozen=True, slots=True)
class Choice:
    """What is decided before kernels are grouped; None for what heuristics decide.

    Attributes
    ----------
    kept : tuple of str or None
        The values that all kernels but the first to compute them read from memory.
    rows : CommonRows or None
        Whether reductions are split to share the rows of other kernels.
    over_rows : bool
        Whether reductions over rows may join kernels along these.
    in_turn : bool
        Whether parts of columns may take rows in turn. Else each has neighbouring rows.
    """

    kept: tuple[str, ...] | None = None
    rows: CommonRows | None = None
    over_rows: bool = True
    in_turn: bool = True


HEURISTIC = Choice()


def segment(
    fusion: Fusion,
    device: DeviceProperties,
    two_steps: bool = True,
    products: ProductPolicy = ProductPolicy.AUTO,
    misaligned: frozenset[Value] = frozenset(),
    choice: Choice = HEURISTIC,
) -> SegmentedFusion:
    """Cut a simplified, concrete fusion into kernels for a device.

    Matrix products become kernels where that is worth it. The fusion is grouped with all that may
    be kernels, and again without those that torch is expected to compute faster.

    Reductions with too few rows to fill the device are done in two steps: ``sum(t)`` becomes
    ``sum(sum(reshape(t)))``. Reductions of other axes of the same data may be split too, so that
    they share a kernel. Where that splits the rows of a kernel, the fusion is scheduled both ways,
    and the way of the lower ``cost`` is taken.

    Parameters
    ----------
    fusion : Fusion
        Simplified, its sizes known.
    device : DeviceProperties
        The device to schedule for.
    two_steps : bool
        Whether reductions may be split into two steps.
    products : ProductPolicy
        Who computes matrix products.
    misaligned : frozenset of Value
        Inputs that do not start at a multiple of 16 bytes.
    choice : Choice, optional
        What is decided before kernels are grouped.
    """
    fusion, reread = materialize_shared(fusion)
    invariants = choice.kept
    if invariants is None:
        invariants = choose_invariants(fusion, device)
    fusion = materialize_invariants(fusion, invariants)
    chosen = candidates(fusion, device, products)
    fuse_all = products is not ProductPolicy.AUTO
    make = partial(
        Grouper,
        device=device,
        fuse_all=fuse_all,
        misaligned=misaligned,
        over_rows=choice.over_rows,
    )

    def grouped() -> tuple[Grouper, dict[Value, int]]:
        """The groups of the fusion with the chosen products as kernels, and its tile splits."""
        found = make(contracted.fusion)
        parts = tile_parts(found) if two_steps else {}
        if not parts:
            return found, {}
        again = split_reductions(contracted.fusion, parts).fusion
        return make(again), parts

    contracted = contract_to_mma(fusion, chosen)
    grouper, in_tiles = grouped()
    while not fuse_all and (slow := slow_products(grouper)):
        chosen -= {contracted.products[value] for value in slow}
        contracted = contract_to_mma(fusion, chosen)
        grouper, in_tiles = grouped()

    def scheduled(splits: Splits) -> SegmentedFusion:
        """The groups with reductions split, as segments."""
        made = chosen_rewrites(grouper.fusion, reread, chosen, in_tiles, splits.parts)
        rewrites = replace(made, invariants=invariants)
        if not splits.parts:
            return replace(schedule(grouper), rewrites=rewrites)
        whole = split_reductions(grouper.fusion, splits.parts)
        co_reduced = last_steps(whole.fusion, splits.co_reduced)
        again = make(whole.fusion, co_reduced=co_reduced, partial=whole.partial)
        found = schedule(again, split_reasons(grouper, again, splits.parts))
        return replace(found, rewrites=rewrites)

    if not two_steps:
        return scheduled(Splits())
    if choice.rows is not None:
        return scheduled(choose_splits(grouper, choice.rows, choice.in_turn))
    splits = choose_splits(grouper, CommonRows.CUT, choice.in_turn)
    if not splits.cuts_rows:
        return scheduled(splits)
    whole_rows = choose_splits(grouper, CommonRows.WHOLE, choice.in_turn)
    return min(scheduled(whole_rows), scheduled(splits), key=cost)


def segment_as(
    fusion: Fusion, device: DeviceProperties, given: Schedule, misaligned: frozenset[Value]
) -> SegmentedFusion:
    """Cut a simplified, concrete fusion into the kernels of a schedule.

    Parameters
    ----------
    given : Schedule
        Of a fusion like this one.

    Raises
    ------
    ParamsError
        Names the field, by its path, that is of no use here or that no kernel can have, and why.
    """
    rewrites = given.rewrites
    fusion = with_invariants(materialized_as(fusion, rewrites), rewrites.invariants)
    fusion = contracted_as(fusion, device, rewrites.products)
    fusion = split_as(fusion, rewrites.tile_splits, "tile_splits").fusion
    fusion, partial = split_as(fusion, rewrites.splits, "splits")
    groups = GivenGroups(fusion, device, misaligned, given.segments, partial or None)
    made = replace(schedule(groups), rewrites=rewrites)
    groups.refuse_unfit(made.segments)
    return made


LAUNCH = 8 << 20
"""Cost of a launch, in bytes: what memory moves in that time."""


def cost(segmented: SegmentedFusion) -> int:
    """Bytes that all kernels read and write in this run, with ``LAUNCH`` bytes for each kernel."""
    moved = sum(piece.bytes_read + piece.bytes_written for piece in segmented.segments)
    return hint(moved) + LAUNCH * sum(not piece.finishes for piece in segmented.segments)
