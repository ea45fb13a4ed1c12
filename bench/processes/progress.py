"""Progress of a run: tqdm's bar on a terminal, a line every few seconds in a log."""

from __future__ import annotations

import sys
from typing import TextIO

from tqdm import tqdm

EVERY = 10.0
"""Seconds between two lines in a log."""
_OFTEN = 0.2


class Progress:
    """Shows the progress of a run and its elapsed time.

    Parameters
    ----------
    total : int
        Number of steps.
    unit : str
        Name of a step.
    """

    def __init__(self, total: int, unit: str, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        seldom = _OFTEN if self._out.isatty() else EVERY
        self._bar = tqdm(total=total, unit=unit, file=self._out, leave=False, mininterval=seldom)

    def show(self, done: int, text: str) -> None:
        """Show the number of finished steps; in a log at most every ``EVERY`` seconds."""
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.write(text, file=self._out)
