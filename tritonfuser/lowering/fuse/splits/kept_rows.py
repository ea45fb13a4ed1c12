"""Splits reductions over several dims, so that one that keeps a dim can share their kernel.

Beside results over rows ``(n, t)``, let one sum be over ``n`` and ``t``, and another over ``n``
alone, as the gradients of a norm's weights and of position embeddings are. The first becomes a sum
over ``t`` of sums over ``n``, so that both reduce the same rows of a program.
"""

from __future__ import annotations

from ....ir import Value
from ....ops.builder import as_call
from ....ops.forms import Reduction
from ....symbolic.index_expr import Axis, extent
from ....symbolic.sizes import is_size
from ...groups.fusion_group import FusionGroup
from ...passes.splits.factors import factors_of_any
from ...passes.splits.parts import Parts
from ...segments.member import Member
from ..grouper import Grouper
from ..scheduler_queries.splits import split
from .common_rows import Splits


def kept_rows(grouper: Grouper) -> Splits:
    """How to split reductions over rows for others, which keep dims of the rows, to join them."""
    for host in grouper.groups:
        if not host.outer or host.scans:
            continue
        for group in grouper.groups:
            found = _splits(grouper, host, group) if _keeps_some(host, group) else {}
            if found:
                return Splits(found, cuts_rows=True)
    return Splits()


def _keeps_some(host: FusionGroup, group: FusionGroup) -> bool:
    """Whether a group reduces some of the axes that a kernel's rows are reduced over.

    A reduction over dims of one position has no axes, and reduces none.
    """
    if group.outer or group.depth != 1 or group.full_outputs or group.scans or group.core:
        return False
    mine, rows = group.loops.inner, set(host.outer[0].across)
    if not mine or not mine < rows or any(is_size(axis.extent) for axis in rows):
        return False
    return group.loops.rows == (host.loops.rows - mine) | host.loops.inner


def _splits(grouper: Grouper, host: FusionGroup, group: FusionGroup) -> dict[Value, Parts]:
    """The parts of all of these reductions; none where a dim has axes of both kinds."""
    shared = group.loops.inner
    kept = [axis for axis in host.outer[0].across if axis not in shared]
    wanted = split(grouper.problem(host))[0] // extent(kept)
    found: dict[Value, Parts] = {}
    for member in (*host.outer, *group.members):
        parts = _parts(grouper, member, shared, max(wanted, 1))
        if parts is None:
            return {}
        if max(parts) > 1:
            found[member.node.out] = parts
    return found


def _parts(
    grouper: Grouper, member: Member, shared: frozenset[Axis], wanted: int
) -> tuple[int, ...] | None:
    """The factor of each reduced dim that the second step reduces."""
    call = as_call(member.node)
    if not isinstance(call.op.form, Reduction):
        return None
    atoms = grouper.maker.axes.atoms(call.value("arg"))
    dims = [{grouper.maker.axes.axis(atom) for atom in atoms[d]} for d in call.dims()]
    if any(dim & shared and not dim <= shared for dim in dims):
        return None
    extents = tuple(extent(dim) for dim in dims)
    inside = tuple(n for n, dim in zip(extents, dims, strict=True) if dim <= shared)
    shares = iter(factors_of_any(inside, wanted))
    return tuple(next(shares) if dim <= shared else n for n, dim in zip(extents, dims, strict=True))
