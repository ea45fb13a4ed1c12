"""How threads load and store the tensors of a tile of rows: along which side, how many elements.

What a tensor is, which no params change; what a tile has of it; what each thread loads of it.
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
from ..footprint import TensorStrides, run_along, warp_bytes
from ..gathered import Gathered
from ..refetched import unused_share
from ..tiles import KernelTile
from ..traffic import is_linear

X, R = 0, 1
"""The sides of a tile."""


class RowTensor:
    """A tensor, as far as no params change it.

    Attributes
    ----------
    times : float
        Loads or stores that are alike.
    unused : float
        Bytes that are fetched beside each of its own and never used.
    is_full : bool
        It runs over both axes, where there are two.
    vectors : tuple of int
        Elements of the widest vector along each side, wherever tiles begin.
    linear_vector : int
        Elements of a vector that its size is a multiple of, if its elements have addresses of their
        own: it is no linear function of the positions. 0 if they are offsets from one another.
    gathered : Gathered or None
        Its reads at indices of another tensor, if it is read so.
    of_all_rows : bool
        Whether all rows load the same of it, as of weights.
    digits : list of Digit
        The quotients and remainders of the positions of a row that its elements lie at.
    is_result : bool
        Whether it is what a reduction of the kernel gives, one element for each row.
    """

    def __init__(
        self, problem: Problem, stream: Stream, times: int, is_result: bool = False
    ) -> None:
        self.stream, self._problem, self.is_result = stream, problem, is_result
        self.times = times * stream.accessed_share
        self.strides = TensorStrides(stream)
        self.unused = unused_share(problem, stream, self.strides)
        self.is_full = stream.along_x and (stream.along_r or problem.reduced <= 1)
        rows, row = problem.places
        self.vectors = vector_along(problem, stream, rows), vector_along(problem, stream, row)
        self.linear_vector = 0
        if not stream.is_store and not is_linear(problem, stream):
            size = gcd(stream.total_bytes, VECTOR_BYTES)
            self.linear_vector = max(size // stream.item_bytes, 1)
        self.gathered = Gathered(problem, stream, times) if stream.held_bytes else None
        self.of_all_rows = stream.along_r and not stream.along_x and not stream.is_store
        self.digits = digits_of(problem.axes, row, stream)

    @cached_property
    def nearer(self) -> int:
        """The side whose neighbours are nearer in memory."""
        sides, axes = self._problem.places, self._problem.axes
        if not all(sides) or not self.stream.along_r:
            return X
        along_x, along_r = (warp_bytes(self.strides, axes, sides, side) for side in (X, R))
        return X if along_x < along_r else R


class TileTensor(NamedTuple):
    """What a tile touches of a tensor.

    Attributes
    ----------
    elements : int
        Those that the threads of a program load, those that neighbours share once.
    valid : float
        Share of the elements of all tiles that exist.
    often : float
        Loads or stores of the same elements in a step: a share of 1 where they are before the loop.
    taken : float
        The same in the mean of the passes over a row.
    has_layout : bool
        Whether threads load it in the layout of all loads of the tile's shape. Stores are converted
        to a layout of their own.
    side, vector : int
        The side that the threads of a load are neighbours along, and the elements of its vectors
        where threads have as many.
    blocks : (int, int)
        Positions along that side, and along the other one.
    """

    tensor: RowTensor
    elements: int
    valid: float
    often: float
    taken: float
    has_layout: bool
    side: int
    vector: int
    blocks: tuple[int, int]

    def width(self, threads: int) -> int:
        """Elements that a thread loads at once."""
        each = max(self.elements // threads, 1)
        return self.vector if each >= self.vector else floor_power_of_2(each)


def running_side(problem: Problem) -> int:
    """The side that most bytes are contiguous along. Threads lie along it where they reduce; what
    lies along the other side changes its layout first."""
    return R if problem.inner else X


def vector_along(problem: Problem, stream: Stream, places: Sequence[int]) -> int:
    """Elements of a vectorized load along a side. 1 where neighbours are not contiguous.

    Where a tile ends inside a vector, its last part is loaded without vectors.
    """
    run = run_along(stream, problem.axes, places)
    if run == 1:
        return 1
    most = VECTOR_BYTES // stream.item_bytes
    found = gcd(most, run)
    length = run or prod(problem.axes[place] for place in places)
    for term in stream.stride_terms:
        is_inside = term.axis in places and term.div == 1 and 0 < term.step < length
        found = found if is_inside else gcd(found, term.step)
    return max(found, 1)


def access(tensor: RowTensor, tile: KernelTile, align: int) -> tuple[int, int]:
    """The side that the threads of a load are neighbours along, and the elements of its vectors.

    Tiles of rows that begin inside vectors begin at the first vector of each row (``align``); what
    all rows share is shifted against them.
    """
    stream, along_x, along_r = tensor.stream, *tensor.vectors
    if align > 1 and stream.along_r:
        along_r = align if stream.along_x and stream.r_stride == 1 else 1
        along_x = 1 if is_skewed(stream, align) else along_x
    widths = [min(along_x, tile.x), min(along_r, tile.r)]
    side = tensor.nearer if widths[X] == widths[R] else (X if widths[X] > widths[R] else R)
    width = min(widths[side], VECTOR_BYTES // stream.item_bytes)
    return side, floor_power_of_2(max(width, 1))


def is_skewed(stream: Stream, align: int) -> bool:
    """Whether the rows of a tile lie apart in a tensor that runs along x, because each of them
    begins at a vector of its own."""
    return align > 1 and stream.along_x and stream.along_r and stream.r_stride != 1


def layout(touched: Sequence[TileTensor], widths: Sequence[int]) -> tuple[int, int]:
    """Neighbours of a thread along each side, in the layout of loads of the tile's shape.

    Triton lays threads out by the widest vector among them. A tensor whose vectors are narrower is
    loaded one vector after another, so that those of a load are apart.
    """
    widest = [1, 1]
    for one, width in zip(touched, widths, strict=True):
        if one.has_layout and width > widest[one.side]:
            widest[one.side] = width
    return widest[X], widest[R]


def slice_bytes(stream: Stream, requested: float) -> float:
    """Bytes that one slice of the L2 cache gives of those that a step requests of a tensor.

    Neighbouring parts of a tensor are in other slices. A tensor of few parts is in few slices,
    however many programs read it.
    """
    return requested * stream.item_bytes / max(stream.total_bytes / L2_SLICE_RUN_BYTES, 1.0)
