"""Loads in flight: steps of a loop that fit in shared memory, where Triton's pipeline has them."""

from __future__ import annotations

from .problem import Problem


def loaded(problem: Problem) -> list[int]:
    """Bytes of an element of each tensor that is read over rows and columns."""
    return [s.item_bytes for s in problem.streams if not s.is_store and s.along_x and s.along_r]


def most_stages(problem: Problem, elements: int) -> int:
    """Stages of a loop with steps of so many elements: all but one step's loads are ahead.

    An eighth of the shared memory is left for sums over the lanes.
    """
    room = problem.device.shared_bytes_per_block * 7 // 8
    return 1 + room // max(elements * sum(loaded(problem)), 1)
