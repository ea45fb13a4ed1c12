"""``Segmenter``: which nodes share a kernel, with which params, and why; all stages in order.

``Segmenter`` chooses a schedule and makes the segments of it on the way. The stages, each from the
result of the one before:

1. Memory: which values kernels read rather than compute (``rewritten.py``), after reductions of
   concatenated tensors became reductions of each of these.
2. Groups: each reduction, product and result joins a kernel or starts one (``grouper.py``).
   Legality says what one kernel can hold, and a scheduler has to take it. Products that torch
   computes faster are left to torch (``product_kernels.py``).
3. Splits: which reductions are done in two steps (``splits/``). The fusion is rewritten
   and grouped once more.
4. Schedule: each group becomes a segment with params (``scheduling.py``), which is then emitted.

``segment_as`` makes the segments of a given schedule by the same stages. It chooses nothing, so
one grouping is enough. ``Segmenter`` does not call it for the schedule that it has chosen: it has
the groups already, and for open sizes its splits have parts that are chosen at each size, which no
schedule can express.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...device import DeviceProperties
from ...heuristics.schedule import Rewrites, Schedule
from ...ir import Fusion, Value
from ..memo import Memo, no_memo
from ..product_policy import ProductPolicy
from ..segments.segmented_fusion import SegmentedFusion
from .faster_cut import faster_cut
from .given.fit import refuse_unfit
from .given.groups import GivenGroups
from .given.rewrites import rewritten_as
from .grouper import Grouper
from .product_kernels import Grouped, with_product_kernels
from .reasons import split_reasons
from .rewritten import CommonRewrites, in_two_steps
from .rules import Rules
from .scheduling import schedule
from .splits.common_rows import Splits, last_steps
from .splits.split_policy import ByDims, CommonRows, choose_splits


@dataclass(frozen=True, slots=True)
class Choice:
    """Decisions that precede grouping. None: heuristics decide.

    Attributes
    ----------
    materialized : tuple of str or None
        Names of values in memory: one kernel stores them, all others load them.
    rows : CommonRows or None
        Whether reductions are split to share the rows of other kernels.
    over_rows : bool
        Whether reductions over rows may join kernels that reduce along these rows.
    interleaved : bool
        Whether parts of split column reductions may have interleaved rows; else adjacent ones.
    rereads_rows : bool
        Whether a kernel may read its rows twice: to reduce them, and to use the results.
    stored_flat : tuple of str
        Names of values that flat kernels store, though kernels with reductions could.
    by_dims : tuple of ByDims
        Reductions to do in two steps that reduce whole dims each.
    parts_factor : float
        Factor on the number of parts that schedulers want for split reductions.
    pieces : tuple of str
        Reductions of concatenated tensors, each of which is reduced by itself.
    """

    materialized: tuple[str, ...] | None = None
    rows: CommonRows | None = None
    over_rows: bool = True
    interleaved: bool = True
    rereads_rows: bool = True
    stored_flat: tuple[str, ...] = ()
    by_dims: tuple[ByDims, ...] = ()
    parts_factor: float = 1.0
    pieces: tuple[str, ...] = ()


HEURISTIC = Choice()


class Segmenter:
    """Cuts a simplified, concrete fusion into kernels for a device, by one choice or by several.

    Matrix products become kernels where that is worth it. The fusion is grouped with all that may
    be kernels, and again without those that torch is expected to compute faster.

    Reductions with too few rows to fill the device are done in two steps: ``sum(t)`` becomes
    ``sum(sum(reshape(t)))``. Reductions of other axes of the same data may be split too, so that
    they share a kernel. Where that splits the rows of a kernel, the fusion is scheduled both ways,
    and ``faster_cut`` takes one.

    Choices that differ in splits alone share the groups before these, and the kernels of equal
    splits.

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
    """

    def __init__(
        self,
        fusion: Fusion,
        device: DeviceProperties,
        two_steps: bool = True,
        products: ProductPolicy = ProductPolicy.AUTO,
        misaligned: frozenset[Value] = frozenset(),
    ) -> None:
        self._fusion, self._device, self._products = fusion, device, products
        self._two_steps, self._misaligned = two_steps, misaligned
        self._common_by_pieces: dict[tuple[str, ...], CommonRewrites] = {}
        self._unsplit_by_choice: dict[
            tuple[Rewrites, bool, bool, frozenset[str]], _UnsplitGroups
        ] = {}

    def __call__(self, choice: Choice = HEURISTIC) -> SegmentedFusion:
        """The kernels of a choice."""
        unsplit = self._unsplit(choice)
        splits = _splits(unsplit.grouped.groups, choice) if self._two_steps else (Splits(),)
        first, *others = (unsplit.scheduled(each) for each in splits)
        return faster_cut(first, others[0], self._device) if others else first

    def base(self, pieces: tuple[str, ...]) -> Fusion:
        """The fusion with these reductions in pieces, before a choice's values are in memory."""
        return self._common(pieces).fusion

    def _common(self, pieces: tuple[str, ...]) -> CommonRewrites:
        """What the choices with these reductions in pieces have in common."""
        if pieces not in self._common_by_pieces:
            self._common_by_pieces[pieces] = CommonRewrites.of(self._fusion, pieces)
        return self._common_by_pieces[pieces]

    def _unsplit(self, choice: Choice) -> _UnsplitGroups:
        rewritten = self._common(choice.pieces).in_memory(self._device, choice.materialized)
        of_choice = choice.over_rows, choice.rereads_rows, frozenset(choice.stored_flat)
        key = rewritten.rewrites, *of_choice
        if key not in self._unsplit_by_choice:
            every = self._products is not ProductPolicy.AUTO
            rules = Rules(self._device, every, self._misaligned, *of_choice)
            grouped = with_product_kernels(rewritten, self._products, rules, self._two_steps)
            self._unsplit_by_choice[key] = _UnsplitGroups(grouped, rules)
        return self._unsplit_by_choice[key]


