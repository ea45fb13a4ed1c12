"""Splits reductions that share a first step over common axes, so that their data is read once.

Let a reduction be over ``(n, h, w)``. Beside a kernel whose rows are ``(n, c)`` and that reduces
``(h, w)``, it becomes a sum over ``n`` of sums over ``(h, w)``, which the kernel can do. Beside a
kernel whose rows are ``(n, g)`` and that reduces ``(c, h, w)``, both are split: their first steps
reduce ``(h, w)`` in rows ``(n, g, c)``. A program has all rows of one ``(n, g)`` and does the
second step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from ....ir import Fusion, Value
from ....ops.builder import as_call
from ....symbolic.index_expr import Axis
from ...access.node_kinds import is_reducer
from ...access.reads import Read
from ...groups.fusion_group import FusionGroup
from ...passes.splits.parts import Parts
from ...segments.member import Member
from ..grouper import Grouper
from ..scheduler_queries.splits import is_slower_in_steps


@dataclass(frozen=True)
class Splits:
    """Reductions to do in two steps.

    Attributes
    ----------
    parts : dict of Value to Parts
        The first result of each reduction, and the parts that its first step has.
    co_reduced : frozenset of Value
        Results whose second step the kernel of the first step should do.
    cuts_rows : bool
        Some kernel's own reductions are split only for others to share their first step.
    """

    parts: dict[Value, Parts] = field(default_factory=dict)
    co_reduced: frozenset[Value] = frozenset()
    cuts_rows: bool = False

    def joined(self, other: Splits) -> Splits:
        """Both."""
        return Splits(
            {**self.parts, **other.parts},
            self.co_reduced | other.co_reduced,
            self.cuts_rows or other.cuts_rows,
        )


def common_rows(grouper: Grouper, group: FusionGroup, cut_rows: bool) -> Splits:
    """How to split a group's reductions to share the first step with a kernel on the same data.

    Parameters
    ----------
    grouper : Grouper
        Of the fusion before they are split.
    group : FusionGroup
        One of its groups.
    cut_rows : bool
        Whether that kernel's own reductions may be split too.
    """
    if group.depth != 1 or group.outer or group.dependent_outputs or not _is_plain(group):
        return Splits()
    for host in grouper.groups:
        shared = host.loops.inner & group.loops.inner
        cuts = shared != host.loops.inner
        if cuts > cut_rows or not _has_data_of(grouper, host, group, shared):
            continue
        members = [m for g in (host, group) if shared != g.loops.inner for m in g.members]
        parts: dict[Value, Parts] = {m.node.out: _second_steps(grouper, m, shared) for m in members}
        if all(parts.values()) and not _have_too_few_rows(grouper, host, group, shared):
            return Splits(parts, _reduced_in_kernel(host, parts), cuts)
    return Splits()


def _is_plain(group: FusionGroup) -> bool:
    return not group.scans and group.core is None and group.library is None


def _has_data_of(
    grouper: Grouper, host: FusionGroup, group: FusionGroup, shared: frozenset[Axis]
) -> bool:
    """Whether a kernel reduces, along some of a group's reduced axes, data that the group reads."""
    mine, others = host.loops, group.loops
    if not shared or mine.inner == others.inner or host.outer or not _is_plain(host):
        return False
    if mine.rows | mine.inner != others.rows | others.inner:
        return False
    waits = grouper.graph.up_to(host.needs) >> group.number & 1
    return not waits and any(_runs_over(read, shared) for read in host.reads & group.reads)


def _runs_over(read: Read, axes: frozenset[Axis]) -> bool:
    """Whether what is read is a tensor that lies along all of the axes."""
    met = frozenset(axis for item in read.index for axis in item.axes())
    return read.value.is_tensor and axes <= met


def _have_too_few_rows(
    grouper: Grouper, host: FusionGroup, group: FusionGroup, shared: frozenset[Axis]
) -> bool:
    """Whether the common rows, or the results, are too few for the device.

    Neither step is split once more.
    """
    axes = (host.loops.rows | host.loops.inner) - shared
    first = prod(axis.extent for axis in axes)
    results = [g.loops.row_extent for g in (host, group) if shared != g.loops.inner]
    problem = grouper.problem(host)
    return any(is_slower_in_steps(problem, first, number) for number in results)


def _reduced_in_kernel(host: FusionGroup, parts: Iterable[Value]) -> frozenset[Value]:
    """The host's results, where the host's rows read them again."""
    if host.depth == 1 and not host.dependent_outputs:
        return frozenset()
    return frozenset(out for m in host.members if m.node.out in parts for out in m.node.outs)


def last_steps(fusion: Fusion, values: Iterable[Value]) -> frozenset[Value]:
    """The reductions that values are results of, or are computed from the results of."""
    found: set[Value] = set()
    stack = list(values)
    while stack:
        node = fusion.producers.get(stack.pop())
        if node is not None and is_reducer(node):
            found.add(node.out)
        elif node is not None:
            stack.extend(node.operands())
    return frozenset(found)


def _second_steps(grouper: Grouper, member: Member, shared: frozenset[Axis]) -> tuple[int, ...]:
    """For each reduced dim the extent that the second step reduces. 1 where the first does all.

    Empty unless both steps have something to reduce.
    """
    atoms = grouper.maker.axes.atoms(next(member.node.operands()))
    dims = [[grouper.maker.axes.axis(a) for a in atoms[d]] for d in as_call(member.node).dims()]
    left = [[axis for axis in dim if axis not in shared] for dim in dims]
    if any(dim[: len(outer)] != outer for dim, outer in zip(dims, left, strict=True)):
        return ()
    both = any(left) and any(axis in shared for dim in dims for axis in dim)
    return tuple(prod(axis.extent for axis in outer) for outer in left) if both else ()
