"""Time of the stages of lowering, measured by wrapping their functions."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest import mock

from tritonfuser.heuristics import schedulers
from tritonfuser.lowering import emission, pipeline, segment_choice

Stages = Mapping[str, tuple[tuple[ModuleType, str], ...]]

STAGES: Stages = {
    "concretize": ((pipeline, "concretize"),),
    "simplify": ((pipeline, "run_graph_passes"),),
    "segment": ((segment_choice, "choose"),),
    "schedule": tuple((schedulers, n) for n in ("reject_reason", "propose", "refusals", "split")),
    "tile": ((emission, "tile"),),
    "emit": ((emission, "emit_kernel"),),
}
"""The functions of each stage; time in a nested stage counts for the inner one only."""


@dataclass
class Stopwatch:
    """Exclusive seconds by stage.

    Attributes
    ----------
    clock : callable
        Returns the time in seconds; the default is the CPU time of this process.
    seconds : dict
        Seconds by stage, without nested stages.
    """

    clock: Callable[[], float] = time.process_time
    seconds: dict[str, float] = field(default_factory=dict)
    _inside: list[float] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent in this context to the stage ``name``."""
        started = self.clock()
        self._inside.append(0.0)
        try:
            yield
        finally:
            took = self.clock() - started
            self.seconds[name] = self.seconds.get(name, 0.0) + took - self._inside.pop()
            if self._inside:
                self._inside[-1] += took

    @contextmanager
    def on(self, stages: Stages) -> Iterator[None]:
        """Wrap the functions of the stages in their modules while this context is active."""
        with ExitStack() as patches:
            for name, places in stages.items():
                for module, attribute in places:
                    timed = self._around(name, getattr(module, attribute))
                    patches.enter_context(mock.patch.object(module, attribute, timed))
            yield

    def _around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return function(*args, **kwargs)

        return timed
