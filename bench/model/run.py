"""Timing of the step: tritonfuser, the definition as a torch function, the model by autograd."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tritonfuser import FusionDefinition
from tritonfuser.frontend.vocabulary.units import seconds_text

from ..functions import TorchFunction, write
from ..measure.inductor import compiled, tune_exclusively
from ..measure.kernel_times import KernelTimes, kernel_times, warm_up
from ..measure.timing import synchronize
from ..processes.jobs import JobContext, Outcome
from ..processes.workers import Limits, run_jobs
from ..tables.formatting import human_ratio, machine_code, table
from ..tables.records import OURS
from .autograd import training_step
from .sizes import Sizes, make_inputs
from .step import record

PEERS = ("eager", "compile", "autograd", "compiled-autograd")
"""Peers: the definition's torch function, eager and compiled; the torch model, both ways."""
STEPS, ROUNDS = 10, 7
Step = Callable[[], Sequence[torch.Tensor]]


@dataclass(frozen=True)
class StepTimes:
    """Times of one training step.

    Attributes
    ----------
    kernels : KernelTimes
        Number and GPU time of the kernels.
    seconds : float
        Wall-clock seconds per step, host time included.
    loss : float
        The loss, to compare contenders; it differs slightly, since dropout masks do.
    """

    who: str
    kernels: KernelTimes
    seconds: float
    loss: float


@dataclass
class StepJob:
    """A job for a worker: one way to run the step."""

    who: str
    sizes: Sizes
    dtype: torch.dtype = torch.bfloat16
    device: str = "cuda"
    clock: Callable[[Callable[[], Any]], KernelTimes] = kernel_times
    _step: Step | None = field(default=None, repr=False)

    def prepare(self, context: JobContext) -> None:
        """Compile it by running it once."""
        if self.device == "cuda":
            tune_exclusively(context.gpu_lock)
        self._step = make_step(self.who, self.sizes, self.dtype, self.device)
        self._step()
        if self.device == "cuda":
            warm_up()

    def measure(self) -> StepTimes:
        """Measure the kernels of one step, and the wall-clock time of consecutive steps."""
        assert self._step is not None
        found = float(self._step()[0])
        kernels = self.clock(self._step)
        seconds = statistics.median(self._seconds(self._step) for _ in range(ROUNDS))
        self._step = None
        return StepTimes(self.who, kernels, seconds, found)

    def _seconds(self, step: Step) -> float:
        synchronize(self.device)
        begun = time.perf_counter()
        for _ in range(STEPS):
            step()
        synchronize(self.device)
        return (time.perf_counter() - begun) / STEPS


def make_step(who: str, sizes: Sizes, dtype: torch.dtype, device: str) -> Step:
    """One contender of the step, bound to its own inputs."""
    inputs = make_inputs(sizes, dtype, device)
    if who == "autograd":
        return training_step(sizes, inputs)
    if who == "compiled-autograd":
        return training_step(sizes, inputs, lambda loss: compiled(loss, None))
    fd = record(sizes, dtype)
    return _ours(fd, inputs) if who == OURS else _written(who, fd, inputs, device)


def _ours(fd: FusionDefinition, inputs: list[Any]) -> Step:
    return lambda: fd.run(inputs)


def _written(who: str, fd: FusionDefinition, inputs: list[Any], device: str) -> Step:
    function: TorchFunction = write(fd.fusion.ir, device)
    run, given = function.load("step"), function.arguments(inputs)
    if who == "compile":
        run = compiled(run, None)
    return lambda: run(*given)


def run_steps(
    sizes: Sizes, peers: Sequence[str], processes: int, limits: Limits
) -> dict[str, Outcome]:
    """Measure tritonfuser and the peers on this machine's GPU; a failure is an error text."""
    jobs = [StepJob(who, sizes) for who in (OURS, *peers)]
    outcomes = run_jobs(jobs, processes, limits)
    return {job.who: outcome for job, outcome in zip(jobs, outcomes, strict=True)}


def rows(outcomes: dict[str, Outcome]) -> list[dict[str, str]]:
    """The lines of the table: times, and their ratio to tritonfuser's."""
    times = {who: o.result for who, o in outcomes.items() if isinstance(o.result, StepTimes)}
    ours = times.get(OURS)
    return [
        _row(found) | ({} if ours is None else _ratios(found, ours)) for found in times.values()
    ]


def _row(found: StepTimes) -> dict[str, str]:
    return {
        "step": found.who,
        "kernels": f"{found.kernels.count:g}",
        "kernel time": seconds_text(found.kernels.seconds),
        "step time": seconds_text(found.seconds),
        "loss": f"{found.loss:.4f}",
    }


def _ratios(found: StepTimes, ours: StepTimes) -> dict[str, str]:
    return {
        "kernel time vs ours": human_ratio(found.kernels.seconds / ours.kernels.seconds),
        "step time vs ours": human_ratio(found.seconds / ours.seconds),
    }


def compiled_kernels(sizes: Sizes, arch: str) -> str:
    """Compile the kernels of the step for ``arch`` without a GPU; returns table rows."""
    fd = record(sizes, torch.bfloat16)
    reports = fd.compile_for(arch, make_inputs(sizes, torch.bfloat16, "meta"))
    return table(
        {"kernel": report.name, "scheduler": report.scheduler, **machine_code(report)}
        for report in reports
    )
