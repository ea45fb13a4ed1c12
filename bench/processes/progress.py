"""How far a run is: tqdm's bar on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import sys
from typing import TextIO

from tqdm import tqdm

EVERY = 10.0
"""Seconds between two lines of a log."""
_OFTEN = 0.2


class Progress:
    """Says how far a run is, and for how long it has been running.

    Parameters
    ----------
    total : int
        Steps of the run.
    unit : str
        What a step is.
    """

    def __init__(self, total: int, unit: str, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        seldom = _OFTEN if self._out.isatty() else EVERY
        self._bar = tqdm(total=total, unit=unit, file=self._out, leave=False, mininterval=seldom)

    def show(self, done: int, text: str) -> None:
        """Where the run is now; left out where that was said a moment ago."""
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)

    def say(self, text: str) -> None:
        """A line that stays."""
        self._bar.write(text, file=self._out)
