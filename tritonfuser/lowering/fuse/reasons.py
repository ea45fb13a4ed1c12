"""Texts that say why nodes share a kernel, why a kernel was started, and why it was split."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...ir import Value
from ...symbolic.index_expr import extent
from ..groups.cores import core_row
from ..groups.fusion_group import FusionGroup
from ..passes.splits.parts import Parts
from ..segments.store import Store
from .grouper import Grouper


def split_reasons(
    grouper: Grouper, again: Grouper, parts: Mapping[Value, Parts]
) -> tuple[str, ...]:
    """What a grouping decided that the one after it no longer shows.

    Parameters
    ----------
    grouper : Grouper
        Of the fusion before reductions were split.
    again : Grouper
        Of the fusion with split reductions.
    parts : mapping of Value to Parts
        How they were to be split.
    """
    split = [v for v in parts if again.fusion.producers.get(v) != grouper.fusion.producers[v]]
    steps = [f"{v.name} is done in two steps, {_purpose(parts[v])}" for v in split]
    firsts = _first_values(grouper)
    names = {number: f"the kernel of {value.name}" for number, value in firsts.items()}
    gone = {v: cut for v, cut in grouper.cuts.items() if v not in again.cuts}
    return (*steps, *(f"in one step {with_names(cut, names)}" for cut in gone.values()))


def _purpose(parts: Parts) -> str:
    if isinstance(parts, tuple):
        return "the first along with other reductions of the same rows"
    return "to share it out over programs"


def _first_values(grouper: Grouper) -> dict[int, Value]:
    """The first value that each group makes. The copy of a scatter belongs to another group."""
    found = {g.number: g.stores[0].value for g in grouper.groups if g.stores}
    made: dict[int, Value] = {}
    for value, number in grouper.graph.owner.items():
        made.setdefault(number, value)
    return {**found, **made}


def with_names(cut: str, names: Mapping[int, str]) -> str:
    """The reason of a cut with names for its kernels' numbers: ``@0`` -> ``s0``."""
    return re.sub(r"@(\d+)", lambda m: names[int(m[1])], cut)


def reason_of(group: FusionGroup, ops: int, stores: Sequence[Store]) -> str:
    """Why the nodes of a group are together: ``"9 ops over 4096 x 1000, 1 result stored"``."""
    over = f"{extent(group.parallel)} elements"
    if group.reduced:
        over = f"{extent(group.parallel)} x {extent(group.reduced)}"
    if group.core is not None:
        over = core_row(group.core).description(group.core)
    scattered = sum(s.scatter is not None for s in stores)
    parts = [f"{_count(ops, 'op')} over {over}"]
    if scattered < len(stores):
        whole = [store for store in stores if store.scatter is None]
        results = len({store.value for store in whole})
        boxes = f" in {len(whole)} boxes" if len(whole) > results else ""
        parts.append(f"{_count(results, 'result')} stored{boxes}")
    if scattered:
        parts.append(f"{_count(scattered, 'result')} scattered into")
    if group.depth > 1 and group.core is None:
        parts.append(f"{group.depth} reductions that depend on one another")
    if group.outer:
        parts.append(f"{_count(len(group.outer), 'reduction')} over the rows")
    return ", ".join(parts)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
