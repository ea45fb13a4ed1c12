"""Measured schedules in, what their kernels count out: arrays with an entry for each kernel."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tritonfuser import Schedule
from tritonfuser.device import known
from tritonfuser.errors import TritonFuserError
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.counts import Counts
from tritonfuser.heuristics.params import HeuristicParams, KernelParams
from tritonfuser.heuristics.problem import ElementWork
from tritonfuser.heuristics.problem import Problem as Facts
from tritonfuser.heuristics.streams import Stream
from tritonfuser.lowering.cost import segment_element_work
from tritonfuser.lowering.segments import Segment

from .problems import Problem

H200 = known("sm_90")


@dataclass(frozen=True)
class Measured:
    """Schedules and their kernels.

    Attributes
    ----------
    names : list of str
        The problem of each schedule.
    problem : Tensor
        Its number.
    seconds : Tensor
        The time of each schedule.
    heuristic : Tensor
        Whether it is that of the heuristics.
    counts : Counts
        Of each kernel, as tensors.
    schedule : Tensor
        The schedule of each kernel.
    registers, spilled : Tensor
        Registers of a thread, and spilled bytes, of each kernel; nan where they were not recorded.
    """

    names: list[str]
    problem: torch.Tensor
    seconds: torch.Tensor
    heuristic: torch.Tensor
    counts: Counts
    schedule: torch.Tensor
    registers: torch.Tensor
    spilled: torch.Tensor

    @property
    def held_out(self) -> torch.Tensor:
        """Whether each schedule is of a problem that nothing is fitted to: a third, by its name."""
        return torch.tensor([is_held_out(name) for name in self.names])


def is_held_out(name: str) -> bool:
    """Whether a problem is for judging alone."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def measured(found: list[dict[str, Any]]) -> Measured:
    """The kernels of the schedules of measured problems."""
    names: list[str] = []
    rows: list[tuple[int, float, bool]] = []
    counts: list[Counts] = []
    kernels: list[tuple[int, float, float]] = []
    for number, problem in enumerate(found):
        works = _works(problem)
        for place, candidate in enumerate(problem["candidates"]):
            if candidate["seconds"] is None:
                continue
            for made, registers, spilled in _kernels(candidate, works):
                counts.append(made)
                kernels.append((len(rows), registers, spilled))
            rows.append((number, candidate["seconds"], place == 0))
            names.append(problem["name"])
    columns = {n: _tensor([getattr(c, n) for c in counts]) for n in Counts._fields}
    schedule, registers_of, spills = zip(*kernels, strict=True)
    numbers, seconds, first = zip(*rows, strict=True)
    return Measured(
        names=names,
        problem=torch.tensor(numbers),
        seconds=_tensor(seconds),
        heuristic=torch.tensor(first),
        counts=Counts(**columns),
        schedule=torch.tensor(schedule),
        registers=_tensor(registers_of),
        spilled=_tensor(spills),
    )


def _tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _kernels(
    candidate: dict[str, Any], works: list[ElementWork]
) -> Iterator[tuple[Counts, float, float]]:
    """(counts, registers, spilled bytes) of each kernel of a schedule."""
    segments = candidate["schedule"]["segments"]
    nothing = [None] * len(segments)
    recorded = candidate.get("registers") or nothing
    for place, (facts, segment) in enumerate(zip(candidate["facts"], segments, strict=True)):
        if facts is None:
            continue
        given = {"scheduler": segment["scheduler"], **segment["params"]}
        params = HeuristicParams.from_dict(given)
        if isinstance(params, KernelParams):
            work = works[place] if place < len(works) else ElementWork()
            registers, spilled = recorded[place] or (float("nan"), float("nan"))
            yield Counting(facts_of(facts), work).counts(params), registers, spilled


def facts_of(data: dict[str, Any]) -> Facts:
    """The facts that a line of the file has, on an H200."""
    streams = tuple(Stream(**stream) for stream in data["streams"])
    rest = {k: v for k, v in data.items() if k not in ("streams", "device", "product")}
    return Facts(**rest, streams=streams, device=H200)


def _works(problem: dict[str, Any]) -> list[ElementWork]:
    """The instructions of the kernels of a problem, which all of its schedules have alike."""
    return [segment_element_work(piece) for piece in _segments(problem)]


def _segments(problem: dict[str, Any]) -> tuple[Segment, ...]:
    """As its schedules cut it. The data may be older than rules of what is legal."""
    made = Problem(problem["name"], problem["dtype"], problem["rows"], problem["columns"])
    fd, shapes = made.definition()
    inputs = [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in shapes]
    candidates = problem["candidates"]
    for candidate in (candidates[0], *random.Random(0).sample(candidates, min(4, len(candidates)))):
        try:
            schedule = Schedule.from_dict(candidate["schedule"])
            return tuple(fd.segments(inputs, arch="sm_90", schedule=schedule).segments)
        except TritonFuserError:
            continue
    return tuple(fd.segments(inputs, arch="sm_90").segments)
