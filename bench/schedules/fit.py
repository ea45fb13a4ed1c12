"""Fits the constants of the cost model to measured schedules, and judges the model by the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from tritonfuser.heuristics.cost.constants import Constants
from tritonfuser.heuristics.cost.model import kernel_time, wanted_registers

from .judged import judged
from .kernels import Measured, measured_by_device
from .summary import problems

PRIORS = Constants(
    launch_s=2e-6,
    kernel_s=1.5e-6,
    start_s=0.6e-6,
    latency_s=0.4e-6,
    second_latency=0.5,
    bandwidth=1.0,
    sm_bytes=48.0,
    sm_written_bytes=18.0,
    line_clocks=1.0,
    issue=0.9,
    latent_warps=4.0,
    masked=0.7,
    serial_clocks=3.0,
    tail=0.5,
    exchange_tail=0.7,
    sfu_clocks=1.0,
    code_misses=0.5,
    program_clocks=300.0,
    warp_clocks=15.0,
    step_instructions=20.0,
    program_instructions=80.0,
    access_instructions=4.0,
    index_instructions=2.0,
    load_instructions=1.0,
    element_instructions=1.0,
    draw_instructions=15.0,
    exchange_instructions=4.0,
    row_exchange_instructions=3.0,
    reduction_clocks=150.0,
    barrier_clocks=40.0,
    l2_share_bytes=30e6,
    drift=0.3,
    written_in_part=1.0,
    refetched=0.5,
    spill_traffic=2.0,
    registers=14.0,
    registers_element=0.5,
    registers_flat=0.9,
    registers_kept=0.8,
    registers_accumulator=0.9,
    registers_column=2.0,
    registers_word=0.2,
    registers_result=1.0,
    registers_op=1.5,
    registers_pipeline=5.0,
    registers_load=1.5,
)
"""Where the fit begins, and what it stays near to: data sheets, or what the code looks like."""

PRIOR_WEIGHT = 0.002
"""Weight of the squared logarithm of each constant over its prior."""

ABSOLUTE_WEIGHT = 0.2
"""Weight of errors of times, beside those of times over the mean of their problem."""

REGISTER_WEIGHT = 0.15
"""Weight of errors of registers."""

SOFT = 0.2
"""Logarithm of an error from which on it counts by its size, not by its square."""

STEPS, RATE = 400, 0.05

NAMES = [f.name for f in fields(Constants)]


class Tensors:
    """What the model needs of tensors: ``Numbers``."""

    def minimum(self, a: Any, b: Any) -> torch.Tensor:
        return torch.minimum(*_pair(a, b))

    def maximum(self, a: Any, b: Any) -> torch.Tensor:
        return torch.maximum(*_pair(a, b))

    def where(self, condition: Any, a: Any, b: Any) -> torch.Tensor:
        return torch.where(condition, a, b)

    def log2(self, a: Any) -> torch.Tensor:
        return torch.log2(a)

    def ceil(self, a: Any) -> torch.Tensor:
        return torch.ceil(a)

    def floor(self, a: Any) -> torch.Tensor:
        return torch.floor(a)


def _pair(a: Any, b: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.as_tensor(a, dtype=torch.float64), torch.as_tensor(b, dtype=torch.float64)


def constants_at(logs: torch.Tensor) -> Constants:
    """The constants at logarithms of multiples of the priors."""
    priors = asdict(PRIORS)
    return Constants(**{n: torch.exp(logs[i]) * priors[n] for i, n in enumerate(NAMES)})


def seconds(data: Measured, c: Constants) -> torch.Tensor:
    """The time of each schedule by the model."""
    kernels = kernel_time(data.counts, data.device, c, Tensors()).seconds
    total = torch.zeros(len(data.names), dtype=torch.float64)
    return total.index_add(0, data.schedule, kernels) + c.launch_s * data.launched


def _soft(error: torch.Tensor) -> torch.Tensor:
    return torch.sqrt(1 + (error / SOFT) ** 2) - 1


def _time_loss(data: Measured, used: torch.Tensor, c: Constants) -> torch.Tensor:
    """Errors of the order of a problem's schedules, the faster ones counting more."""
    error = torch.log(seconds(data, c) / data.seconds)
    count = int(data.problem.max()) + 1
    zeros = torch.zeros(count, dtype=torch.float64)
    best = (zeros + math.inf).scatter_reduce(0, data.problem, data.seconds, "amin")
    weight = best[data.problem] / data.seconds * used
    total = zeros.index_add(0, data.problem, weight).clamp(min=1e-9)
    mean = zeros.index_add(0, data.problem, weight * error) / total
    apart = _soft(error - mean[data.problem]) + ABSOLUTE_WEIGHT * _soft(error)
    return (weight * apart).sum() / weight.sum()


def _register_loss(data: Measured, used: torch.Tensor, c: Constants) -> torch.Tensor:
    """Errors of registers; where some were spilled, or all used, more may have been wanted."""
    known = used[data.schedule] & ~torch.isnan(data.registers)
    wanted = wanted_registers(data.counts, c, Tensors())[known]
    limit = data.counts.register_limit[known]
    found, spilled = data.registers[known], data.spilled[known]
    short = _soft(torch.clamp(torch.log(wanted / (limit + spilled)), max=0.0))
    over = 3 * torch.relu(torch.log(0.9 * limit / wanted))
    full = (spilled > 0) | (found >= limit - 6)
    cut = torch.where(spilled > 0, short, over)
    return torch.where(full, cut, _soft(torch.log(wanted / found))).mean()


def fitted(found: Sequence[Measured]) -> Constants:
    """The constants for the schedules that are not held out, of several devices."""
    logs = torch.zeros(len(NAMES), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logs], lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        c = constants_at(logs)
        loss = PRIOR_WEIGHT * (logs**2).sum()
        for data in found:
            used = ~data.held_out
            times, registers = _time_loss(data, used, c), _register_loss(data, used, c)
            loss = loss + (times + REGISTER_WEIGHT * registers) * _share(data, found)
        torch.autograd.backward(loss)
        optimizer.step()
    return Constants(**{n: float(f"{getattr(constants_at(logs), n):.3g}") for n in NAMES})


def _share(data: Measured, found: Sequence[Measured]) -> float:
    """The problems of one device, as a share of all."""
    return data.problems / sum(other.problems for other in found)


def fit(paths: Sequence[Path]) -> str:
    """Fit to two thirds of the problems of files, and judge by the others; as text."""
    found = measured_by_device(problem for path in paths for problem in problems(path))
    made = fitted(found)
    lines = [f"    {name}: float = {getattr(made, name)!r}" for name in NAMES]
    return "\n".join((*lines, *(line for data in found for line in _judgement(data, made))))


def _judgement(data: Measured, made: Constants) -> Iterator[str]:
    """How well fitted and shipped constants choose on one device."""
    held, name = data.held_out, data.device.name
    yield f"{name}, fitted, used: {judged(data, seconds(data, made), ~held)}"
    yield f"{name}, fitted, held out: {judged(data, seconds(data, made), held)}"
    yield f"{name}, shipped, held out: {judged(data, seconds(data, Constants()), held)}"
