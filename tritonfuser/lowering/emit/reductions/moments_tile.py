"""Mean and sum of squared deviations of a tile, in registers or lane by lane in a loop."""

from __future__ import annotations

from ....ops.forms import Moments
from ....symbolic.sizes import is_size
from ..names import Name
from .by_thread import Part, across_tiles
from .member_tile import AfterLoop, MemberTile
from .moments_loop import moments_loop
from .moments_results import SUM, bind_moments, member_extent, peeled_parts, square


def moments_tile(tile: MemberTile, form: Moments) -> AfterLoop | None:
    """Mean and sum of squared deviations: in two passes over registers, or lane by lane.

    In a loop each lane keeps count, mean and M2 of what it has seen (Welford, Note on a method
    for calculating corrected sums of squares and products, 1962); the lanes are joined after it.
    """
    _bind_count(tile)
    operand = tile.operand("0.0")
    if tile.in_loop:
        return moments_loop(tile, operand)
    _moments_row(tile, operand)
    return None


def _bind_count(tile: MemberTile) -> None:
    count, number = tile.member.node.outs[2], member_extent(tile.member)
    text = f"{number}.to(tl.int64)" if is_size(number) else f"tl.full([], {number}, tl.int64)"
    tile.bind(count, Name(text, count.dtype))


def _moments_row(tile: MemberTile, operand: Name) -> None:
    """All of a row in registers: the mean first, then the squares about it."""
    rest = peeled_parts(tile)
    parts = [(tile, operand), *rest]

    def squares(mean: Name) -> str:
        return _squares(parts, mean)

    bind_moments(tile, operand, rest, across_tiles(SUM, parts), squares)


def _squares(parts: list[Part], mean: Name) -> str:
    """The sum of squared distances from the mean."""
    return across_tiles(SUM, [(tile, square(tile, x, mean)) for tile, x in parts])
