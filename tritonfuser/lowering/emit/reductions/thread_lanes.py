"""``Lanes``: the elements of a row that each thread has, which share one accumulator in a loop."""

from __future__ import annotations

from dataclasses import dataclass

from ....device import NVIDIA_WARP_SIZE, VECTOR_BYTES
from ....heuristics.cost.rows.access import vector_along
from ....heuristics.params import OuterPersistentParams
from ....heuristics.problem import Problem
from ....symbolic.choices import with_hints
from ...problem_sizes import env_of
from ...segments.segment import Segment
from ...tile.nest import Nest


@dataclass(frozen=True)
class Lanes:
    """Elements of a row that one thread has, and can reduce without other threads.

    Attributes
    ----------
    width : int
        Number of elements of each thread, at least 1.
    strided : bool
        False: the elements are adjacent, and one vectorized load has them all. True: all threads
        have one element each, then the next one each, as in rows that are strided in memory, or
        that are loaded element by element.
    """

    width: int
    strided: bool

    @property
    def arguments(self) -> str:
        """Both, as arguments of the device library's functions."""
        return f"{self.width}, {self.strided}"


def lanes_of_row(segment: Segment, nest: Nest) -> Lanes:
    """The lanes of the rows of a kernel's tile."""
    sides = dict(nest.constants)
    rows, row = sides.get("XBLOCK", 1), sides["RBLOCK"]
    tensors = (v for v in segment.inputs if v.is_tensor and v.tensor.rank > 1)
    narrowest = min((v.dtype.info.bytes for v in tensors), default=4)
    loaded = VECTOR_BYTES // max(narrowest, 2)
    params = segment.kernel_params
    # On a device with wider warps some lanes are divided among threads, which is slower, not wrong.
    threads = NVIDIA_WARP_SIZE * params.num_warps
    if isinstance(params, OuterPersistentParams):
        reached = max(threads * min(loaded, rows) // rows, 1)
        return Lanes(max(row // reached, 1), True)
    if segment.problem is not None and nest.alignment is None:
        loaded = min(loaded, _widest_vector(segment.problem))
    if loaded > 1:
        return Lanes(loaded if row % loaded == 0 else 1, False)
    return Lanes(max(row // threads, 1), True)


def neighbours_of_thread(segment: Segment, nest: Nest) -> int:
    """Adjacent elements of a row that a thread has, where rows are in registers.

    Triton lays out threads by the widest vector among the loads and stores of connected ops
    (``lib/Dialect/TritonGPU/Transforms/Coalesce.cpp``, Triton 3.6).
    """
    problem = segment.problem
    if problem is None:
        return 1
    if nest.alignment is not None:
        return nest.alignment.vector
    return _widest_vector(problem, stores=True)


def _widest_vector(problem: Problem, stores: bool = False) -> int:
    """Elements of the widest vectorized load along rows, by which Triton lays out all threads."""
    problem = with_hints(env_of(problem), problem)
    streams = (s for s in problem.streams if s.along_r and (stores or not s.is_store))
    _, row = problem.places
    return max((vector_along(problem, stream, row) for stream in streams), default=1)
