"""Measured schedules in, what their kernels count out: arrays with an entry for each kernel."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch

from tritonfuser import Schedule
from tritonfuser.device import DeviceProperties
from tritonfuser.devices import known
from tritonfuser.errors import TritonFuserError
from tritonfuser.heuristics.cost.axis_order import in_order
from tritonfuser.heuristics.cost.counting import Counting
from tritonfuser.heuristics.cost.counts import Counts
from tritonfuser.heuristics.params import HeuristicParams, KernelParams
from tritonfuser.heuristics.plain_data.codec import decode
from tritonfuser.heuristics.problem import ElementWork
from tritonfuser.heuristics.problem import Problem as Facts
from tritonfuser.lowering.cost import segment_element_work
from tritonfuser.lowering.segments.segment import Segment

from ..held_out import is_held_out
from .problems import Problem

H200 = known("sm_90")
H100 = replace(
    H200, name="NVIDIA H100 80GB HBM3", l2_bytes=50 << 20, bandwidth_bytes_per_s=3.017e12
)
DEVICES = {device.name: device for device in (H200, H100)}
"""The devices of measured files. Facts of an H100 are as ``devices.of`` found them on one."""

FEWEST = 4
"""Params of one kernel from which on their order says something."""


@dataclass(frozen=True)
class Measured:
    """Schedules of one device, and their kernels.

    Attributes
    ----------
    device : DeviceProperties
        Where they were measured.
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
        Registers of a thread, and those that it spills, of each kernel; nan where not recorded.
    launched : Tensor
        1 where the time has the launch of the plan too, 0 where it is that of kernels alone.
    """

    device: DeviceProperties
    names: list[str]
    problem: torch.Tensor
    seconds: torch.Tensor
    heuristic: torch.Tensor
    counts: Counts
    schedule: torch.Tensor
    registers: torch.Tensor
    spilled: torch.Tensor
    launched: torch.Tensor

    @property
    def problems(self) -> int:
        """The number of problems."""
        return int(self.problem.max()) + 1

    @property
    def held_out(self) -> torch.Tensor:
        """Whether each schedule is of a problem that nothing is fitted to: a third, by its name."""
        return torch.tensor([is_held_out(name) for name in self.names])


def measured_by_device(found: Iterable[dict[str, Any]]) -> list[Measured]:
    """The same of problems of several devices, each of which says its own.

    Raises
    ------
    ValueError
        One is of a device that is not in ``DEVICES``.
    """
    of: dict[str, list[dict[str, Any]]] = {}
    for problem in found:
        if problem["device"] not in DEVICES:
            known_ones = ", ".join(DEVICES)
            raise ValueError(f"expected times of {known_ones}, got some of {problem['device']!r}")
        of.setdefault(problem["device"], []).append(problem)
    return [measured(problems, DEVICES[name]) for name, problems in of.items()]


@dataclass(frozen=True)
class _Schedule:
    """A measured schedule: its time, and (counts, registers, spilled words) of its kernels."""

    seconds: float
    kernels: list[tuple[Counts, float, float]]
    has_launch: bool


def measured(found: list[dict[str, Any]], device: DeviceProperties = H200) -> Measured:
    """The kernels of the schedules of problems that were measured on one device.

    Where each kernel has a time, those of equal facts are a problem of their own.

    Raises
    ------
    ValueError
        There is no kernel with several params.
    """
    names: list[str] = []
    rows: list[tuple[int, float, bool, bool]] = []
    kernels: list[tuple[int, float, float]] = []
    counts: list[Counts] = []
    number = 0
    for problem in found:
        by_kernel = "kernels" in problem["candidates"][0]
        for schedules in (
            single_kernels(problem, device) if by_kernel else [_whole(problem, device)]
        ):
            for place, schedule in enumerate(schedules):
                for made, registers, spilled in schedule.kernels:
                    counts.append(made)
                    kernels.append((len(rows), registers, spilled))
                rows.append((number, schedule.seconds, place == 0, schedule.has_launch))
                names.append(problem["name"])
            number += 1
    if not kernels:
        raise ValueError("no kernel was measured with several params")
    columns = {n: _tensor([getattr(c, n) for c in counts]) for n in Counts._fields}
    schedule_of, registers_of, spills = zip(*kernels, strict=True)
    numbers, seconds, first, launched = zip(*rows, strict=True)
    return Measured(
        device=device,
        names=names,
        problem=torch.tensor(numbers),
        seconds=_tensor(seconds),
        heuristic=torch.tensor(first),
        counts=Counts(**columns),
        schedule=torch.tensor(schedule_of),
        registers=_tensor(registers_of),
        spilled=_tensor(spills),
        launched=_tensor(launched),
    )


def _tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _whole(problem: dict[str, Any], device: DeviceProperties) -> Iterator[_Schedule]:
    """The schedules of a problem, whose time is that of a call."""
    works = _works(problem)
    for candidate in problem["candidates"]:
        if candidate["seconds"] is not None:
            kernels = list(_kernels(candidate, works, device))
            yield _Schedule(candidate["seconds"], kernels, True)


def _kernels(
    candidate: dict[str, Any], works: list[ElementWork], device: DeviceProperties
) -> Iterator[tuple[Counts, float, float]]:
    """(counts, registers, spilled words) of each kernel of a schedule."""
    recorded = candidate.get("registers") or [None] * len(candidate["facts"])
    for place, facts in enumerate(candidate["facts"]):
        params = _params(candidate, place)
        if params is not None:
            work = works[place] if place < len(works) else ElementWork()
            registers, spilled = recorded[place] or (float("nan"), float("nan"))
            yield counts_of(facts_of(facts, device), work, params), registers, spilled


def single_kernels(
    problem: dict[str, Any], device: DeviceProperties = H200
) -> Iterator[list[_Schedule]]:
    """The kernels of each segment, by what they compute: one schedule for each of their params.

    The first is that of the heuristics, and only segments that it has count.
    """
    candidates = problem["candidates"]
    chosen = candidates[0]
    for place, facts in enumerate(chosen["facts"]):
        if chosen["kernels"][place] is None:
            continue
        times: dict[KernelParams, list[float]] = {}
        registers: dict[KernelParams, tuple[float, float]] = {}
        for candidate in candidates:
            is_timed = candidate["kernels"] and place < len(candidate["facts"])
            if not is_timed or candidate["kernels"][place] is None:
                continue
            params = _params(candidate, place) if candidate["facts"][place] == facts else None
            if params is not None:
                times.setdefault(params, []).append(candidate["kernels"][place])
                registers[params] = candidate["registers"][place]
        if len(times) < FEWEST:
            continue
        work = decode(ElementWork, chosen["works"][place], "works")
        made = facts_of(facts, device)
        yield [
            _Schedule(median(seconds), [(counts_of(made, work, params), *registers[params])], False)
            for params, seconds in times.items()
        ]


def _params(candidate: dict[str, Any], place: int) -> KernelParams | None:
    """The params of a kernel; None where torch or a matrix product computes the segment."""
    if candidate["facts"][place] is None:
        return None
    segment = candidate["schedule"]["segments"][place]
    params = HeuristicParams.from_dict({"scheduler": segment["scheduler"], **segment["params"]})
    return params if isinstance(params, KernelParams) else None


def counts_of(facts: Facts, work: ElementWork, params: KernelParams) -> Counts:
    """What a kernel counts, with the axes of its problem in the order of its params."""
    return Counting(in_order(facts, params), work).counts(params)


def facts_of(data: dict[str, Any], device: DeviceProperties = H200) -> Facts:
    """The facts that a line of the file has, on a device."""
    given = {name: value for name, value in data.items() if name != "product"}
    found: Facts = decode(Facts, {**given, "device": device}, "facts")
    return found


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
