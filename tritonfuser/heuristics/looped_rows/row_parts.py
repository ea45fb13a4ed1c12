"""Parts of cooperative rows: how a row may be divided among programs, and what fits in a program.

``cooperative_rows`` chooses one of these divisions; the search space has all of them.
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
"""Registers of a thread for addresses and the loop, apart from those of its elements."""

RESERVED_SHARED_BYTES = 4096
"""Bytes of shared memory of a program for reductions between lanes, and for CUDA itself."""

NARROWEST = 4
"""The narrowest parts have the elements that fit in registers over this number: still shorter steps
take hardly less time."""

EDGE_ELEMENTS = 16
"""Least elements of the tile of a row's edges, the elements outside of whole vectors."""


@dataclass(frozen=True, slots=True)
class Residents:
    """The resident programs of a multiprocessor; all programs that share rows are resident.

    Attributes
    ----------
    device : DeviceProperties
        The device.
    programs : int
        Resident programs of a multiprocessor.
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
        """The register limit of a thread."""
        return registers_for_threads(self.device, self.programs * self.threads)

    @property
    def stage_bytes(self) -> int:
        """Shared memory of a program for the pipeline of its loop, in bytes."""
        return self.device.shared_bytes_per_sm // self.programs - RESERVED_SHARED_BYTES


class RowPart(NamedTuple):
    """How a row is divided into parts.

    Attributes
    ----------
    parts : int
        The number of parts.
    block : int
        Elements of the block of a part.
    tails : tuple of int
        Elements of each tail of a part.
    """

    parts: int
    block: int
    tails: tuple[int, ...]

    @property
    def width(self) -> int:
        """Elements of a part. The last one of a row may have fewer."""
        return self.block + sum(self.tails)


def can_share_rows(problem: Problem) -> bool:
    """Whether programs can share the rows of a problem, and save reads by that: rows may also be
    computed from columns alone."""
    if problem.row_varies or problem.rows_vary:
        return False
    sums = problem.published_sums and problem.device.arch.startswith("sm_")
    return bool(sums and problem.full_loads)


def rows_of_group(problem: Problem) -> int:
    """Least rows of a group of programs. With a single one it has no other work while it waits."""
    return problem.parallel // max(problem.outer_batch, 1)


def row_parts(
    problem: Problem, align: int, residents: Residents, most_tails: int
) -> Iterator[RowPart]:
    """The possible divisions of a row into parts, from wide to narrow ones.

    A part fits in the registers of a program, and gives each thread whole vectors.

    Parameters
    ----------
    align : int
        Elements of the vectors that parts begin at.
    most_tails : int
        Most tails of a part, without that of the edges.
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
    """The tail for the elements outside of whole vectors, if parts begin at vectors."""
    return (max(2 * align, EDGE_ELEMENTS),) if align > 1 else ()


def elements_per_thread(problem: Problem, registers: int) -> int:
    """Elements of a part that fit in so many registers of a thread."""
    return max(registers - WORKING_REGISTERS, 0) // registers_per_element(problem)


def registers_per_element(problem: Problem) -> int:
    """Registers of a thread for each element of a part.

    The sums over rows and the weights stay in registers from step to step. Within a step there are
    the loaded elements, a random number and one result in addition.
    """
    words = max(ceil_div(s.item_bytes, 4) for s in problem.full_loads)
    weights = sum(s.along_r and not s.along_x and not s.is_store for s in problem.streams)
    working = len(problem.full_loads) + problem.draws_random + 1
    return (problem.outer_members + weights + working) * words


def stage_bytes(problem: Problem, width: int) -> int:
    """Bytes of a pipeline stage: the part that is reduced, and the one that is read again."""
    return 2 * width * sum(s.item_bytes for s in problem.full_loads)
