"""Pairs of a maximum and a sum of exponentials below it, which one loop can compute."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.table import View
from ..access.read_footprint import Read, sources_of
from ..segments.member import Member


def online_pairs(fusion: Fusion, members: Mapping[Value, Member]) -> dict[Value, Member]:
    """Sums of exponentials that can share a loop with their maximum, each with that maximum."""
    found: dict[Value, Member] = {}
    for out, member in members.items():
        if member.node.op != "sum":
            continue
        gap = _gap(fusion, member)
        top = None if gap is None else _top(fusion, gap, members)
        if top is not None and top.across == member.across and _same_rows(fusion, member, top):
            found[out] = top
    return found


def _gap(fusion: Fusion, total: Member) -> Node | None:
    """``x - max(x)`` of a sum of its exponentials; None where these are read from memory."""
    power = fusion.producers.get(next(total.node.operands()))
    if power is None or power.op != "exp_nonpositive" or not isinstance(power.args[0], Value):
        return None
    gap = fusion.producers.get(power.args[0])
    return gap if gap is not None and gap.op == "sub" else None


def _top(fusion: Fusion, gap: Node, members: Mapping[Value, Member]) -> Member | None:
    """The member that is the maximum in a difference ``x - max(x)``."""
    value = gap.args[1]
    while isinstance(value, Value) and value not in members:
        node = fusion.producers.get(value)
        value = None if node is None else node.args[0]
    return members[value] if isinstance(value, Value) else None


def _same_rows(fusion: Fusion, total: Member, top: Member) -> bool:
    """Whether the sum reads the maximum and its operand at the index at which the maximum does."""
    gap = _gap(fusion, total)
    assert gap is not None
    x, shift = gap.args
    read = Read(shift, total.operand_index) if isinstance(shift, Value) else None
    while read is not None and read.value != top.node.out:
        maker = fusion.producers[read.value]
        if not isinstance(as_call(maker).op.form, View):
            return False
        (source,) = sources_of(maker, read)
        assert isinstance(source.operand, Value)
        read = Read(source.operand, source.index, read.guards)
    return (
        read is not None
        and read.index == top.index
        and x == next(top.node.operands())
        and total.operand_index == top.operand_index
    )
