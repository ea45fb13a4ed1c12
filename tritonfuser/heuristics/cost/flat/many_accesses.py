"""``ManyAccesses``: how the threads of many kernels load or store a tensor of a flat tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..counts import Number
from ..numbers import ARRAYS
from .access import FlatAccess
from .layout import TileLayout

Array = Any
"""Of numpy: an entry for each kernel."""


class ManyAccesses:
    """What ``FlatAccess`` has of one kernel, of many: an array, or one number if all have the same.

    Kernels differ by the most elements of a thread's vectors, of which there are few: all of them
    are counted at once, since operations on short arrays take as long as those on longer ones.

    Parameters
    ----------
    of_widths : sequence of FlatAccess
        By vectors of each width.
    places : array of int
        The width of each kernel, as a place in ``of_widths``.
    """

    def __init__(self, of_widths: Sequence[FlatAccess], places: Array) -> None:
        self._of_widths, self._places = of_widths, places
        self.along = of_widths[0].along  # whatever the vectors are
        facts = [
            (each.lane_side, each.vector, each.load_positions, each.warp_positions)
            for each in of_widths
        ]
        self._are_alike = len(set(facts)) == 1
        self.lane_side, self.vector, self.load_positions, self.warp_positions = (
            of_each(numbers, places) for numbers in zip(*facts, strict=True)
        )

    def along_lanes(self, blocks: Sequence[Number]) -> Number:
        """Positions of the tiles along the side that the lanes of a warp run along."""
        return ARRAYS.where(self.lane_side == 0, blocks[0], blocks[-1])

    def lines(self, block: Number) -> Number:
        """Cache lines that one load of a warp touches."""
        return self._ask(FlatAccess.lines, block)

    def lines_of_lanes(self, lanes: Number, of_thread: Number) -> Number:
        """Cache lines of one load by so many lanes along ``lane_side``."""
        return self._ask(FlatAccess.lines_of_lanes, lanes, of_thread)

    def written_bytes(self, block: Number) -> Number:
        """Bytes of the sectors that one store of a warp touches."""
        return self._ask(FlatAccess.written_bytes, block)

    def _ask(self, of: Callable[..., float], *given: Number) -> Number:
        """What a method of ``FlatAccess`` gives for each kernel."""
        if self._are_alike:
            one = self._of_widths[0]
            return ARRAYS.each(lambda *numbers: of(one, *numbers), *given)
        return ARRAYS.each(
            lambda place, *numbers: of(self._of_widths[place], *numbers), self._places, *given
        )


def layout_of_many(of_widths: Sequence[TileLayout | None], places: Array) -> TileLayout | None:
    """The layouts of the tiles of many kernels: there is one by vectors of any width, or none."""
    known = [each for each in of_widths if each is not None]
    if not known:
        return None
    return TileLayout(*(of_each(numbers, places) for numbers in zip(*known, strict=True)))


def of_each(numbers: Sequence[float], places: Array) -> Number:
    """A number of each kernel, by its place in ``numbers``; one if all are the same."""
    return numbers[0] if len(set(numbers)) == 1 else np.array(numbers)[places]
