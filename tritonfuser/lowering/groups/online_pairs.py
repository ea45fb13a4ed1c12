"""Pairs of a maximum and a sum of exponentials below it, which one loop can compute."""

from __future__ import annotations

from collections.abc import Mapping

from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.table import View
from ..access.reads import Read, sources_of
from ..segments.member import Member


def online_pairs(fusion: Fusion, members: Mapping[Value, Member]) -> dict[Value, Member]:
    """Sums of exponentials that can share a loop with their maximum, each with that maximum."""
    found: dict[Value, Member] = {}
    for out, member in members.items():
        if member.node.op != "sum":
            continue
        difference = _difference(fusion, member)
        maximum = None if difference is None else _maximum_of(fusion, difference, members)
        if maximum is None or maximum.across != member.across:
            continue
        if _same_rows(fusion, member, maximum):
            found[out] = maximum
    return found


def _difference(fusion: Fusion, total: Member) -> Node | None:
    """``x - max(x)`` of a sum of its exponentials; None where these are read from memory."""
    exponential = fusion.producers.get(next(total.node.operands()))
    if exponential is None or exponential.op != "exp_nonpositive":
        return None
    (argument,) = exponential.args
    difference = fusion.producers.get(argument) if isinstance(argument, Value) else None
    return difference if difference is not None and difference.op == "sub" else None


def _maximum_of(fusion: Fusion, difference: Node, members: Mapping[Value, Member]) -> Member | None:
    """The member that is the maximum in a difference ``x - max(x)``."""
    value = difference.args[1]
    while isinstance(value, Value) and value not in members:
        node = fusion.producers.get(value)
        value = None if node is None else node.args[0]
    return members[value] if isinstance(value, Value) else None


def _same_rows(fusion: Fusion, total: Member, maximum: Member) -> bool:
    """Whether the sum reads the maximum and its operand at the index at which the maximum does."""
    difference = _difference(fusion, total)
    assert difference is not None
    x, shift = difference.args
    read = Read(shift, total.operand_index) if isinstance(shift, Value) else None
    while read is not None and read.value != maximum.node.out:
        maker = fusion.producers[read.value]
        if not isinstance(as_call(maker).op.form, View):
            return False
        (source,) = sources_of(maker, read)
        assert isinstance(source.operand, Value)
        read = Read(source.operand, source.index, read.guards)
    return (
        read is not None
        and read.index == maximum.index
        and x == next(maximum.node.operands())
        and total.operand_index == maximum.operand_index
    )
