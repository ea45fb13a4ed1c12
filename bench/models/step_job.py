"""The job of one contender of a step."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..families.index import FAMILIES
from ..measure.inductor import compiled, tune_exclusively
from ..measure.kernel_times import Ran, busy, ran_kernels, warm_up
from ..measure.timing import free, synchronize
from ..processes.jobs import JobContext
from ..record.thunder_without_gpu import executors, thunder
from ..tables.records import OURS
from .materialize import materialized
from .step_times import StepTimes, by_kind

PEERS = ("compile", "eager")
FUSION_TYPES = ("consecutive", "dataflow")
"""How Thunder finds what is fused: runs of ops in the order of its trace, which is its default, or
also ops that others stand between."""
STEPS, ROUNDS = 10, 7


@dataclass
class ModelStep:
    """A job for a worker: one way to run the step of a family.

    Attributes
    ----------
    family, size : str
        Which step.
    who : str
        Through Thunder with tritonfuser, by torch.compile, or eager.
    reduced : bool
        Whether it is run at the sizes of tests.
    clock : callable
        Runs a function several times and returns the kernels that ran.
    fusion_type : str
        How Thunder finds what is fused: one of `FUSION_TYPES`.
    """

    family: str
    size: str
    who: str
    reduced: bool = False
    device: str = "cuda"
    clock: Callable[[Callable[[], Any], int], Sequence[Ran]] = ran_kernels
    fusion_type: str = FUSION_TYPES[0]
    _step: Callable[[], None] | None = field(default=None, repr=False)
    _first: float = 0.0

    def prepare(self, context: JobContext) -> None:
        """Build the model and run a step, which compiles it."""
        if self.device == "cuda":
            tune_exclusively(context.gpu_lock)
            torch.ones(1, device="cuda")  # so that the first call does not make the GPU's context
        self._step = self._made()
        begun = time.perf_counter()
        self._step()
        synchronize(self.device)
        self._first = time.perf_counter() - begun
        self._step()
        if self.device == "cuda":
            warm_up()
        free(self.device)

    def _made(self) -> Callable[[], None]:
        family = FAMILIES[self.family]
        with torch.device("meta"):
            built = family.build(**(family.reduced if self.reduced else family.sizes)[self.size])
        step = materialized(built, self.device)
        if isinstance(step.run, torch.nn.Module):
            leaves = [*step.run.parameters(), *_asked(step.inputs)]
        else:
            leaves = _asked(step.inputs)
        run = self._contender(step.run)

        def one() -> None:
            for leaf in leaves:
                leaf.grad = None
            with torch.set_grad_enabled(step.training):
                found = run(*step.inputs)
            if step.training:
                results = [x for x in _flat(found) if x.requires_grad]
                torch.autograd.backward(results, [torch.ones_like(x) for x in results])

        return one

    def _contender(self, run: Callable[..., Any]) -> Callable[..., Any]:
        if self.who == OURS:
            jitted: Callable[..., Any] = thunder().jit(
                run, executors=executors(), fusion_type=self.fusion_type
            )
            return jitted
        return compiled(run, None) if self.who == "compile" else run

    def measure(self) -> StepTimes:
        """Measure the kernels of a step, the wall-clock time of consecutive ones, and memory."""
        assert self._step is not None
        found = self.clock(self._step, STEPS)
        seconds = statistics.median(self._seconds(self._step) for _ in range(ROUNDS))
        peak = self._peak(self._step)
        self._step = None
        free(self.device)
        running = busy((ran.start, ran.end) for ran in found) / STEPS
        gaps = max(0.0, seconds - running)
        return StepTimes(
            **by_kind(found, STEPS), seconds=seconds, gaps=gaps, peak=peak, first=self._first
        )

    def _seconds(self, step: Callable[[], None]) -> float:
        synchronize(self.device)
        begun = time.perf_counter()
        for _ in range(STEPS):
            step()
        synchronize(self.device)
        return (time.perf_counter() - begun) / STEPS

    def _peak(self, step: Callable[[], None]) -> int:
        if self.device != "cuda":
            return 0
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()


def _asked(inputs: Sequence[Any]) -> list[torch.Tensor]:
    return [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]


def _flat(found: Any) -> list[torch.Tensor]:
    if isinstance(found, torch.Tensor):
        return [found]
    return [x for item in found for x in _flat(item)] if isinstance(found, (tuple, list)) else []
