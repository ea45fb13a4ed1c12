"""Who wants to know how long runs take: while anyone does, every plan runs with a clock.

With nobody listening a call is what it would be without this module: it is the ``run`` of the
living plans that is exchanged, not something that a call asks.
"""

from __future__ import annotations

import statistics
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from ..plan.clocks import clock_for
from ..plan.execution_plan import ExecutionPlan, Run


@dataclass(frozen=True, eq=False)
class Timing:
    """One run of a plan.

    Attributes
    ----------
    plan : ExecutionPlan
        What ran.
    fusion_id : int
        The number its definition goes by.
    host_seconds : float
        From the call to its return, which on a GPU is before the kernels are done.
    device_seconds : float
        From the first step to the end of the last; on a GPU without the time that launches take.
    step_seconds : tuple of float
        Those of each of ``plan.steps``.
    stream : int
        Where it ran.
    """

    plan: ExecutionPlan
    fusion_id: int
    host_seconds: float
    device_seconds: float
    step_seconds: tuple[float, ...]
    stream: int


class Entry(Protocol):
    """A way into a plan that looks at what it is given: ``run`` is ``plain``, or ``apart``."""

    run: Any
    plain: Any

    @property
    def apart(self) -> Any:
        """The same by way of the plan's own ``run``."""


Listener = Callable[[Timing], None]

_lock = threading.Lock()
_plans: weakref.WeakSet[ExecutionPlan] = weakref.WeakSet()
_entries: weakref.WeakSet[Entry] = weakref.WeakSet()
_listeners: tuple[Listener, ...] = ()


def listen(listener: Listener) -> None:
    """Have every run of the process timed and told of, until ``leave``."""
    global _listeners
    with _lock:
        _listeners = (*_listeners, listener)
        for plan in _plans:
            plan.run = _observed(plan)
        for entry in _entries:
            entry.run = entry.apart


def leave(listener: Listener) -> None:
    """Take a listener back; with the last one, all plans run as before."""
    global _listeners
    with _lock:
        _listeners = tuple(found for found in _listeners if found != listener)
        if not _listeners:
            for plan in _plans:
                plan.run = plan.plain
            for entry in _entries:
                entry.run = entry.plain


def watched(plan: ExecutionPlan) -> ExecutionPlan:
    """A new plan, made known to the listeners to come."""
    with _lock:
        _plans.add(plan)
        if _listeners:
            plan.run = _observed(plan)
    return plan


def entered(entry: Entry) -> None:
    """Make a new way into a plan known to the listeners to come."""
    with _lock:
        _entries.add(entry)
        if _listeners:
            entry.run = entry.apart


def _observed(plan: ExecutionPlan) -> Run:
    def run(inputs: Sequence[Any]) -> list[torch.Tensor]:
        if plan.device.type != "cpu" and torch.cuda.is_current_stream_capturing():
            return plan.plain(inputs)  # a graph is recorded: nothing runs yet
        outputs, timing = timed(plan, inputs)
        for listener in _listeners:
            listener(timing)
        return outputs

    return run


def timed(plan: ExecutionPlan, inputs: Sequence[Any]) -> tuple[list[torch.Tensor], Timing]:
    """Run once with a clock; on a GPU this waits until it is done."""
    function = plan.timed
    clock = clock_for(plan.device, len(plan.steps))
    started = time.perf_counter()
    outputs = function(inputs, clock)
    host = time.perf_counter() - started
    return outputs, Timing(plan, plan.fusion_id, host, clock.total(), clock.seconds(), clock.stream)


REPEATS = 20
FLUSHED_BYTES = 256 << 20
"""More than the L2 cache of any GPU: writing it leaves nothing else there."""


def measured(plan: ExecutionPlan, inputs: Sequence[Any]) -> dict[str, float]:
    """Median seconds of each step on a GPU, by its segment's name; each run starts with a cold L2.

    Runs the plan some twenty times, and so writes into inputs that its outputs alias. The
    generator of random numbers is left as it was.
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
