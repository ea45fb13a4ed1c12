"""Chooses the reductions to split into two steps, before the fusion is grouped once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto
from types import MappingProxyType
from typing import NamedTuple

from ....ir import Node, Value
from ....ops.builder import as_call
from ....ops.forms import Contraction, Scan
from ...groups.fusion_group import FusionGroup
from ...groups.online_pairs import online_pairs
from ...passes.splits.parts import (
    AlongMaximum,
    Interleaved,
    Padded,
    Parts,
    Remainder,
    parts_along,
    reduced_extents,
    same_parts,
    without_unit_dims,
)
from ..grouper import Grouper
from ..scheduler_queries.splits import choose_parts
from .common_rows import Splits, common_rows
from .kept_rows import kept_rows


class CommonRows(Enum):
    """Which kernels a reduction of the same data may share its first step with.

    Attributes
    ----------
    SEPARATE
        None. Reductions are split only to have more programs.
    WHOLE
        A kernel whose own reductions are done in one step.
    CUT
        Any kernel. Its own reductions may be split to share rows.
    """

    SEPARATE = auto()
    WHOLE = auto()
    CUT = auto()


class ByDims(NamedTuple):
    """A reduction in two steps, of which the second reduces whole dims.

    Attributes
    ----------
    value : str
        The first result of the reduction.
    parts : tuple of int or Padded
        For each reduced dim its extent, where the second step reduces it as a whole, 1 where the
        first does, or the parts that the first step leaves of it; one dim may be padded.
    """

    value: str
    parts: tuple[int, ...] | Padded


NONE_BY_DIMS: Mapping[str, tuple[int, ...] | Padded] = MappingProxyType({})
"""No reductions that are split by dims."""


def choose_splits(
    grouper: Grouper,
    rows: CommonRows,
    interleaved: bool = True,
    by_dims: Mapping[str, tuple[int, ...] | Padded] = NONE_BY_DIMS,
    parts_factor: float = 1.0,
) -> Splits:
    """The reductions to do in two steps, each with its parts.

    Parameters
    ----------
    grouper : Grouper
        The grouping of the fusion before reductions are split.
    rows : CommonRows
        Which kernels reductions of other groups may share their first step with.
    interleaved : bool
        Whether parts of reduced columns may have interleaved rows.
    by_dims : mapping of str to tuple of int or Padded, optional
        For reductions, by the name of their first result, the parts of the reduced dims that the
        second step reduces (``ByDims``). All of a kernel are split alike.
    parts_factor : float
        Factor on the number of parts that schedulers want.
    """
    found = kept_rows(grouper) if rows is CommonRows.CUT else Splits()
    for group in grouper.groups:
        if group.library is not None or any(
            m.node.out in found.parts for m in (*group.members, *group.outer)
        ):
            continue
        splits = Splits(_as_given(grouper, group, by_dims))
        if not splits.parts and rows is not CommonRows.SEPARATE:
            splits = common_rows(grouper, group, rows is CommonRows.CUT)
        if not splits.parts or _disagree(splits.parts, found.parts):
            splits = Splits(_over_programs(grouper, group, interleaved, parts_factor))
        found = found.joined(splits)
    return found


def _as_given(
    grouper: Grouper, group: FusionGroup, by_dims: Mapping[str, tuple[int, ...] | Padded]
) -> dict[Value, Parts]:
    """The reductions of a group in the parts that one of them was given; none where others reduce
    other extents."""
    members = group.outer or group.members
    first = next((m.node for m in members if m.node.out.name in by_dims), None)
    if first is None or any(not _reduces_same(first, m.node) for m in members):
        return {}
    parts = by_dims[first.out.name]
    found = {m.node.out: parts_along(parts, first, m.node) for m in members}
    return _along_maxima(grouper, group, found)


def _reduces_same(first: Node, node: Node) -> bool:
    """Whether both reduce the same extents, but for those of one position."""
    if isinstance(as_call(node).op.form, Scan | Contraction):
        return False
    return same_parts(
        without_unit_dims(reduced_extents(first)), without_unit_dims(reduced_extents(node))
    )


def _over_programs(
    grouper: Grouper, group: FusionGroup, interleaved: bool, parts_factor: float
) -> dict[Value, Parts]:
    """Reductions of a group to split over more programs, where its scheduler asks for it."""
    members = group.members[:1] if group.core else group.outer or group.members
    if not members:
        return {}
    problem = replace(grouper.problem(group), parts_factor=parts_factor)
    wanted = choose_parts(problem, members, over_rows=bool(group.outer))
    if not interleaved and not group.outer:
        wanted = _of_neighbours(wanted)
    found = {m.node.out: parts_along(wanted, members[0].node, m.node) for m in members}
    found = _along_maxima(grouper, group, found)
    return {} if wanted == 1 or (isinstance(wanted, Interleaved) and wanted.count < 2) else found


def _along_maxima(
    grouper: Grouper, group: FusionGroup, parts: dict[Value, Parts]
) -> dict[Value, Parts]:
    """The parts, and those of sums of exponentials below a maximum, which are the maximum's."""
    if not grouper.problem(group).online_softmax:
        return parts
    pairs = online_pairs(grouper.fusion, {m.node.out: m for m in group.members})
    tops = {total: top.node.out for total, top in pairs.items() if top.node.out in parts}
    return {**parts, **{total: AlongMaximum(top) for total, top in tops.items()}}


def _of_neighbours(parts: Parts) -> Parts:
    """The same number of parts, each of neighbouring elements."""
    if isinstance(parts, Remainder):
        return replace(parts, multiple_of=0)
    return parts.count if isinstance(parts, Interleaved) else parts


def _disagree(parts: Mapping[Value, Parts], found: Mapping[Value, Parts]) -> bool:
    """Whether a reduction is in both, with different parts."""
    return any(found.get(value, wanted) != wanted for value, wanted in parts.items())
