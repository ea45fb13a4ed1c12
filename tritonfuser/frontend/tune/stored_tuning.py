"""A tuning of a definition for inputs, whose schedule later runs find; also that of a first run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from ... import options
from ...cache.dry_run import checked_device
from ...cache.executor import FusionExecutorCache, Tune
from ...cache.tuned.keys import StoreKey
from ...cache.tuned.store import Stored, load, remove, save
from ..record.recording import Recording
from ..serialization.encode import recording_data
from ..serialization.signatures import signature_data
from .autotune import Task, autotune
from .report import TuneReport


@dataclass(frozen=True)
class StoredTuning:
    """A tuning, and where its schedule is stored.

    Attributes
    ----------
    core : FusionExecutorCache
        Of the definition.
    task : Task
        What is tuned.
    key : StoreKey
        What the schedule is stored by.
    """

    core: FusionExecutorCache
    task: Task
    key: StoreKey

    @classmethod
    def of(
        cls,
        core: FusionExecutorCache,
        recording: Recording,
        inputs: Sequence[Any],
        device: torch.device | None,
        *,
        budget: float,
        wide: bool,
        seed: int = 0,
        shown: bool = True,
    ) -> StoredTuning:
        """The tuning of a definition for flat inputs; see ``Task``."""
        key = core.store_key(inputs, device)
        known = load(key)
        task = Task(
            fusion=core.fusion,
            definition=recording_data(recording),
            inputs=inputs,
            device=checked_device(core.fusion, inputs, device),
            budget=budget,
            wide=wide,
            known=() if known is None else (known.schedule,),
            seed=seed,
            shown=shown,
        )
        return cls(core, task, key)

    def report(self) -> TuneReport:
        """Tune."""
        return autotune(self.task)

    def stored(self, report: TuneReport, *, always: bool = False) -> TuneReport:
        """The report, when its schedule is stored if it is better than the heuristics'.

        Parameters
        ----------
        always : bool
            Whether the heuristics' schedule is stored too, so that it is known to be the best.
        """
        return replace(report, stored=self._store(report, always))

    def _store(self, report: TuneReport, always: bool) -> str:
        """The file of what is stored; empty without one."""
        signature = signature_data(self.core.signature(self.task.inputs, self.task.device))
        problem = {"definition": self.task.definition, "inputs": signature}
        try:
            if not (report.is_better or always):
                remove(self.key)
                return ""
            times = (report.seconds, report.heuristic_seconds)
            return str(save(self.key, Stored(report.schedule, *times, report.device, problem)))
        except OSError as error:
            warnings.warn(
                f"the tuned schedule is not stored: {error}; set TRITONFUSER_CACHE_DIR to a "
                "directory that can be written to, or give "
                "fd.run(inputs, schedule=report.schedule)",
                stacklevel=2,
            )
            return ""


def first_tuning(recording: Recording) -> Tune:
    """What a first run of a definition does where ``TRITONFUSER_AUTOTUNE`` asks for it."""
    return partial(_tune_first, recording)


def _tune_first(
    recording: Recording,
    core: FusionExecutorCache,
    inputs: Sequence[Any],
    device: torch.device | None,
) -> None:
    """Tune, and store what is best; a warning where that fails, since the run needs none."""
    if recording.ir != core.fusion:
        return  # ops were added behind the executor's back
    budget = options.current().autotune
    try:
        tuning = StoredTuning.of(core, recording, inputs, device, budget=budget, wide=True)
        tuning.stored(tuning.report(), always=True)
    except Exception as error:  # out of memory for copies of inputs, a GPU that is not shared, ...
        warnings.warn(
            f"TRITONFUSER_AUTOTUNE: a definition is not tuned: {type(error).__name__}: {error}",
            stacklevel=2,
        )
