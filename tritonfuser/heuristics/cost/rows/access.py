"""How threads load and store the tensors of a tile of rows: along which side, by which vectors.

``RowTensor`` has the facts of a tensor that no params change, ``TileTensor`` what a tile adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

from ....device import L2_SLICE_RUN_BYTES, VECTOR_BYTES
from ....lazy import cached_property
from ...integers import floor_power_of_2
from ...problem import Problem
from ...streams import Stream
from ..digits import digits_of
from ..memory.footprint import strides_of
from ..memory.gathered import Gathered
from ..memory.refetched import overfetch_ratio
from ..memory.runs import contiguous_run_along, warp_lines
from ..memory.traffic import is_linear
from ..tiles import KernelTile

X, R = 0, 1
"""The sides of a tile: along x, and along the row."""


class RowTensor:
    """The facts of a tensor that no params change.

    Attributes
    ----------
    times : float
        Number of tensors with the same facts, which are counted together; of those that are masked
        at some positions, the share that is accessed.
    issued : float
        Loads or stores that threads issue for each that accesses memory: masked ones too. 0 for a
        tensor that is masked everywhere, as a remainder of no elements.
    overfetch : float
        Bytes that are fetched and never used, for each byte that is used.
    is_full : bool
        It runs along both axes of the kernel, or along x where rows have one element.
    vectors : tuple of int
        Elements of the widest vectorized load along each side, wherever tiles begin.
    nonlinear_vector : int
        Elements of a vectorized load, as far as the size of the tensor allows, if its offset is not
        linear in the positions: each vector then takes an address of its own. 0 if it is linear.
    gathered : Gathered or None
        Its windows, if it is read at indices of another tensor.
    is_broadcast_over_rows : bool
        Whether all rows load the same elements of it, as those of weights.
    digits : list of Digit
        The quotients and remainders of positions along the row that its offset needs.
    is_result : bool
        Whether it is the result of a reduction of the kernel: one element for each row.
    """

    def __init__(
        self, problem: Problem, stream: Stream, times: int, is_result: bool = False
    ) -> None:
        self.stream, self._problem, self.is_result = stream, problem, is_result
        share, self.strides = stream.accessed_share, strides_of(stream)
        self.times, self.issued = times * share, 1 / share if share else 0.0
        self.overfetch = (
            overfetch_ratio(problem, stream, self.strides) if stream.held_bytes else 0.0
        )
        self.is_full = stream.along_x and (stream.along_r or problem.reduced <= 1)
        rows, row = problem.places
        self.vectors = vector_along(problem, stream, rows), vector_along(problem, stream, row)
        self.nonlinear_vector = 0
        if not stream.is_store and not is_linear(problem, stream):
            size = gcd(stream.total_bytes, VECTOR_BYTES)
            self.nonlinear_vector = max(size // stream.item_bytes, 1)
        self.gathered = Gathered(problem, stream, times) if stream.held_bytes else None
        self.is_broadcast_over_rows = stream.along_r and not stream.along_x and not stream.is_store
        self.digits = digits_of(problem.axes, row, stream)

    @cached_property
    def nearest_side(self) -> int:
        """The side along which adjacent positions are nearest in memory."""
        sides, axes = self._problem.places, self._problem.axes
        if not all(sides) or not self.stream.along_r:
            return X
        along_x, along_r = (warp_lines(self.strides, axes, sides, side) for side in (X, R))
        return X if along_x < along_r else R


class TileTensor(NamedTuple):
    """The tile of a tensor.

    Attributes
    ----------
    tensor : RowTensor
        The tensor.
    elements : int
        Elements that the threads of a program load or store together.
    valid : float
        Share of the elements of all tiles that exist.
    per_step : float
        How often a step loads or stores them: below 1 where one step of several does.
    mean_per_step : float
        The same as the mean of all passes over a row.
    has_layout : bool
        Whether threads load it in the common layout of all loads of the tile's shape. Stores are
        converted to a layout of their own.
    side, vector : int
        The side that the lanes of a load run along, and the elements of its vectorized loads, if
        threads have as many.
    blocks : (int, int)
        Positions of the tile along that side, and along the other one.
    """

    tensor: RowTensor
    elements: int
    valid: float
    per_step: float
    mean_per_step: float
    has_layout: bool
    side: int
    vector: int
    blocks: tuple[int, int]

    def width(self, threads: int) -> int:
        """Elements of one load of a thread."""
        each = max(self.elements // threads, 1)
        return self.vector if each >= self.vector else floor_power_of_2(each)


def main_side(problem: Problem) -> int:
    """The side that most bytes are contiguous along. Reductions run in the layout of tensors along
    it; tensors along the other side are converted to that layout first."""
    return R if problem.inner else X


def vector_along(problem: Problem, stream: Stream, places: Sequence[int]) -> int:
    """Elements of a vectorized load along a side. 1 where adjacent positions are not contiguous.

    It divides the offset at which every contiguous run begins, and its length.
    """
    run = contiguous_run_along(stream, problem.axes, places)
    if run == 1:
        return 1
    most = VECTOR_BYTES // stream.item_bytes
    found = gcd(most, run, stream.start)
    length = run or prod(problem.axes[place] for place in places)
    for term in stream.stride_terms:
        is_inside = term.axis in places and term.div == 1 and 0 < term.step < length
        found = found if is_inside else gcd(found, term.step)
    return max(found, 1)


def access(tensor: RowTensor, tile: KernelTile, align: int) -> tuple[int, int]:
    """The side that the lanes of a load run along, and the elements of its vectors.

    With ``align`` above 1, the tile of each row begins at the first whole vector of that row. A
    tensor that all rows share is then loaded at shifted positions, without vectors.
    """
    stream, along_x, along_r = tensor.stream, *tensor.vectors
    if align > 1 and stream.along_r:
        along_r = align if stream.along_x and stream.r_stride == 1 else 1
        along_x = 1 if is_skewed(stream, align) else along_x
    widths = [min(along_x, tile.x), min(along_r, tile.r)]
    side = tensor.nearest_side if widths[X] == widths[R] else (X if widths[X] > widths[R] else R)
    width = min(widths[side], VECTOR_BYTES // stream.item_bytes)
    return side, floor_power_of_2(max(width, 1))


def is_skewed(stream: Stream, align: int) -> bool:
    """Whether the rows of a tile have different positions of a tensor that is contiguous along x,
    because each row begins at its own first vector. Its elements are then not contiguous."""
    return align > 1 and stream.along_x and stream.along_r and stream.r_stride != 1


def layout(touched: Sequence[TileTensor], widths: Sequence[int]) -> tuple[int, int]:
    """Adjacent elements of a thread along each side, in the common layout of loads of the tile's
    shape.

    Triton lays threads out by the widest vector among these loads. A tensor with narrower vectors
    takes several loads, and the vectors of one load then have gaps between them.
    """
    widest = [1, 1]
    for one, width in zip(touched, widths, strict=True):
        if one.has_layout and width > widest[one.side]:
            widest[one.side] = width
    return widest[X], widest[R]


def slice_bytes(stream: Stream, requested: float) -> float:
    """Bytes of a step that come from the most loaded slice of the L2 cache.

    Runs of ``L2_SLICE_RUN_BYTES`` of a tensor are in different slices. So a small tensor is in few
    slices, however many programs read it.
    """
    return requested * stream.item_bytes / max(stream.total_bytes / L2_SLICE_RUN_BYTES, 1.0)
