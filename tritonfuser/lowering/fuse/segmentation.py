"""``segment``: which nodes share a kernel, under which params, and why; all stages in order.

``segment`` chooses a schedule and makes the segments of it on the way. The stages, each from the
result of the one before:

1. Memory: which values kernels read rather than compute (``rewritten.py``).
2. Groups: each reduction, product and result joins a kernel or starts one (``grouper.py``).
   Legality says what one kernel can hold, and a scheduler has to take it. Products that torch
   computes faster are left to torch (``product_kernels.py``).
3. Splits: which reductions are done in two steps (``splits/``). The fusion is rewritten
   and grouped once more.
4. Schedule: each group becomes a segment with params (``scheduling.py``), which is then emitted.

``segment_as`` makes the segments of a given schedule by the same stages. It chooses nothing, so
that it needs one grouping. ``segment`` does not make its segments that way: it has the groups
already, and where sizes vary it has splits whose parts are chosen anew at each size, which a
schedule has not.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...device import DeviceProperties
from ...heuristics.schedule import Schedule
from ...ir import Fusion, Value
from ..product_policy import ProductPolicy
from ..segments import SegmentedFusion
from .faster_cut import faster_cut
from .given_groups import GivenGroups
from .given_rewrites import rewritten_as
from .grouper import Grouper, Rules
from .product_kernels import Grouped, with_product_kernels
from .reasons import split_reasons
from .rewritten import in_memory, in_two_steps
from .scheduling import schedule
from .splits.common_rows import Splits, last_steps
from .splits.split_policy import CommonRows, choose_splits


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
    interleaved : bool
        Whether parts of columns may have interleaved rows, and not only neighbouring ones.
    rereads_rows : bool
        Whether a kernel may read its rows twice: to reduce them, and for what follows.
    """

    kept: tuple[str, ...] | None = None
    rows: CommonRows | None = None
    over_rows: bool = True
    interleaved: bool = True
    rereads_rows: bool = True


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
    and ``faster_cut`` takes one.

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
    every = products is not ProductPolicy.AUTO
    rules = Rules(device, every, misaligned, choice.over_rows, choice.rereads_rows)
    kept = in_memory(fusion, device, choice.kept)
    whole = with_product_kernels(kept, products, rules, two_steps)
    ways = _ways(whole.groups, choice) if two_steps else (Splits(),)
    first, *others = (_scheduled(whole, splits, rules) for splits in ways)
    return faster_cut(first, others[0], device) if others else first


def _ways(groups: Grouper, choice: Choice) -> tuple[Splits, ...]:
    """Which reductions to do in two steps: in two ways where time decides between these."""
    if choice.rows is not None:
        return (choose_splits(groups, choice.rows, choice.interleaved),)
    cut = choose_splits(groups, CommonRows.CUT, choice.interleaved)
    if not cut.cuts_rows:
        return (cut,)
    return choose_splits(groups, CommonRows.WHOLE, choice.interleaved), cut


def _scheduled(whole: Grouped, splits: Splits, rules: Rules) -> SegmentedFusion:
    """The segments of a fusion whose reductions are split, if any are."""
    if not splits.parts:
        return schedule(whole.groups, whole.found.rewrites)
    found = in_two_steps(whole.found, splits.parts)
    groups = Grouper(found, rules, last_steps(found.fusion, splits.co_reduced))
    return schedule(groups, found.rewrites, split_reasons(whole.groups, groups, splits.parts))


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
    found = rewritten_as(fusion, device, given.rewrites)
    groups = GivenGroups(found, device, misaligned, given.segments)
    made = schedule(groups, found.rewrites)
    groups.refuse_unfit(made.segments)
    return made
