"""The progress of a search, on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tqdm import tqdm

from ..vocabulary.units import seconds_text
from .report import Trial


class Progress:
    """A bar over the seconds of the budget, with the number of schedules and the best time."""

    def __init__(self, budget: float, shown: bool) -> None:
        self._begun = time.monotonic()
        self._bar = tqdm(
            total=round(budget, 1),
            desc="autotune",
            unit="s",
            leave=False,
            # Without a terminal nothing is drawn.
            disable=None if shown else True,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {n:.1f}/{total:.1f} s{postfix}",
        )

    def __call__(self, trials: Sequence[Trial]) -> None:
        """Show what was tried so far."""
        total = self._bar.total or 0.0
        self._bar.update(min(time.monotonic() - self._begun, total) - self._bar.n)
        times = [t.seconds for t in trials if t.seconds is not None and not t.failure]
        best = f", best {seconds_text(min(times))}" if times else ""
        self._bar.set_postfix_str(f"{len(trials)} schedules{best}", refresh=False)

    def close(self) -> None:
        """Remove the bar."""
        self._bar.close()


@contextmanager
def progress(budget: float, shown: bool) -> Iterator[Progress]:
    """The progress of a search of so many seconds."""
    made = Progress(budget, shown)
    try:
        yield made
    finally:
        made.close()
