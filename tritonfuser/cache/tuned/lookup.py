"""The options of a run with its stored schedule, if there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...lowering.run_options import DEFAULT, RunOptions
from ...options import current
from .keys import StoreKey
from .store import is_empty, load


def tuned_options(options: RunOptions, key: Callable[[], StoreKey]) -> RunOptions | None:
    """The options with the stored schedule; None where there is none, or something is asked for.

    The key is made only where something is stored: it takes some milliseconds in a process.
    """
    if not current().tuned or replace(options, device=None) != DEFAULT or is_empty():
        return None
    found = load(key())
    if found is None:
        return None
    return replace(options, schedule=found.schedule, origin=str(found))
