"""Bytes that programs of a flat kernel fetch beside their tiles and lose before their use.

Memory is read in pieces, and the rest of a piece is for other programs. Where these run soon they
find it in the L2 cache, which is a matter of the order in which programs run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..problem import Problem
from .constants import FITTED_L2_BYTES, H200_CONSTANTS


class Side(NamedTuple):
    """A side of a tile: its axes, outermost first, and its positions."""

    places: tuple[int, ...]
    block: int


class Vain(NamedTuple):
    """Bytes that a program fetches of a tensor beside those of its tile.

    Attributes
    ----------
    axis, div : int
        Of the stride term of the tensor that goes on where the tile ends.
    most_between : float
        Bytes that are fetched at most until the program runs that has the elements there.
    """

    fetched: float
    axis: int
    div: int
    most_between: float


class Lost:
    """Those of them that the L2 cache loses before their use, by the order of programs."""

    def __init__(self, problem: Problem) -> None:
        self._axes, self._positions = problem.axes, max(problem.parallel, 1)
        self._total = problem.moved_bytes
        self._room = H200_CONSTANTS.l2_share_bytes * (problem.device.l2_bytes / FITTED_L2_BYTES)

    def bytes_of(self, beside: Iterable[Vain], order: tuple[Side, ...]) -> float:
        """Bytes of a program.

        Parameters
        ----------
        order : tuple of Side
            The side that programs run along first, before the others.
        """
        lost = 0.0
        for vain in beside:
            apart = _between(self._axes, order, vain.axis, vain.div)
            between = min(apart / self._positions, 1.0) * self._total
            full = (min(between, vain.most_between) / self._room) ** 2
            lost += vain.fetched * full / (1 + full)
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
