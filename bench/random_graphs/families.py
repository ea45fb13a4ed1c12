"""Kinds of random definitions: the steps that each takes, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from . import moves_indexing, moves_pointwise, moves_rare, moves_reductions, moves_views
from .graph import Graph

Move = Callable[[Graph], None]
MOVES: dict[Move, float] = {
    **moves_pointwise.MOVES,
    **moves_reductions.MOVES,
    **moves_views.MOVES,
}
RARE: dict[Move, float] = {**moves_rare.MOVES, **moves_indexing.MOVES}
"""Steps of the ops that ``MOVES`` lacks."""
OPS = (5, 40)
"""Least and most ops, casts, broadcasts and reshapes left out."""


@dataclass(frozen=True)
class Family:
    """A kind of random definitions.

    Attributes
    ----------
    name : str
        The first part of a definition's name.
    moves : mapping
        The steps, and how often each is taken beside the others.
    begun_by : sequence
        The steps that begin a definition, in turn.
    ops : tuple of int
        Least and most ops, casts, broadcasts and reshapes left out.
    """

    name: str
    moves: Mapping[Move, float]
    begun_by: Sequence[Move]
    ops: tuple[int, int]


FAMILIES = {
    family.name: family
    for family in (
        Family("graph", MOVES, (), OPS),
        Family("rare", {**MOVES, **{m: 2 * w for m, w in RARE.items()}}, tuple(RARE), (2, 20)),
    )
}
