"""Members in, pairs out: sums of exponentials that share a loop with their maximum."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.table import View
from ..access.read_footprint import Read, sources_of
from ..segments import Member


def online_pairs(fusion: Fusion, members: Mapping[Value, Member]) -> dict[Value, Member]:
    """The sums that can share a loop with the maximum they are below, each with its maximum."""
    found: dict[Value, Member] = {}
    for out, member in members.items():
        if member.node.op != "sum":
            continue
        power = fusion.producers.get(next(member.node.operands()))
        top = None if power is None or power.op != "exp_below" else _top(fusion, power, members)
        if top is not None and top.across == member.across and _same_rows(fusion, member, top):
            found[out] = top
    return found


def _top(fusion: Fusion, power: Node, members: Mapping[Value, Member]) -> Member | None:
    """The member that is the maximum in ``exp_below(x - max(x))``."""
    assert isinstance(power.args[0], Value)
    value = fusion.producers[power.args[0]].args[1]
    while isinstance(value, Value) and value not in members:
        node = fusion.producers.get(value)
        value = None if node is None else node.args[0]
    return members[value] if isinstance(value, Value) else None


def _same_rows(fusion: Fusion, total: Member, top: Member) -> bool:
    """Whether the sum reads the maximum and its operand at the index at which the maximum does."""
    power = fusion.producers[next(total.node.operands())]
    assert isinstance(power.args[0], Value)
    x, shift = fusion.producers[power.args[0]].args
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
