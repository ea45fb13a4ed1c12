"""Parts of rows that several programs share: how a row may be cut, what programs have room for.

``cooperative_rows`` chooses one of these cuts, the search space has all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...device import VECTOR_BYTES, DeviceProperties
from ..cost.registers import registers_for_threads
from ..integers import ceil_div
from ..problem import Problem
from ..row_tiling import block_and_tails

WORKING_REGISTERS = 15
"""Registers of a thread for addresses and the loop, beside those of its elements."""

RESERVED_SHARED_BYTES = 4096
"""Bytes of shared memory of a program for reductions between lanes, and for CUDA itself."""

NARROWEST = 4
"""Parts are not narrower than this part of what a program has registers for: steps of less take
hardly less time."""

EDGE_ELEMENTS = 16
"""Elements of the tile of what lies beside whole vectors, at least."""


@dataclass(frozen=True, slots=True)
class Residents:
    """The programs that a multiprocessor runs at a time: those that share rows all do.

    Attributes
    ----------
    device : DeviceProperties
        The device.
    programs : int
        Programs of a multiprocessor.
    warps : int
        Warps of each.
    """

    device: DeviceProperties
    programs: int
    warps: int

    @property
    def threads(self) -> int:
        """Threads of a program."""
        return self.warps * self.device.warp_size

    @property
    def registers(self) -> int:
        """Registers of a thread at most."""
        return registers_for_threads(self.device, self.programs * self.threads)

    @property
    def stage_bytes(self) -> int:
        """Shared memory of a program for what its loop loads ahead."""
        return self.device.shared_bytes_per_sm // self.programs - RESERVED_SHARED_BYTES


class RowPart(NamedTuple):
    """How a row is cut into parts.

    Attributes
    ----------
    parts : int
        How many there are.
    block : int
        Elements of a part in its whole block.
    tails : tuple of int
        Elements of a part in its tails.
    """

    parts: int
    block: int
    tails: tuple[int, ...]

    @property
    def width(self) -> int:
        """Elements of a part. The last one of a row may have fewer."""
        return self.block + sum(self.tails)


def can_share_rows(problem: Problem) -> bool:
    """Whether programs can share the rows of a problem, and read some of its data once by that:
    rows may be computed of columns alone."""
    if problem.row_varies or problem.rows_vary:
        return False
    sums = problem.published_sums and problem.device.arch.startswith("sm_")
    return bool(sums and problem.full_loads)


def rows_of_group(problem: Problem) -> int:
    """Rows that a group of programs shares, at least: one has nothing to work on while it waits."""
    return problem.parallel // max(problem.outer_batch, 1)


def row_parts(
    problem: Problem, align: int, residents: Residents, most_tails: int
) -> Iterator[RowPart]:
    """The ways to cut up a row.

    A part has the elements that a thread has registers for, and fills the loads of all threads.

    Parameters
    ----------
    align : int
        Elements of a vector that parts begin at.
    most_tails : int
        Tails of a part at most, without that of the edges.
    """
    most = elements_per_thread(problem, residents.registers) * residents.threads
    row = problem.reduced // align * align
    step = residents.threads * max(VECTOR_BYTES // s.item_bytes for s in problem.full_loads)
    seen = 0
    for wanted in range(most // step * step, max(step, most // NARROWEST) - 1, -step):
        parts = ceil_div(row, wanted)
        block, tails = block_and_tails(ceil_div(row, parts), most_tails)
        width = block + sum(tails)
        if width <= most and width != seen and ceil_div(row, width) > 1:
            seen = width
            yield RowPart(ceil_div(row, width), block, tails)


def edges_of_part(align: int) -> tuple[int, ...]:
    """The tail of what lies beside whole vectors, where parts begin at these."""
    return (max(2 * align, EDGE_ELEMENTS),) if align > 1 else ()


def elements_per_thread(problem: Problem, registers: int) -> int:
    """Elements of a part for which a thread of so many registers has some."""
    return max(registers - WORKING_REGISTERS, 0) // registers_per_element(problem)


def registers_per_element(problem: Problem) -> int:
    """Registers of a thread for each element of a part.

    It keeps the sums over the rows and the weights from step to step, and while it works on a row
    what it has loaded, a random number and one result.
    """
    words = max(ceil_div(s.item_bytes, 4) for s in problem.full_loads)
    weights = sum(s.along_r and not s.along_x and not s.is_store for s in problem.streams)
    working = len(problem.full_loads) + problem.draws_random + 1
    return (problem.outer_members + weights + working) * words


def stage_bytes(problem: Problem, width: int) -> int:
    """Bytes of a pipeline stage: the part that is read and the part that is finished."""
    return 2 * width * sum(s.item_bytes for s in problem.full_loads)