class _UnsplitGroups:
    """The groups of a fusion before reductions are split, and its kernels by the splits."""

    def __init__(self, grouped: Grouped, rules: Rules) -> None:
        self.grouped, self._rules = grouped, rules
        self._made: list[tuple[Splits, SegmentedFusion]] = []

    def scheduled(self, splits: Splits) -> SegmentedFusion:
        """The segments of the fusion whose reductions are split, if any are."""
        for known, made in self._made:
            if known == splits:
                return made
        made = self._schedule(splits)
        self._made.append((splits, made))
        return made

    def _schedule(self, splits: Splits) -> SegmentedFusion:
        unsplit = self.grouped
        if not splits.parts:
            return schedule(unsplit.groups, unsplit.found.rewrites)
        found = in_two_steps(unsplit.found, splits.parts)
        groups = Grouper(found, self._rules, last_steps(found.fusion, splits.co_reduced))
        return schedule(groups, found.rewrites, split_reasons(unsplit.groups, groups, splits.parts))


def _splits(groups: Grouper, choice: Choice) -> tuple[Splits, ...]:
    """Which reductions to do in two steps: two alternatives where predicted time decides."""
    given = choice.interleaved, dict(choice.by_dims), choice.parts_factor
    if choice.rows is not None:
        return (choose_splits(groups, choice.rows, *given),)
    cut = choose_splits(groups, CommonRows.CUT, *given)
    if not cut.cuts_rows:
        return (cut,)
    return choose_splits(groups, CommonRows.WHOLE, *given), cut


def segment_as(
    fusion: Fusion,
    device: DeviceProperties,
    given: Schedule,
    misaligned: frozenset[Value],
    memo: Memo = no_memo,
) -> SegmentedFusion:
    """Cut a simplified, concrete fusion into the kernels of a schedule.

    Parameters
    ----------
    given : Schedule
        Of a fusion like this one.
    memo : Memo
        Memoizes the groups, which schedules with other params have in common.

    Raises
    ------
    ParamsError
        Names the field, by its path, that is of no use here or that no kernel can have, and why.
    """

    def grouped() -> tuple[GivenGroups, Rewrites]:
        rewritten = rewritten_as(fusion, device, given.rewrites)
        return GivenGroups(rewritten, device, misaligned, given.segments), rewritten.rewrites

    names = tuple((s.computes, s.stores, s.loads, s.co_reduced) for s in given.segments)
    key = ("groups", fusion, device, misaligned, given.rewrites, names)
    found, rewrites = memo(key, grouped)
    groups = found.under(given.segments)
    made = schedule(groups, rewrites)
    refuse_unfit(made.segments, given.segments, groups.names, device)
    return made
