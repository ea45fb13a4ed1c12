"""Sizes that run often get kernels of their own, compiled with constant sizes.

A new size is served by a variant with open sizes, which costs it no compilation. Its calls are
counted, and three looks are taken at it, each in the call that has used up what was counted:

1. After ``FIRST_CALLS`` the cost model says how long a run is, and so how many runs take as long as
   a compilation.
2. After these the kernels for the size alone are made, and not compiled. Where nothing but the ends
   of masks would differ, no more is counted. Else the cost model says what part of the time they
   save, at least ``LEAST_GAIN``, or ``OTHER_GAIN`` where they are other kernels, since it does not
   see all that constant sizes save.
3. When they would have saved the time of a compilation so, they are compiled, and serve the size.

So compilations take no more time than what they are for would have saved until then: a tenth of the
time of the kernels where nothing is known to differ. What is compiled stays in memory, so no more
than ``MAX_HOT`` sizes of a definition are.

A sum may add its elements in another order from then on. In which call that is follows from the
calls alone, and not from how fast a machine is at the time: a program that is run twice has the
same bits twice, and so have processes that compute the same. Where torch is to use deterministic
algorithms, nothing changes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import torch

from .. import options
from ..forks import Lock
from ..ir import Fusion
from ..lowering.cost import fusion_seconds
from ..lowering.pipeline import Lowered, lower
from .keys.recompiles import Recompile
from .keys.signature import signature
from .plan.execution_plan import ExecutionPlan, make_plan
from .plan.heat import Heat
from .size_uses import differs_in_masks_alone, has_other_kernels

FIRST_CALLS = 1000
"""Calls of a size before anything is asked about it, which takes as long as some hundred calls.
Where lengths vary from call to call most are not called as often, and cost nothing more."""

LEAST_GAIN = 0.1
"""Share of the time of open sizes that kernels of one size are taken to save, at least. Where the
model sees no difference they save 0.02 at the median and up to 0.3 (196 sizes of
``bench.open_sizes`` on an H200)."""

COMPILE_S, KERNEL_S = 0.4, 0.16
"""Seconds that a compilation takes, and for each of its kernels (``bench.cold`` on a host with an
H200: 0.52 for one kernel, 1.36 for six). What it takes at the time does not count; see above."""

OTHER_GAIN = 1 / 3
"""``LEAST_GAIN`` where constant sizes cut the definition into other kernels. Programs share rows of
constant sizes alone: norm backwards with open sizes take up to 1.9 times as long."""

MAX_HOT = 64
"""Sizes of a definition that are compiled for themselves."""

LATER_CALLS = 1000
"""Calls until the next look where a look comes at the wrong time, as in the capture of a graph."""

Note = Callable[[Recompile, ExecutionPlan], None]


class HotSizes:
    """Decides which sizes of one definition get kernels of their own.

    Parameters
    ----------
    fusion : Fusion
        The definition.
    fusion_id : int
        Its number in profiles.
    note : callable
        Told of each compilation.
    """

    def __init__(self, fusion: Fusion, fusion_id: int, note: Note) -> None:
        self._fusion = fusion
        self._fusion_id = fusion_id
        self._note = note
        self._count = 0
        self._looking = Lock()

    def clear(self) -> None:
        """Begin anew: what was compiled is dropped."""
        self._count = 0

    def watch(self, plan: ExecutionPlan) -> None:
        """Have the calls of a plan with open sizes counted."""
        if options.current().hot_sizes > 0 and self._has_room():
            plan.heat = Heat(FIRST_CALLS)

    def next(self, plan: ExecutionPlan) -> Lowered | None:
        """The kernels that the next run compiles in the place of the plan's; None where none."""
        heat = plan.heat
        if heat is None or heat.left > 0 or heat.alone is None:
            return None
        return heat.alone if self._has_room() and _may_change(plan) else None

    def counted(self, plan: ExecutionPlan, inputs: Sequence[Any]) -> ExecutionPlan:
        """Count a call: the plan that serves it and later ones of its size, a new one at times.

        Of several threads one looks, and the others run what there is. What fails leaves the plan
        in service, with a warning.
        """
        heat = plan.heat
        if heat is None:
            return plan
        heat.left -= 1
        if heat.left >= 0 or not self._looking.try_acquire():
            return plan
        try:
            if plan.heat is heat and heat.left < 0:
                return self._look(plan, heat, inputs)
        except Exception as error:  # what is there is right at this size too
            _settle(plan, heat)
            _warn(error)
        finally:
            self._looking.release()
        return plan

    def _look(self, plan: ExecutionPlan, heat: Heat, inputs: Sequence[Any]) -> ExecutionPlan:
        """The first, the second or the third look, if this is a time for it."""
        heat.left = LATER_CALLS
        if not self._has_room():
            _settle(plan, heat)
        elif _may_change(plan):
            if heat.alone is not None:
                return self._compiled(plan, heat, heat.alone, inputs)
            if heat.seconds:
                self._compare(plan, heat, inputs)
            else:
                self._predict(plan, heat)
        return plan

    def _has_room(self) -> bool:
        return self._count < MAX_HOT

    def _predict(self, plan: ExecutionPlan, heat: Heat) -> None:
        seconds = fusion_seconds(plan.lowered.segmented)
        if not seconds:
            _settle(plan, heat)  # the interpreter runs it
            return
        heat.seconds = seconds
        heat.left = max(ceil(_budget(plan) / seconds) - FIRST_CALLS, 0)

    def _compare(self, plan: ExecutionPlan, heat: Heat, inputs: Sequence[Any]) -> None:
        facts = signature(self._fusion, inputs, plan.device)
        alone = lower(self._fusion, facts, plan.properties)
        seconds = fusion_seconds(alone.segmented)
        if seconds is None or differs_in_masks_alone(plan.lowered, alone):
            _settle(plan, heat)
            return
        least = OTHER_GAIN if has_other_kernels(plan.lowered, alone) else LEAST_GAIN
        heat.gain = max(1 - seconds / heat.seconds, least)
        heat.alone = alone
        heat.left = ceil((1 / heat.gain - 1) * _budget(plan) / heat.seconds)

    def _compiled(
        self, plan: ExecutionPlan, heat: Heat, alone: Lowered, inputs: Sequence[Any]
    ) -> ExecutionPlan:
        started = time.perf_counter()
        made = make_plan(alone, inputs, plan.device, plan.properties, self._fusion_id)
        seconds = time.perf_counter() - started
        self._count += 1
        _settle(plan, heat)
        self._note(Recompile(False, _REASON.format(heat.gain), seconds=seconds), made)
        return made


_REASON = "its sizes run often, and constant ones are taken to save {:.0%} of the time"


def _budget(plan: ExecutionPlan) -> float:
    """Seconds that kernels of a size's own have to save."""
    kernels = sum(source is not None for source in plan.lowered.sources)
    return options.current().hot_sizes * (COMPILE_S + KERNEL_S * kernels)


def _may_change(plan: ExecutionPlan) -> bool:
    """Whether kernels may be compiled and changed now."""
    if torch.are_deterministic_algorithms_enabled():
        return False
    return plan.device.type == "cpu" or not torch.cuda.is_current_stream_capturing()


def _settle(plan: ExecutionPlan, heat: Heat) -> None:
    """Count no more calls of a plan. Guarded calls that count look up what serves the size now."""
    plan.heat = None
    plan.guarded_call = None
    heat.left = -1


_warned = False


def _warn(error: Exception) -> None:
    """Say, once in a process, that kernels of a size's own could not be made."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "kernels for a size that runs often could not be compiled, and those with open sizes "
            f"stay in use: {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
    options.log("cache", f"sizes stay open: {type(error).__name__}: {error}")
