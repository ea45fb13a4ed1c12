"""The function that writes each form of reduction or scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....ops.builder import as_call
from ....ops.forms import Moments, Reduction, Scan
from ...segments.member import Member
from ...tile.axis_map import RowMaps
from .member_tile import AfterLoop, MemberTile, ReductionContext
from .moments_tile import moments_tile
from .reduce_tile import reduce_tile
from .scan_tile import scan_tile

_WRITERS: dict[type[Any], Callable[[MemberTile, Any], AfterLoop | None]] = {
    Reduction: reduce_tile,
    Moments: moments_tile,
    Scan: scan_tile,
}


def whole_row(context: ReductionContext, member: Member, maps: RowMaps) -> MemberTile:
    """A member at the whole blocks of a row, joined with the peeled tiles if it reduces rows."""
    peeled = maps.peeled if maps.along(member.across) else ()
    return MemberTile(context, member, maps.blocks, peeled)


def reduce_member(context: ReductionContext, member: Member, maps: RowMaps) -> AfterLoop:
    """Write a member: once for a row it reduces, else for each tile of the row.

    Returns
    -------
    AfterLoop
        Writes what comes behind the loop; nothing where it reduces along no loop.
    """
    form = as_call(member.node).op.form
    tiles = [whole_row(context, member, maps)]
    if not tiles[0].peeled:
        tiles = [MemberTile(context, member, at) for at in maps.of(member.operand_index)]
    ends = [_WRITERS[type(form)](tile, form) for tile in tiles]

    def finish() -> None:
        for end in ends:
            if end is not None:
                end()

    return finish
