"""Chooses the reductions to split into two steps, before the fusion is grouped once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto

from ....ir import Value
from ...groups.fusion_group import FusionGroup
from ...groups.online_pairs import online_pairs
from ...passes.splits.split_factors import (
    AlongMaximum,
    Interleaved,
    Parts,
    Remainder,
    parts_along,
)
from ...segments.member import Member
from ..grouper import Grouper
from ..scheduler_queries.splits import choose_parts
from .common_rows import Splits, common_rows
from .kept_rows import kept_rows


class CommonRows(Enum):
    """Which kernels a reduction of the same data may share its first step with.

    Attributes
    ----------
    APART
        None. Reductions are split only to have more programs.
    WHOLE
        A kernel whose own reductions are done in one step.
    CUT
        Any kernel. Its own reductions may be split to share rows.
    """

    APART = auto()
    WHOLE = auto()
    CUT = auto()


def choose_splits(grouper: Grouper, rows: CommonRows, interleaved: bool = True) -> Splits:
    """The reductions to do in two steps, each with its parts.

    Parameters
    ----------
    grouper : Grouper
        The grouping of the fusion before reductions are split.
    rows : CommonRows
        Which kernels reductions of other groups may share their first step with.
    interleaved : bool
        Whether parts of reduced columns may have interleaved rows.
    """
    found = kept_rows(grouper) if rows is CommonRows.CUT else Splits()
    for group in grouper.groups:
        if group.library is not None or any(
            m.node.out in found.parts for m in (*group.members, *group.outer)
        ):
            continue
        splits = Splits()
        if rows is not CommonRows.APART:
            splits = common_rows(grouper, group, rows is CommonRows.CUT)
        if not splits.parts or _disagree(splits.parts, found.parts):
            splits = Splits(_over_programs(grouper, group, interleaved))
        found = found.joined(splits)
    return found


def _over_programs(grouper: Grouper, group: FusionGroup, interleaved: bool) -> dict[Value, Parts]:
    """Reductions of a group to split over more programs, where its scheduler asks for it."""
    problem = grouper.problem(group)
    members = group.members[:1] if group.core else group.outer or group.members
    wanted = choose_parts(problem, members, over_rows=bool(group.outer))
    if not interleaved and not group.outer:
        wanted = _of_neighbours(wanted)
    found = {m.node.out: parts_along(wanted, members[0].node, m.node) for m in members}
    for total, top in _pairs(grouper, group).items() if problem.online_softmax else ():
        if top.node.out in found:
            found[total] = AlongMaximum(top.node.out)
    return {} if wanted == 1 or (isinstance(wanted, Interleaved) and wanted.count < 2) else found


def _of_neighbours(parts: Parts) -> Parts:
    """The same number of parts, each of neighbouring elements."""
    if isinstance(parts, Remainder):
        return replace(parts, multiple_of=0)
    return parts.count if isinstance(parts, Interleaved) else parts


def _pairs(grouper: Grouper, group: FusionGroup) -> dict[Value, Member]:
    return online_pairs(grouper.fusion, {m.node.out: m for m in group.members})


def _disagree(parts: Mapping[Value, Parts], found: Mapping[Value, Parts]) -> bool:
    """Whether a reduction is in both, with different parts."""
    return any(found.get(value, wanted) != wanted for value, wanted in parts.items())
