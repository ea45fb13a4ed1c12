"""Sectors of a flat kernel that are fetched once more, since the L2 cache lost their rest.

Memory is read in pairs of sectors. The rest of a pair, beside a program's tile, is used by another
program. Whether it is still in the L2 cache then depends on the order of programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..problem import Problem
from .constants import FITTED_L2_BYTES, H200_CONSTANTS
from .footprint import Side


class SectorRest(NamedTuple):
    """The bytes that a program fetches of a tensor beside those of its tile.

    Attributes
    ----------
    fetched : float
        These bytes.
    axis, div : int
        Of the stride term by which the tensor goes on behind the tile.
    most_between : float
        Upper bound of the bytes fetched by all programs until the one runs that uses these.
    """

    fetched: float
    axis: int
    div: int
    most_between: float


class LostSectors:
    """How much of the rests the L2 cache loses before their use, by the order of programs."""

    def __init__(self, problem: Problem) -> None:
        self._axes, self._positions = problem.axes, max(problem.parallel, 1)
        self._total = problem.moved_bytes
        self._room = H200_CONSTANTS.l2_share_bytes * (problem.device.l2_bytes / FITTED_L2_BYTES)

    def bytes_of(self, rests: Iterable[SectorRest], order: tuple[Side, ...]) -> float:
        """The bytes that are lost for each program.

        Parameters
        ----------
        order : tuple of Side
            The side that programs run along first, before the others.
        """
        lost = 0.0
        for rest in rests:
            apart = _between(self._axes, order, rest.axis, rest.div)
            between = min(apart / self._positions, 1.0) * self._total
            full = (min(between, rest.most_between) / self._room) ** 2
            lost += rest.fetched * full / (1 + full)
        return lost


def _between(axes: tuple[int, ...], order: tuple[Side, ...], axis: int, div: int) -> float:
    """Positions of the grid between a tile and the one that goes on along an axis.

    Programs go along the first of the sides first: all of it, before the next tile of the others.
    """
    found = 1
    for number, side in enumerate(order):
        if axis in side.places:
            step = div
            for behind in side.places[side.places.index(axis) + 1 :]:
                step *= axes[behind]
            found *= max(step, side.block)
            for other in order[number + 1 :]:
                found *= other.block
            return float(found)
        for place in side.places:
            found *= axes[place]
    return 1.0
