"""Timed runs for profilers: every plan of the process runs with a clock while one listens.

Without listeners a call costs nothing more: adding the first one exchanges the ``run`` of all
living plans and guarded calls, so a call has no flag to test.
"""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from ...forks import Lock
from ..plan.clocks import clock_for
from ..plan.execution_plan import ExecutionPlan, Run


@dataclass(frozen=True, eq=False)
class Timing:
    """One run of a plan.

    Attributes
    ----------
    plan : ExecutionPlan
        The plan that ran.
    fusion_id : int
        The number of its definition.
    host_seconds : float
        Seconds from the call to its return. On a GPU that is before the kernels are done.
    device_seconds : float
        Seconds from the start of the first step to the end of the last, without launch overhead.
    step_seconds : tuple of float
        Seconds of each of ``plan.steps``.
    stream : int
        The number of the CUDA stream; 0 on a CPU.
    """

    plan: ExecutionPlan
    fusion_id: int
    host_seconds: float
    device_seconds: float
    step_seconds: tuple[float, ...]
    stream: int


class ProfiledCall(Protocol):
    """A guarded call: ``run`` is ``plain``, or ``profiled`` while there is a listener."""

    run: Any
    plain: Any

    @property
    def profiled(self) -> Any:
        """``run`` while there is a listener: it calls ``plan.run``, which is timed."""


Listener = Callable[[Timing], None]

_lock = Lock()
_plans: weakref.WeakSet[ExecutionPlan] = weakref.WeakSet()
_calls: weakref.WeakSet[ProfiledCall] = weakref.WeakSet()
_listeners: tuple[Listener, ...] = ()


def add_listener(listener: Listener) -> None:
    """Time every run of the process and call ``listener`` with each, until it is removed."""
    global _listeners
    with _lock:
        _listeners = (*_listeners, listener)
        for plan in _plans:
            plan.run = _timed_run(plan)
        for call in _calls:
            call.run = call.profiled


def remove_listener(listener: Listener) -> None:
    """Undo ``add_listener``. Without listeners all plans run untimed."""
    global _listeners
    with _lock:
        _listeners = tuple(found for found in _listeners if found != listener)
        if not _listeners:
            for plan in _plans:
                plan.run = plan.plain
            for call in _calls:
                call.run = call.plain


def register_plan(plan: ExecutionPlan) -> ExecutionPlan:
    """Have listeners see the runs of a new plan."""
    with _lock:
        _plans.add(plan)
        if _listeners:
            plan.run = _timed_run(plan)
    return plan


def register_call(call: ProfiledCall) -> None:
    """Have listeners see the runs of a new guarded call."""
    with _lock:
        _calls.add(call)
        if _listeners:
            call.run = call.profiled


def _timed_run(plan: ExecutionPlan) -> Run:
    def run(inputs: Sequence[Any]) -> list[torch.Tensor]:
        if plan.device.type != "cpu" and torch.cuda.is_current_stream_capturing():
            return plan.plain(inputs)  # a graph is recorded: nothing runs yet
        outputs, timing = timed(plan, inputs)
        for listener in _listeners:
            listener(timing)
        return outputs

    return run


def timed(plan: ExecutionPlan, inputs: Sequence[Any]) -> tuple[list[torch.Tensor], Timing]:
    """Run once with a clock; on a GPU this synchronizes."""
    function = plan.timed
    clock = clock_for(plan.device, len(plan.steps))
    started = time.perf_counter()
    outputs = function(inputs, clock)
    host = time.perf_counter() - started
    return outputs, Timing(plan, plan.fusion_id, host, clock.total(), clock.seconds(), clock.stream)


REPEATS = 20
"""Runs whose median is taken."""

FLUSHED_BYTES = 256 << 20
"""Bytes written between runs to evict all else from the L2 cache: more than any GPU's has."""


def measured(plan: ExecutionPlan, inputs: Sequence[Any]) -> dict[str, float]:
    """Median seconds of each step on a GPU, by the name of its segment, with a cold L2 cache.

    Runs the plan ``REPEATS`` times and once more, so outputs that alias inputs are written into
    them as often. The state of torch's random number generator is restored.
    """
    scratch = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device=plan.device)
    found: list[tuple[float, ...]] = []
    with torch.random.fork_rng(devices=[plan.device], device_type=plan.device.type):
        plan.plain(inputs)
        for _ in range(REPEATS):
            scratch.zero_()
            found.append(timed(plan, inputs)[1].step_seconds)
    medians = (statistics.median(times) for times in zip(*found, strict=True))
    return {step.segment.name: took for step, took in zip(plan.steps, medians, strict=True)}
