"""Tries changes of a segmentation, and keeps those that the cost model says are faster.

Rules cut a fusion by legality and by bytes. They do not see that a kernel reads one tensor along
another axis than the rest, a sector for each element, or computes a value again for each of its
uses. Where the model says that kernels take much longer than their bytes, other ways to cut are
tried: with one more value in memory, or one less, with reductions split in another way, and with
rows reduced in one kernel and used in the next. The most promising way that was found is changed
next (best-first search): of two tensors that lie across the rest, both may have to be copied before
anything is gained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf

from ...device import DeviceProperties
from ...ir import Fusion
from ..cost import LEAST_S, moved_bytes
from ..fuse.segmentation import HEURISTIC, Choice
from ..fuse.splits.split_policy import ByDims, CommonRows
from ..passes.invariants.kept_orders import named
from ..passes.materialization import materialize_shared
from ..segments.segmented_fusion import SegmentedFusion
from .candidates import candidates
from .kernel_times import TimedKernels, timed_kernels
from .row_rereads import few_read_rows_twice, reads_rows_twice, rereads_rows_in_next_kernel
from .splits_by_dims import splits_by_dims

APART = 0.9
"""Share of the time that kernels may take at most where rows are reduced in other kernels. These
read the same bytes as often, so what the model errs by is alike."""

SAVED = 0.15
"""Share of the time that changes have to save. Predictions of two ways to cut one fusion err alike:
less than those of kernels that have nothing in common (``ERROR`` in ``lowering/cost.py``)."""

ALIKE = 0.03
"""Share of the time by which ways to cut may be slower than the fastest, and be taken for that they
have fewer values in memory."""

BETTER = 0.1
"""Share of the time of the fastest that a change must be able to save to be tried. What may save
less seldom does: of 125 random definitions two have another cut for it, of 0.95 times the speed by
the model, and the search takes a sixth less."""

WORTH_S = 3e-5
"""Seconds beyond the time of their bytes from which on kernels are changed: other ways to cut are
tried for some tenths of a second, which 10,000 calls win back."""

CALLS = 50_000
"""Calls that win back the time in which ways to cut are tried, if all that is lost is saved."""

NODE_S = 1.5e-4
"""Seconds of a way to cut for each node, and each store of the heuristics' kernels: 0.08 to 0.33 ms
of twelve definitions of random graphs and models, on a CPU of 2.5 GHz."""

MOST_TRIED = 8
"""Changes of one way to cut that are tried, and of all ways at least."""

MOST_OTHERS = 4
"""Changes that are tried beside these, of values of another shape, which lie in another order in
memory, and of small ones that are broadcast."""

MOST_SPLITS = 6
"""Splits of reductions by dims that are tried beside these."""

MOST_CHANGED = 6
"""Ways to cut whose changes are tried."""


def refined(
    fusion: Fusion, device: DeviceProperties, make: Callable[[Choice], SegmentedFusion]
) -> SegmentedFusion:
    """The kernels of a fusion whose sizes do not vary.

    Parameters
    ----------
    fusion : Fusion
        Simplified.
    device : DeviceProperties
        The device to schedule for.
    make : callable
        Cuts the fusion by a choice.
    """
    first, bandwidth = make(HEURISTIC), device.bandwidth_bytes_per_s
    if device.is_cpu or moved_bytes(first) < LEAST_S * bandwidth:
        return first
    best, choice = timed_kernels(first, device), Choice(kept=first.rewrites.invariants)
    times = _Times(device, make, {choice: best}, _worth_trying(best, fusion))
    for other in _apart(first, choice):
        apart = times(other)
        if apart.is_faster(best, APART):
            best, choice = apart, other
    if _is_slow(best):
        base, changed = materialize_shared(fusion)[0], set[Choice]()
        while times.may_try and len(changed) < MOST_CHANGED and (found := _next(times, changed)):
            changed.add(found)
            _try_changes(base, times, found)
        best = _taken(times, best)
    return best.segmented


@dataclass(frozen=True)
class _Times:
    """The kernels of choices and their times, each found once.

    Attributes
    ----------
    most : float
        Choices that are worth their time.
    """

    device: DeviceProperties
    make: Callable[[Choice], SegmentedFusion]
    known: dict[Choice, TimedKernels]
    most: float = inf

    @property
    def may_try(self) -> bool:
        """Whether another choice is worth its time."""
        return len(self.known) <= self.most

    def __call__(self, choice: Choice) -> TimedKernels:
        if choice not in self.known:
            self.known[choice] = timed_kernels(self.make(choice), self.device)
        return self.known[choice]

    @property
    def least(self) -> float:
        return min(each.seconds for each in self.known.values())


def _worth_trying(now: TimedKernels, fusion: Fusion) -> int:
    """Ways to cut a fusion that are worth their time."""
    stores = sum(len(piece.stores) for piece in now.segmented.segments)
    of_one = NODE_S * max(len(fusion.nodes) * stores, 1)
    return max(int(CALLS * now.excess / of_one), MOST_TRIED)


def _apart(first: SegmentedFusion, choice: Choice) -> Iterator[Choice]:
    """Choices that move row reductions into the kernel that uses them, or into one before it."""
    if rereads_rows_in_next_kernel(first):
        yield replace(choice, over_rows=False)
    if few_read_rows_twice(first):
        yield replace(choice, rereads_rows=False)


def _is_slow(now: TimedKernels) -> bool:
    """Whether kernels take so much longer than their bytes that a change may pay."""
    return now.excess > max(WORTH_S, SAVED * now.seconds)


def _next(times: _Times, changed: set[Choice]) -> Choice | None:
    """The most promising way to cut whose changes were not tried, and may be much faster than all.

    The heuristics' is the first, if it is one of them. Half of what a change can save at most is
    expected of it. Choices that cut alike are one.
    """
    least = times.least
    tried = [times.known[choice] for choice in changed]
    possible = {
        choice: found.seconds - found.excess / 2
        for choice, found in times.known.items()
        if _is_slow(found)
        and found.seconds - found.excess < (1 - BETTER) * least
        and not any(map(found.is_like, tried))
    }
    heuristics = next(iter(times.known))
    if not changed and heuristics in possible:
        return heuristics
    return min(possible, key=lambda choice: possible[choice], default=None)


def _try_changes(base: Fusion, times: _Times, choice: Choice) -> None:
    """Time the changes of a way to cut, but for those that cannot be much faster than all known.

    What may save most is tried first. Parts of neighbouring rows come last: they suit some of the
    tensors, where a copy may suit all.
    """
    now = times.known[choice]
    found = candidates(base, now, times.device)
    possible = _possible(now, choice) | _with_one_more(choice, found.first)
    others = _with_one_more(choice, found.others)
    splits = _with_other_splits(choice, splits_by_dims(base, now, times.device))
    tried = sorted(possible, key=lambda each: -possible[each])[:MOST_TRIED]
    tried += sorted(others, key=lambda each: -others[each])[:MOST_OTHERS]
    tried += sorted(splits, key=lambda each: -splits[each])[:MOST_SPLITS]
    possible |= others | splits
    for each in sorted(tried, key=lambda each: choice.interleaved and not each.interleaved):
        may_save = now.seconds - possible[each] < (1 - BETTER) * times.least
        if may_save and times.may_try and not _changed_nothing(times, choice, each):
            times(each)


def _changed_nothing(times: _Times, choice: Choice, other: Choice) -> bool:
    """Whether the other way to split reductions was seen to be the same, with other values in
    memory."""
    for field in ("rows", "interleaved"):
        value = getattr(other, field)
        if value != getattr(choice, field):
            tried = (c for c in times.known if getattr(c, field) == getattr(choice, field))
            pairs = ((times.known[c], times.known.get(replace(c, **{field: value}))) for c in tried)
            return any(two is not None and one.is_like(two) for one, two in pairs)
    return False


def _taken(times: _Times, first: TimedKernels) -> TimedKernels:
    """The fastest kernels, or ones as fast with less in memory; the first where little is saved.

    Less in memory than at first, of which there was a reason before, need not save anything.
    """
    kept = {id(found): len(choice.kept or ()) for choice, found in times.known.items()}
    most = kept[id(first)]
    possible = [
        found
        for found in times.known.values()
        if found.is_faster(first, 1 - SAVED * (kept[id(found)] >= most))
    ]
    least = min((found.seconds for found in possible), default=0.0)
    alike = [found for found in possible if (1 - ALIKE) * found.seconds <= least]
    return min(alike, key=lambda found: (kept[id(found)], found.seconds), default=first)


def _possible(now: TimedKernels, choice: Choice) -> dict[Choice, float]:
    """Choices with other splits or one value less, each with the most seconds that it may save."""
    found: dict[Choice, float] = {}
    # Reductions that share a first step are split into factors of their dims.
    if any(isinstance(split.parts, tuple) for split in now.segmented.rewrites.splits):
        others = (CommonRows.APART, CommonRows.WHOLE)
        found.update((replace(choice, rows=rows), now.excess) for rows in others)
    # A tensor that lies along columns has its neighbours in rows that follow one another.
    if choice.interleaved and any(split.interleave for split in now.segmented.rewrites.splits):
        found[replace(choice, interleaved=False)] = now.excess
    if choice.rereads_rows and reads_rows_twice(now.segmented):
        found[replace(choice, rereads_rows=False)] = now.excess
    for name in choice.kept or ():
        fewer = tuple(other for other in choice.kept or () if other != name)
        found[replace(choice, kept=fewer)] = now.excess
    return found


def _with_one_more(choice: Choice, saved: Mapping[str, float]) -> dict[Choice, float]:
    """Choices with one more value in memory, each with the most seconds that it may save."""
    kept = choice.kept or ()
    values = {*map(named, kept)}
    return {
        replace(choice, kept=(*kept, name)): seconds
        for name, seconds in saved.items()
        if named(name) not in values
    }


def _with_other_splits(choice: Choice, saved: Mapping[ByDims, float]) -> dict[Choice, float]:
    """Choices with one more reduction split by dims, or split by others."""
    return {
        replace(choice, by_dims=(*_without(choice.by_dims, split), split)): seconds
        for split, seconds in saved.items()
        if split not in choice.by_dims
    }


def _without(splits: tuple[ByDims, ...], split: ByDims) -> tuple[ByDims, ...]:
    return tuple(other for other in splits if other.value != split.value)
