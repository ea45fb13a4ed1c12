"""Occupancy of programs that loop over rows: by registers, threads and shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from ...device import VECTOR_BYTES
from ..cost.registers import registers_for_threads
from ..integers import TUNED_WARP_SIZE, ceil_div
from ..problem import Problem

STAGES = (3, 4)
"""Pipeline stages if no registers are left to prefetch: with enough bytes in flight, and with too
few. H200: a loop without a pipeline took 25% longer."""

REGISTERS = 24.0
"""Registers of a thread for addresses and counters. Like the next two, it is of kernels compiled
for sm_90: backwards of layer norms with one to four sums over rows, two to four tensors."""

REGISTERS_ELEMENT = 2.2
"""Registers for each element of a step, apart from its loads."""

REGISTERS_LOAD = 0.3
"""Registers for each element of a step and each tensor that is loaded."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the loop over rows.

    Attributes
    ----------
    rows : int
        Rows of a step.
    warps : int
        Warps of a program.
    stages : int
        Pipeline stages.
    prefetch : bool
        Whether each step prefetches the loads of the next one into registers.
    """

    rows: int
    warps: int
    stages: int = STAGES[0]
    prefetch: bool = False


def resident(problem: Problem, step: Step, width: int) -> int:
    """Resident programs of a multiprocessor, by registers and threads; at least one.

    Parameters
    ----------
    width : int
        Elements of all tiles of a row.
    """
    device, threads = problem.device, step.warps * problem.device.warp_size
    registers = ceil_div(int(_registers(problem, step, width)), 8) * 8
    by_registers = device.registers_per_sm // (registers * threads)
    return max(1, min(by_registers, device.max_threads_per_sm // threads))


def fits(problem: Problem, step: Step, width: int) -> bool:
    """Whether one program fits on a multiprocessor without spills."""
    threads = step.warps * problem.device.warp_size
    return _registers(problem, step, width) <= registers_for_threads(problem.device, threads)


def bytes_in_flight(problem: Problem, step: Step, width: int, here: int) -> int:
    """Bytes in flight on a multiprocessor with ``here`` resident programs."""
    return (STAGES[0] - 1) * here * _step_bytes(problem, step, width)


def has_room(problem: Problem, step: Step, width: int, here: int, stages: int) -> bool:
    """Whether the pipeline stages of ``here`` programs fit in shared memory."""
    wanted = (stages - 1) * _step_bytes(problem, step, width)
    device = problem.device
    alone = wanted <= device.stage_bytes_per_block
    return alone and wanted * here <= device.stage_bytes_per_sm


def elements_of(step: Step, width: int) -> int:
    """Elements of a thread in a step."""
    return max(step.rows * width // (step.warps * TUNED_WARP_SIZE), 1)


def vector_elements(problem: Problem) -> int:
    """Elements of a vectorized load of the narrowest tensor."""
    return VECTOR_BYTES // min((s.item_bytes for s in problem.streams), default=VECTOR_BYTES)


def _registers(problem: Problem, step: Step, width: int) -> float:
    """An estimate of the registers of a thread."""
    elements = elements_of(step, width)
    weights = sum(s.along_r and not s.along_x and not s.is_store for s in problem.streams)
    lanes = step.warps * problem.device.warp_size
    # If a row takes fewer lanes, a thread has different columns in different rows.
    along = lanes * vector_elements(problem) <= width
    columns = max(width // lanes, 1) if along else elements
    each = REGISTERS_ELEMENT + REGISTERS_LOAD * len(problem.full_loads)
    each += step.prefetch * problem.loaded_words
    return REGISTERS + columns * (problem.outer_members + weights) + elements * each


def _step_bytes(problem: Problem, step: Step, width: int) -> int:
    return step.rows * width * sum(s.item_bytes for s in problem.full_loads)
