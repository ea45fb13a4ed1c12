"""The last rounds of a search: the fastest are checked, and timed beside the heuristics'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .interfaces import Measurer
from .report import Trial

FINALISTS = 4
"""Schedules that are timed again, beside that of the heuristics."""

FINAL_ROUNDS = 25
"""Interleaved rounds of the last comparison."""

GAIN = 0.99
"""A schedule is better than the heuristics' where its time is less than this share of it."""


def decided(trials: list[Trial], measurer: Measurer) -> int:
    """The number of the best trial. What is found of the fastest is put into ``trials``.

    Parameters
    ----------
    trials : list of Trial
        The first one is of the heuristics' schedule. It is the best where no other is faster by
        ``GAIN``.
    """
    ranked = sorted(
        (n for n, t in enumerate(trials) if n and t.seconds is not None and not t.failure),
        key=lambda n: trials[n].seconds or 0.0,
    )[:FINALISTS]
    wrong = measurer.judge([trials[n].schedule for n in ranked]) if ranked else []
    for number, why in zip(ranked, wrong, strict=True):
        trials[number] = replace(trials[number], failure=why)
    finalists = [0, *(n for n, why in zip(ranked, wrong, strict=True) if not why)]
    found = measurer.measure([trials[n].schedule for n in finalists], FINAL_ROUNDS)
    for number, seconds in zip(finalists, found, strict=True):
        trial = replace(trials[number], finalist=True)
        if isinstance(seconds, str):
            trial = replace(trial, failure=seconds, seconds=None)
        else:
            trial = replace(trial, seconds=seconds)
        trials[number] = trial
    return _fastest(trials, finalists)


def _fastest(trials: Sequence[Trial], finalists: Sequence[int]) -> int:
    heuristic = trials[0].seconds
    best = 0
    if heuristic is None or trials[0].failure:
        return 0
    least = GAIN * heuristic
    for number in finalists[1:]:
        seconds = trials[number].seconds
        if seconds is not None and not trials[number].failure and seconds < least:
            best, least = number, seconds
    return best
