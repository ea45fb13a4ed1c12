"""Tries changes of a segmentation, and keeps those that the cost model says are faster.

Rules cut a fusion by legality and by bytes. They do not see that a kernel reads one tensor along
another axis than the rest, a sector for each element, or computes a value again for each of its
uses. Where the model says that kernels take much longer than their bytes, other ways to cut are
tried: with one more value in memory, or one less, and with reductions split in another way. The one
of the least time is taken, and changed further, as long as a change saves more than the model errs.
Where no change saves that, a second one is tried on top of the best: of two tensors that lie across
the rest, the second has to be copied too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...device import DeviceProperties
from ...ir import Fusion
from ..cost import LEAST_S, moved_bytes
from ..fuse.segmentation import HEURISTIC, Choice
from ..fuse.splits.split_policy import CommonRows
from ..passes.materialization import materialize_shared
from ..segments import SegmentedFusion
from .candidates import candidates
from .kernel_times import SLOW, TimedKernels, timed_kernels
from .row_rereads import reads_rows_twice, rereads_rows_in_next_kernel

APART = 0.9
"""Share of the time that kernels may take at most where rows are reduced in other kernels. These
read the same bytes as often, so what the model errs by is alike."""

SAVED = 0.15
"""Share of the time that a change has to save. Predictions of two ways to cut one fusion err alike:
less than those of kernels that have nothing in common (``ERROR`` in ``lowering/cost.py``)."""

WORTH_S = 3e-5
"""Seconds beyond the time of their bytes from which on kernels are changed: other ways to cut are
tried for some tenths of a second, which 10,000 calls win back."""

MOST_TRIED = 8
"""Ways to cut that are tried for a change."""

MOST_CHANGES = 4
"""Changes that are made."""


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
    times = _Times(device, make, {choice: best})
    for other in _apart(first, choice):
        apart = times(other)
        if apart.seconds < APART * best.seconds:
            best, choice = apart, other
    base = materialize_shared(fusion)[0] if _is_slow(best) else fusion
    for _ in range(MOST_CHANGES):
        if not _is_slow(best):
            break
        found = _changed(base, times, best, choice) or _changed_twice(base, times, best)
        if found is None:
            break
        best, choice = found
    return best.segmented


@dataclass(frozen=True)
class _Times:
    """The kernels of choices and their times, each found once."""

    device: DeviceProperties
    make: Callable[[Choice], SegmentedFusion]
    known: dict[Choice, TimedKernels]

    def __call__(self, choice: Choice) -> TimedKernels:
        if choice not in self.known:
            self.known[choice] = timed_kernels(self.make(choice), self.device)
        return self.known[choice]


def _apart(first: SegmentedFusion, choice: Choice) -> Iterator[Choice]:
    """Choices that move row reductions into the kernel that uses them, or into one before it."""
    if rereads_rows_in_next_kernel(first):
        yield replace(choice, over_rows=False)
    if reads_rows_twice(first):
        yield replace(choice, rereads_rows=False)


def _is_slow(now: TimedKernels) -> bool:
    """Whether kernels take so much longer than their bytes that a change may pay."""
    return now.excess > max(WORTH_S, (1 - 1 / SLOW) * now.seconds)


def _changed_twice(
    base: Fusion, times: _Times, now: TimedKernels
) -> tuple[TimedKernels, Choice] | None:
    """The best change of the fastest other kernels, if both together save enough."""
    others = {choice: found for choice, found in times.known.items() if found is not now}
    if not others:
        return None
    first = min(others, key=lambda choice: others[choice].seconds)
    found = _changed(base, times, others[first], first)
    enough = found is not None and found[0].seconds < (1 - SAVED) * now.seconds
    return found if enough else None


def _changed(
    base: Fusion, times: _Times, now: TimedKernels, choice: Choice
) -> tuple[TimedKernels, Choice] | None:
    """The change with the largest predicted saving; None where none saves enough.

    What may save most is tried first, and nothing that may save no more than was saved. Parts of
    neighbouring rows come last: they suit some of the tensors, where a copy may suit all.
    """
    best, saved = None, 0.0
    possible = _possible(base, times.device, now, choice)
    tried = sorted(possible, key=lambda each: -possible[each])[:MOST_TRIED]
    for each in sorted(tried, key=lambda each: choice.interleaved and not each.interleaved):
        least = max(saved, _least_saved(now, choice, each))
        if possible[each] > least:
            found = times(each)
            if now.seconds - found.seconds > least:
                best, saved = (found, each), now.seconds - found.seconds
    return best


def _least_saved(now: TimedKernels, choice: Choice, other: Choice) -> float:
    """Seconds that a change has to save: what the model errs by, or any with less in memory, for
    which there were reasons before another value was put there."""
    fewer = len(other.kept or ()) < len(choice.kept or ())
    return 0.0 if fewer else SAVED * now.seconds


def _possible(
    base: Fusion, device: DeviceProperties, now: TimedKernels, choice: Choice
) -> dict[Choice, float]:
    """Other choices, each with the most seconds that it may save."""
    found: dict[Choice, float] = {}
    # Reductions that share a first step are split into factors of their dims.
    if any(isinstance(split.parts, tuple) for split in now.segmented.rewrites.splits):
        others = (CommonRows.APART, CommonRows.WHOLE)
        found.update((replace(choice, rows=rows), now.excess) for rows in others)
    # A tensor that lies along columns has its neighbours in rows that follow one another.
    if choice.interleaved and any(split.interleave for split in now.segmented.rewrites.splits):
        found[replace(choice, interleaved=False)] = now.excess
    for name in choice.kept or ():
        fewer = tuple(other for other in choice.kept or () if other != name)
        found[replace(choice, kept=fewer)] = now.excess
    for name, saved in candidates(base, now, device).items():
        if name not in (choice.kept or ()):
            found[replace(choice, kept=(*(choice.kept or ()), name))] = saved
    return found
