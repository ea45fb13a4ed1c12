"""Programs that loop over rows and keep a partial result of each column: how many, and their steps.

The lanes of a program lie along one row, each with the elements of a vector, so that a thread has
the same columns of every row and carries one number for each of them. Steps of several rows give
it independent work. All programs should be resident at once: those that are not begin when the
others have ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from ..device import VECTOR_BYTES
from .integers import TUNED_WARP_SIZE, ceil_div
from .problem import Problem

THREAD_ELEMENTS = 16
"""Elements of a step that a thread has where there are rows enough."""

MOST_THREAD_ELEMENTS = 32
"""Elements of a step of a thread, at most, where programs are few."""

WARPS_PER_SM = 16
"""Warps of a multiprocessor that hide the latency of reductions along rows."""

FLIGHT_BYTES = 48 << 10
"""Bytes of loads of a multiprocessor that should be in flight (H200)."""

STAGES = (3, 4)
"""Pipeline stages: as a rule, and where fewer bytes are in flight. H200: a loop without a pipeline
took 25% longer."""

MAX_SINGLE_ROWS = 4
"""Rows of a program up to which a step has one. H200, backward of a layer norm of 512 x 1024 in
float32: 10.0 us with one row a step, 15.0 with all four."""

ROW_S = 0.35e-6
"""Seconds that a program takes for a row when it waits for nothing but its own reductions."""

WIDE_BLOCK = 8192
"""Elements of a block without tails from which a program may have 16 warps."""

REGISTERS = 24.0
"""Registers of a thread for addresses and counters. These figures are of kernels compiled for
sm_90: backwards of layer norms with one to four sums over rows, two to four tensors."""

REGISTERS_ELEMENT = 2.2
"""For each element of a step, beside those that are loaded."""

REGISTERS_LOAD = 0.3
"""For each element of a step and each tensor that is loaded."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a program has in a step of its loop.

    Attributes
    ----------
    rows : int
        Rows.
    warps : int
        Warps of the program.
    stages : int
        Pipeline stages.
    """

    rows: int
    warps: int
    stages: int = STAGES[0]


def warps_along(problem: Problem, block: int, tails: tuple[int, ...]) -> int:
    """Warps whose lanes make up one row, each with the elements of a vector."""
    widths = [s.item_bytes for s in problem.streams]
    vector = VECTOR_BYTES // min(widths, default=VECTOR_BYTES)
    most = 8 if tails or block < WIDE_BLOCK else 16
    return max(1, min(most, block // (TUNED_WARP_SIZE * vector)))


def step_of(problem: Problem, rows: int, block: int, tails: tuple[int, ...]) -> Step:
    """The step of programs that are as many as the problem says.

    Parameters
    ----------
    rows : int
        Rows of a program.
    block, tails : int, tuple of int
        The tiles of a row.
    """
    warps, width = warps_along(problem, block, tails), block + sum(tails)
    programs = ceil_div(max(problem.outer_batch, 1), problem.device.sm_count)
    here = min(programs, resident(problem, Step(1, warps), width))
    found = Step(1, warps)
    while not tails and rows > MAX_SINGLE_ROWS and 4 * found.rows <= rows:
        larger = Step(2 * found.rows, warps)
        elements = _elements(larger, width)
        enough = elements > THREAD_ELEMENTS and _flight(problem, found, width, here) >= FLIGHT_BYTES
        if enough or elements > MOST_THREAD_ELEMENTS or resident(problem, larger, width) < here:
            break
        found = larger
    few = _flight(problem, found, width, here) < FLIGHT_BYTES
    stages = STAGES[few]
    while stages > 1 and not _fits(problem, found, width, here, stages):
        stages -= 1
    return Step(found.rows, warps, stages)


def programs_for(problem: Problem, block: int, tails: tuple[int, ...]) -> int:
    """Programs that rows should be shared out over.

    With more of them each has fewer rows to go through, and there are more partial results to
    write and to read again: ``rows / programs * ROW_S + programs * partial bytes / bandwidth`` is
    least at the square root.
    """
    warps, width = warps_along(problem, block, tails), block + sum(tails)
    rows = 1 if tails else max(THREAD_ELEMENTS // max(width // (warps * TUNED_WARP_SIZE), 1), 1)
    device = problem.device
    here = min(resident(problem, Step(rows, warps), width), ceil_div(WARPS_PER_SM, warps))
    partial_s = 8 * problem.reduced * problem.outer_members / device.bandwidth_bytes_per_s
    best = int(sqrt(problem.parallel * ROW_S / partial_s))
    most = here * device.sm_count
    return min(most, max(best // device.sm_count, 1) * device.sm_count)


def resident(problem: Problem, step: Step, width: int) -> int:
    """Programs that the registers and threads of a multiprocessor have room for, at least one."""
    device, threads = problem.device, step.warps * problem.device.warp_size
    registers = ceil_div(int(_registers(problem, step, width)), 8) * 8
    by_registers = device.registers_per_sm // (registers * threads)
    return max(1, min(by_registers, device.max_threads_per_sm // threads))


def _registers(problem: Problem, step: Step, width: int) -> float:
    """Registers of a thread, about."""
    elements = _elements(step, width)
    weights = sum(s.along_r and not s.along_x and not s.is_store for s in problem.streams)
    lanes = step.warps * TUNED_WARP_SIZE
    columns = max(width // lanes, 1) if _is_along(problem, step, width) else elements
    kept = REGISTERS_ELEMENT + REGISTERS_LOAD * len(problem.full_loads)
    return REGISTERS + columns * (problem.outer_members + weights) + elements * kept


def _is_along(problem: Problem, step: Step, width: int) -> bool:
    """Whether a thread has the same columns of all rows."""
    vector = VECTOR_BYTES // min((s.item_bytes for s in problem.streams), default=VECTOR_BYTES)
    return step.warps * TUNED_WARP_SIZE * vector <= width


def _elements(step: Step, width: int) -> int:
    return max(step.rows * width // (step.warps * TUNED_WARP_SIZE), 1)


def _step_bytes(problem: Problem, step: Step, width: int) -> int:
    return step.rows * width * sum(s.item_bytes for s in problem.full_loads)


def _flight(problem: Problem, step: Step, width: int, here: int) -> int:
    """Bytes in flight of a multiprocessor that has so many programs."""
    return (STAGES[0] - 1) * here * _step_bytes(problem, step, width)


def _fits(problem: Problem, step: Step, width: int, here: int, stages: int) -> bool:
    """Whether the stages of all programs fit in shared memory, with an eighth left for reductions
    between lanes."""
    wanted = (stages - 1) * _step_bytes(problem, step, width)
    device = problem.device
    alone = 8 * wanted <= 7 * device.shared_bytes_per_block
    return alone and 8 * wanted * here <= 7 * device.shared_bytes_per_sm
