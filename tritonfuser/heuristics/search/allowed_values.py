"""The values of fields that the cost model may choose from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .space import Choice
from .warps import are_many_warps


class AllowedValues:
    """The values of fields that the model may choose from.

    Parameters
    ----------
    columns : int
        Least columns of a tile.
    align : int
        ``align`` of the rules. Other tiles begin at vectors only where theirs do.
    factor : int or None
        ``vectorization_factor`` of the rules. None for any, in kernels with gathers: adjacent
        elements of a thread may be read from different rows. H200, the gathers of the suite: 0.83
        to 1.00 of the time by one or two. Kernels without gathers have the widest loads: the last
        kernel of a softmax backward over columns of 8192 x 8193 took 91 us, and 92 by two.
    prefetches : tuple of (int, bool)
        (num_stages, prefetch) of loops over rows.
    stages : tuple of int
        ``num_stages`` of loops along rows, whose unrolling is left to the compiler.
    many_warps : bool
        Whether programs may have more warps than registers are estimated for. Flat gathers take few
        registers, and with fewer programs fewer windows are open at a time. H200, 14 of them: the
        fastest of 32 warps takes 0.94 of the time of the fastest of fewer (geometric mean; 0.80 to
        1.11).
    """

    def __init__(
        self,
        *,
        columns: int,
        align: int,
        factor: int | None,
        prefetches: tuple[tuple[int, bool], ...],
        stages: tuple[int, ...],
        many_warps: bool,
    ) -> None:
        self._columns, self._aligns = columns, (1, align)
        self._factor, self._many_warps = factor, many_warps
        self._prefetches, self._stages = prefetches, tuple((each, 1) for each in stages)

    def of(self, choices: Iterable[Choice]) -> tuple[Choice, ...]:
        """The choices with these values of fields."""
        return tuple(self._of_one(choice) for choice in choices)

    def _of_one(self, choice: Choice) -> Choice:
        values: Iterable[tuple[Any, ...]] = choice.values
        if choice.fields == ("num_warps",):
            values = (v for v in values if self._many_warps or not are_many_warps(*v))
        elif choice.fields == ("block_x",):
            values = (v for v in values if v[0] >= self._columns)
        elif choice.fields == ("vectorization_factor",):
            values = (v for v in values if self._factor in (None, *v))
        elif choice.fields == ("num_stages", "prefetch"):
            values = self._prefetches
        elif choice.fields == ("num_stages", "unroll"):
            values = (each for each in self._stages if each in choice.values)
        elif choice.fields == ("block_r", "tails"):
            # The last tails of each block: the rest of a row behind the loop, if that is possible.
            values = dict(choice.values).items()
        elif "align" in choice.fields:
            place = choice.fields.index("align")
            values = (v for v in values if v[place] in self._aligns)
        else:
            return choice
        return Choice(choice.fields, tuple(values))
