"""``StoredSchedules``: which schedule of a tuner a run has, and whether a first run is tuned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from .. import options as settings
from ..errors import TritonFuserError
from ..ir import Fusion
from ..lowering.run_options import DEFAULT, RunOptions
from .dry_run import checked_device, properties_of
from .keys.signature import signature
from .plan.capture import refuse_first_run
from .tuned.keys import StoreKey, store_key
from .tuned.lookup import tuned_options

MOST_TUNINGS = 4
"""First runs of a definition that are tuned. A definition with more signatures has sizes that vary,
and would spend the time of a search on each."""


class StoredSchedules:
    """The schedules on disk of one definition.

    Parameters
    ----------
    fusion : Fusion
        The recorded definition.
    """

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self._searches = 0

    def key(self, inputs: Sequence[Any], device: torch.device | None = None) -> StoreKey:
        """The key of the schedule that is stored for inputs like these."""
        where = checked_device(self._fusion, inputs, device)
        found = signature(self._fusion, inputs, where)
        return store_key(self._fusion, found, properties_of(where, DEFAULT))

    def options(self, inputs: Sequence[Any], options: RunOptions) -> RunOptions | None:
        """The options with the stored schedule; None where none is stored, or options differ."""
        return tuned_options(options, lambda: self.key(inputs, options.device))

    def begins_search(
        self, inputs: Sequence[Any], options: RunOptions, is_served: Callable[[], bool]
    ) -> bool:
        """Whether a first run without a stored schedule is tuned before it is compiled.

        ``TRITONFUSER_AUTOTUNE`` asks for that, on a GPU. Each search is counted.

        Parameters
        ----------
        is_served : callable
            Whether an open variant serves the run, so that nothing is searched for it.
        """
        asked = settings.current()
        if not asked.autotune or not asked.tuned or replace(options, device=None) != DEFAULT:
            return False
        where = checked_device(self._fusion, inputs, options.device)
        if where.type != "cuda" or self._searches >= MOST_TUNINGS or is_served():
            return False
        refuse_first_run(where)
        self._searches += 1
        return True


def log_unused(error: TritonFuserError) -> None:
    """Log that a stored schedule cannot be run, and why."""
    settings.log("cache", f"the stored schedule is not used: {error.message}")
