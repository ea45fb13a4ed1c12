"""Mean and sum of squared deviations as results, from the sums over the tiles of a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from ....dtypes import DataType
from ....ops import registry
from ....ops.forms import Reduction
from ....symbolic.sizes import is_size
from ...segments.member import Member
from ..names import Name
from .by_thread import Part
from .member_tile import MemberTile

SUM = cast(Reduction, registry.get("sum").form)
"""The reduction of both moments."""


def member_extent(member: Member) -> int:
    """Elements that go into each result."""
    number = 1
    for axis in member.across:
        number *= axis.extent
    return number


def peeled_parts(tile: MemberTile) -> list[Part]:
    """The other tiles whose elements go into the results, and the operand at each."""
    return [(peeled, peeled.operand("0.0")) for peeled in tile.peeled_tiles()]


def bind_moments(
    tile: MemberTile,
    operand: Name,
    rest: list[Part],
    total: str,
    squares: Callable[[Name], str],
) -> None:
    """Bind mean and M2.

    Parameters
    ----------
    rest : list of (MemberTile, Name)
        The peeled tiles.
    total : str
        The sum over all tiles.
    squares : function
        Of the mean: the sum of squared distances from it over all tiles.
    """
    mean, m2, _ = tile.member.node.outs
    total = f"({total})" if rest else total
    dims, count = tile.result_dims(operand, [x for _, x in rest]), member_extent(tile.member)
    mean_name = tile.define(mean, f"{total} / {_divisor(count, tile.dtype)}", dims)
    tile.bind(mean, mean_name)
    tile.bind(m2, tile.define(m2, squares(mean_name), dims))


def square(tile: MemberTile, operand: Name, mean: Name) -> Name:
    """The squared distances from the mean in one tile, 0 where it reaches past the row."""
    distance = f"{operand.text} - {mean.text}"
    if tile.tile.masked:
        distance = f"tl.where({tile.tile.name}_mask, {distance}, 0.0)"
    deviation = tile.define(tile.value, distance, operand.dims, "_centered")
    return replace(deviation, text=f"{deviation.text} * {deviation.text}")


def _divisor(number: int, dtype: DataType) -> str:
    """How many elements there are, as a float."""
    return f"{number}.to(tl.{dtype.info.triton})" if is_size(number) else f"{max(number, 1)}.0"
