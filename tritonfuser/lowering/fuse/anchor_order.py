"""The order in which reductions, and ops that end a kernel, are put into groups."""

from __future__ import annotations

from enum import IntEnum, auto

from ...ir import Node
from ...symbolic.index_expr import Axis
from ..access.node_kinds import ends_kernel, is_core, is_reducer
from ..groups.anchor import Anchor
from ..groups.anchor_maker import AnchorMaker


def reductions_first(maker: AnchorMaker) -> list[Anchor | Node]:
    """Reductions, core ops, library calls and scatters by depth.

    At one depth, reductions along contiguous memory come first, so that reductions over their rows
    can join them. Of these first the ones that have such: a kernel has the axes of its first
    reduction, and others of the same extents are moved to them.
    """
    found: list[tuple[int, _Rank, Anchor | Node]] = []
    over = set[frozenset[Axis]]()
    for node in maker.fusion.nodes:
        depth = maker.depth[node.out]
        if ends_kernel(node) or is_core(node):
            found.append((depth, _Rank.OTHERS, node))
        elif is_reducer(node):
            anchor = maker.reducer(node)
            along = maker.runs_inner(anchor)
            found.append((depth, _Rank.ALONG_ROWS if along else _Rank.ACROSS, anchor))
            if not along:
                over.add(_axes(maker.over_existing_rows(anchor) or anchor))

    def key(entry: tuple[int, _Rank, Anchor | Node]) -> tuple[int, int]:
        depth, rank, item = entry
        joined = rank is _Rank.ALONG_ROWS and _axes(item) in over
        return depth, _Rank.JOINED if joined else rank

    return [item for _, _, item in sorted(found, key=key)]


class _Rank(IntEnum):
    """What comes first at one depth."""

    JOINED = auto()
    ALONG_ROWS = auto()
    ACROSS = auto()
    OTHERS = auto()


def _axes(item: Anchor | Node) -> frozenset[Axis]:
    """The axes of an anchor's loop nest."""
    return frozenset() if isinstance(item, Node) else item.loops.rows | item.loops.inner
