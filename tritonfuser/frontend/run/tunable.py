"""``fd.autotune``: schedules are tried on the GPU, and the fastest is kept."""

from __future__ import annotations

import math
import random
from typing import Any, Literal

import torch

from ...cache.dry_run import checked_device
from ...errors import ArgumentError, UnsupportedDeviceError
from ...ir import Fusion
from ...ops.arguments import shown
from ..multidevice.sharded_executor import ShardedExecutor
from ..record.inputs import Inputs, locate_errors
from ..tune.candidates import Proposals
from ..tune.prediction import predicted
from ..tune.report import TuneReport
from ..tune.stored_tuning import StoredTuning
from ..vocabulary.location import user_line
from ..vocabulary.unavailable import UnavailableError
from .arguments import run_options, with_device
from .validation import Validated

LEVELS = ("params", "schedule")
"""What may be changed: params of kernels alone, or also schedulers and parts of reductions."""


class Tunable(Validated):
    """A definition whose schedule can be tuned."""

    def autotune(
        self,
        inputs: Inputs,
        budget_s: float = 5.0,
        level: Literal["params", "schedule"] = "params",
        *,
        arch: str | None = None,
        seed: int = 0,
        progress: bool = True,
        store: bool = True,
    ) -> TuneReport:
        """Try schedules on the GPU for a while, and give the fastest.

        Begins with what the heuristics choose, and tries params near the best so far and random
        ones. They are compiled in parallel, and timed in another process on copies of these
        inputs, with a cold L2 cache: what faults or hangs costs that process alone. The fastest
        are checked as ``validate`` checks outputs, and timed again beside the heuristics'
        schedule, which is given where nothing is faster. Ctrl-C ends the search early.

        A faster schedule is stored, and runs with inputs of this signature use it from then on, in
        other processes too. ``TRITONFUSER_TUNED=0`` turns that off.

        Parameters
        ----------
        inputs : list or tuple
            As for ``run``, on a CUDA device. They are not written to.
        budget_s : float
            Seconds to spend. The first call of a process starts another one, which takes some
            seconds; half of the budget is left after that at least.
        level : str
            ``"params"``: other params for the kernels. ``"schedule"``: also other schedulers for
            them, other numbers of parts of reductions in two steps, and other ways to cut the
            definition into kernels.
        arch : str, optional
            Rank schedules for a GPU that need not be here, ``"sm_90"``, by the cost model: nothing
            is compiled, run or stored. CPU or meta tensors stand for tensors on that GPU.
        seed : int
            Of the order in which schedules are tried.
        progress : bool
            Whether to show a progress bar on a terminal.
        store : bool
            Whether to store the schedule for later runs.

        Returns
        -------
        TuneReport
            ``report.schedule`` is for ``run(inputs, schedule=...)``. Prints as a table.

        Raises
        ------
        ArgumentError
            The budget is no positive number of seconds, or there is no such level.
        InputError
            The inputs do not fit the definition.
        UnsupportedDeviceError
            They are not on a CUDA device.
        UnavailableError
            The definition is over a mesh of devices.

        Examples
        --------
        >>> report = fd.autotune([x, y], budget_s=10)
        >>> print(report)
        >>> fd.run([x, y], schedule=report.schedule)
        """
        _check_arguments(budget_s, level, seed)
        fusion = self._ready()
        core = self._core()
        if isinstance(core, ShardedExecutor):
            raise UnavailableError(
                "tuning a definition over a mesh is not available in tritonfuser", loc=user_line()
            )
        if arch is not None:
            return self._predicted(core.fusion, inputs, arch, level == "schedule", seed)
        with locate_errors(fusion):
            given = self._checked_inputs(inputs)
            options = with_device(run_options(), given, gpu_only=self._gpu_only())
            _check_device(checked_device(core.fusion, given, options.device))
            tuning = StoredTuning.of(
                core,
                fusion,
                given,
                options.device,
                budget=float(budget_s),
                wide=level == "schedule",
                seed=seed,
                shown=progress,
            )
            report = tuning.report()
            if not store:
                return report
            stored = tuning.stored(report)
            core.forget(given)  # the next run with these inputs looks for it
            return stored

    def _predicted(
        self, fusion: Fusion, inputs: Inputs, arch: str, wide: bool, seed: int
    ) -> TuneReport:
        """Schedules for another GPU, ranked by the cost model."""
        with locate_errors(self._ready()):
            given, _ = self._query_inputs(inputs, arch, run_options())
            rng = random.Random(seed)
            return predicted(fusion, given, arch, lambda base: Proposals(base, rng, wide), wide)


def _check_arguments(budget_s: Any, level: Any, seed: Any) -> None:
    is_number = isinstance(budget_s, int | float) and not isinstance(budget_s, bool)
    if not is_number or not 0 < budget_s < math.inf:
        raise ArgumentError(
            f"autotune: budget_s must be a positive number of seconds, got {shown(budget_s)}",
            loc=user_line(),
        )
    if level not in LEVELS:
        raise ArgumentError(
            f"autotune: level must be one of {', '.join(map(repr, LEVELS))}, got {shown(level)}",
            loc=user_line(),
        )
    if not isinstance(seed, int):
        raise ArgumentError(f"autotune: seed must be an int, got {shown(seed)}", loc=user_line())


def _check_device(where: torch.device) -> None:
    if where.type != "cuda":
        raise UnsupportedDeviceError(
            f"autotune needs a CUDA device, and the inputs are on {where}",
            loc=user_line(),
            hint="On a CPU kernels run in Triton's interpreter, whose times say nothing about a "
            "GPU. fd.autotune(inputs, arch='sm_90') ranks schedules by the cost model; "
            "fd.schedule(inputs, arch='sm_90') and fd.compile_for work without a GPU too.",
        )
