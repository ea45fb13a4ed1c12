"""Groups in, what to rewrite before grouping once more out: steps of reductions, lost products."""

from __future__ import annotations

from ..affine import Axis, axes_in_order
from ..heuristics import matmul, schedulers
from ..heuristics.product_gain import Company, gain
from ..ir import Node, Value
from ..ops.builder import as_call
from ..ops.table import Contraction, View
from .grouper import Grouper
from .grouping import Group
from .products import bytes_of
from .reach import Read
from .rfactor import Parts, reduced_extents
from .segments import Member


def parts_of(grouper: Grouper) -> dict[Value, Parts]:
    """Reductions to do in two steps, and in how many parts, or which."""
    found: dict[Value, Parts] = {}
    for group in grouper.groups:
        if group.library is not None:
            continue
        rows = _rows_first(grouper, group)
        if rows:
            found.update(rows)
            continue
        parts = schedulers.split(grouper.problem(group))
        if parts > 1:
            members = group.members[:1] if group.product else group.outer or group.members
            found.update({member.node.out: parts for member in members})
    return found


def _rows_first(grouper: Grouper, group: Group) -> dict[Value, Parts]:
    """Reductions that begin along rows which another kernel on the same data has in hand.

    Beside rows ``(n, c)`` over ``(h, w)``, a sum over ``(n, h, w)`` is a sum over ``n`` of theirs:
    the data is not read once more.
    """
    if group.depth != 1 or group.product or group.outer or group.scans or group.dependent_outputs:
        return {}
    for host in grouper.groups:
        if _has_rows_of(grouper, host, group):
            found = {m.node.out: _outer_dims(grouper, m, host) for m in group.members}
            if all(found.values()):
                return dict(found)
    return {}


def _has_rows_of(grouper: Grouper, host: Group, group: Group) -> bool:
    """Whether a kernel reduces, along some of a group's reduced axes, data that the group reads."""
    mine, others = host.loops, group.loops
    if not mine.inner or not mine.inner < others.inner or host.product or host.outer or host.scans:
        return False
    if mine.rows | mine.inner != others.rows | others.inner:
        return False
    waits = grouper.made.up_to(host.needs) >> group.number & 1
    return not waits and any(_runs_over(read, mine.inner) for read in host.reads & group.reads)


def _runs_over(read: Read, axes: frozenset[Axis]) -> bool:
    """Whether what is read is a tensor that lies along all of the axes."""
    met = frozenset(axis for item in read.index for axis in item.axes())
    return read.value.is_tensor and axes <= met


def _outer_dims(grouper: Grouper, member: Member, host: Group) -> tuple[int, ...]:
    """1 for each dim that the rows reduce, else its extent; none unless there are both kinds."""
    operand = next(member.node.operands())
    atoms = grouper.maker.axes.atoms(operand)
    dims = as_call(member.node).dims()
    factors: list[int] = []
    inner = 0
    for dim, extent in zip(dims, reduced_extents(member.node), strict=True):
        axes = {grouper.maker.axes.axis(atom) for atom in atoms[dim]}
        inside = axes & host.loops.inner
        if inside and inside != axes:
            return ()
        factors.append(1 if inside else extent)
        inner += bool(inside)
    return tuple(factors) if 0 < inner < len(dims) else ()


def tile_parts(grouper: Grouper) -> dict[Value, int]:
    """Reductions of whole rows of a product that its kernel can begin, and in how many parts.

    Their first step runs over the columns that a tile has.
    """
    found: dict[Value, int] = {}
    products = [g for g in grouper.groups if g.product is not None]
    for group in grouper.groups:
        for start in products:
            if start.number in group.needs and group.depth == 1 and not group.full_outputs:
                found.update(_tile_parts(grouper, group, start))
    return found


def _tile_parts(grouper: Grouper, group: Group, start: Group) -> dict[Value, int]:
    assert start.product is not None
    columns = frozenset(axes_in_order(start.members[0].index[-1]))
    product = grouper.facts.product(start.product)
    width = matmul.width(product, grouper.device)
    if not width or product.n == width:
        return {}
    return {
        member.node.out: product.n // width
        for member in group.members
        if frozenset(member.across) == columns
    }


def losing(grouper: Grouper) -> frozenset[Value]:
    """Products that torch and a kernel behind it are expected to do faster."""
    found: set[Value] = set()
    for group in grouper.groups:
        if group.product is None:
            continue
        problem = grouper.problem(group)
        assert problem.product is not None
        company = _company(grouper, group, group.product, schedulers.split(problem))
        alone = not company.follows and not company.before_bytes
        if alone or gain(problem.product, company, grouper.device) <= 0:
            found.add(group.product.out)
    return frozenset(found)


def _company(grouper: Grouper, group: Group, node: Node, parts: int) -> Company:
    forms = (as_call(other).op.form for other in group.nodes)
    return Company(
        ops=sum(not isinstance(form, View | Contraction) for form in forms),
        follows=bool(group.stores) or len(group.members) > 1,
        before_bytes=sum(bytes_of(value) for value in grouper.facts.computed(node)),
        parts=parts,
    )
