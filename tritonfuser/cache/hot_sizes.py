"""Hot sizes: sizes that run often get kernels of their own, compiled with constant sizes.

A new size is served by a variant with open sizes, without a compilation. Its calls are counted in a
``Heat``. ``HotSizes`` looks at the size three times, each in the call that uses up the count:

1. After ``FIRST_CALLS``, the cost model predicts the time of a run, and so the number of calls
   whose runs take as long as a compilation.
2. After these calls, the definition is lowered with constant sizes, and not compiled. Where only
   the ends of masks would differ, counting ends. Otherwise the cost model predicts the share of
   the time that constant sizes save. It is taken as ``LEAST_GAIN`` at least, or as ``OTHER_GAIN``
   where the definition is cut into other kernels: the model does not see all savings.
3. When constant sizes would have saved the time of a compilation, they are compiled. The new plan
   serves the size from then on.

So compilations never take longer than what the kernels with open sizes cost until then. At most
``MAX_HOT`` sizes of a definition are compiled, since compiled kernels stay in memory.

A sum may be added in another order from then on. The call in which that happens follows from counts
and predictions alone, and from no measurement: two runs of a program, and processes that compute
the same, have the same bits. With torch's deterministic algorithms, kernels are never exchanged.
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
from ..lowering.lowered import Lowered
from ..lowering.pipeline import lower
from ..lowering.run_options import DEFAULT
from .keys.recompiles import Recompile
from .keys.signature import signature
from .plan.execution_plan import ExecutionPlan, make_plan
from .plan.heat import Heat
from .register_feedback import with_register_feedback
from .size_uses import differs_in_masks_alone, has_other_kernels

FIRST_CALLS = 1000
"""Calls of a size before the first look, which takes as long as some hundred calls. Where lengths
vary from call to call, most sizes never reach it."""

LEAST_GAIN = 0.1
"""The least share of the time that constant sizes are taken to save. Where the model predicts no
difference, they save 0.02 at the median and up to 0.3 (196 sizes of ``bench.open_sizes``, H200)."""

COMPILE_S, KERNEL_S = 0.4, 0.16
"""Seconds of a compilation: a constant, and for each kernel (``bench.cold`` on a host with an H200:
0.52 for one kernel, 1.36 for six). Measured times are not used; see above."""

OTHER_GAIN = 1 / 3
"""``LEAST_GAIN`` where constant sizes cut the definition into other kernels. Programs share rows of
constant sizes alone: norm backwards with open sizes take up to 1.9 times as long."""

MAX_HOT = 64
"""Hot sizes of a definition, at most."""

LATER_CALLS = 1000
"""Calls until the next look where kernels may not be exchanged now, as in a graph capture."""

Note = Callable[[Recompile, ExecutionPlan], None]


class HotSizes:
    """Decides which sizes of one definition get kernels of their own, and compiles these.

    Parameters
    ----------
    fusion : Fusion
        The definition.
    fusion_id : int
        Its number in profiles.
    note : callable
        Called with the record and the plan of each compilation.
    """

    def __init__(self, fusion: Fusion, fusion_id: int, note: Note) -> None:
        self._fusion = fusion
        self._fusion_id = fusion_id
        self._note = note
        self._count = 0
        self._looking = Lock()

    def clear(self) -> None:
        """Forget the hot sizes: their plans were dropped."""
        self._count = 0

    def watch(self, plan: ExecutionPlan) -> None:
        """Have the calls of a plan with open sizes counted."""
        if options.current().hot_sizes > 0 and self._has_room():
            plan.heat = Heat(FIRST_CALLS)

    def next(self, plan: ExecutionPlan) -> Lowered | None:
        """The kernels that the next run of a plan will compile instead; None where it will not."""
        heat = plan.heat
        if heat is None or heat.left > 0 or heat.alone is None:
            return None
        return heat.alone if self._has_room() and _may_change(plan) else None

    def counted(self, plan: ExecutionPlan, inputs: Sequence[Any]) -> ExecutionPlan:
        """Count a call of a plan with open sizes.

        One thread at a time takes a look; others run the given plan. An error in a look is a
        warning, and the given plan stays.

        Returns
        -------
        ExecutionPlan
            The plan for this call and later ones of its size: the given one, or a new one.
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
        except Exception as error:  # the given plan is correct at this size too
            _settle(plan, heat)
            _warn(error)
        finally:
            self._looking.release()
        return plan

    def _look(self, plan: ExecutionPlan, heat: Heat, inputs: Sequence[Any]) -> ExecutionPlan:
        """Take the next of the three looks, where kernels may be exchanged now."""
        heat.left = LATER_CALLS
        if not self._has_room():
            _settle(plan, heat)
        elif _may_change(plan):
            if heat.alone is not None:
                return self._compile(plan, heat, heat.alone, inputs)
            if heat.seconds:
                self._compare(plan, heat, inputs)
            else:
                self._predict(plan, heat)
        return plan

    def _has_room(self) -> bool:
        return self._count < MAX_HOT

    def _predict(self, plan: ExecutionPlan, heat: Heat) -> None:
        """The first look: the time of a run, and the calls until the second."""
        seconds = fusion_seconds(plan.lowered.segmented)
        if not seconds:
            _settle(plan, heat)  # the interpreter runs it
            return
        heat.seconds = seconds
        heat.left = max(ceil(_budget(plan) / seconds) - FIRST_CALLS, 0)

    def _compare(self, plan: ExecutionPlan, heat: Heat, inputs: Sequence[Any]) -> None:
        """The second look: the gain of constant sizes, and the calls until the third."""
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

    def _compile(
        self, plan: ExecutionPlan, heat: Heat, alone: Lowered, inputs: Sequence[Any]
    ) -> ExecutionPlan:
        """The third look: compile the kernels with constant sizes."""
        started = time.perf_counter()
        alone = with_register_feedback(
            self._fusion, alone, inputs, plan.properties, DEFAULT, plan.device
        )
        made = make_plan(alone, inputs, plan.device, plan.properties, self._fusion_id)
        seconds = time.perf_counter() - started
        self._count += 1
        _settle(plan, heat)
        self._note(Recompile(False, _REASON.format(heat.gain), seconds=seconds), made)
        return made


_REASON = "its sizes run often, and constant ones are taken to save {:.0%} of the time"


def _budget(plan: ExecutionPlan) -> float:
    """Seconds that kernels with constant sizes have to save: those of their compilation."""
    kernels = sum(source is not None for source in plan.lowered.sources)
    return options.current().hot_sizes * (COMPILE_S + KERNEL_S * kernels)


def _may_change(plan: ExecutionPlan) -> bool:
    """Whether kernels may be compiled and exchanged now."""
    if torch.are_deterministic_algorithms_enabled():
        return False
    return plan.device.type == "cpu" or not torch.cuda.is_current_stream_capturing()


def _settle(plan: ExecutionPlan, heat: Heat) -> None:
    """Stop counting the calls of a plan. Its guarded calls miss once, and are made anew."""
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
