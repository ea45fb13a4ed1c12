"""Reduced dims, with the dims along which the result is broadcast again.

Example: ``b * sum(a, -1, keepdim=True)``. The sum is broadcast along the last dim of ``b``. If that
dim has the size of the last dim of ``a``, both may be one axis of a kernel, as in a norm; only the
sizes say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.forms import Moments, Pointwise, Reduction
from ...ops.table import View
from ...symbolic.queries import is_known_equal


class Returned(NamedTuple):
    """A value that depends on a reduction, and is broadcast.

    Attributes
    ----------
    operand : Value
        The operand of the reduction.
    reduced : tuple of int
        Its reduced dims.
    value : Value
        The result of the op that broadcasts.
    along : tuple of int
        The dims of ``value`` that it is broadcast along.
    """

    operand: Value
    reduced: tuple[int, ...]
    value: Value
    along: tuple[int, ...]


def returned_dims(fusion: Fusion) -> Iterator[Returned]:
    """Each broadcast of a value that depends on a reduction, in recording order."""
    reductions: dict[Value, frozenset[Node]] = {}
    for node in fusion.nodes:
        form = as_call(node).op.form
        if isinstance(form, Reduction | Moments):
            reductions.update(dict.fromkeys(node.outs, frozenset({node})))
        elif isinstance(form, Pointwise | View):
            given = [v for v in node.operands() if v in reductions]
            for value in given:
                yield from _of_operand(node.out, value, reductions[value])
            if given:
                reductions[node.out] = frozenset().union(*(reductions[v] for v in given))


def _of_operand(out: Value, operand: Value, found: frozenset[Node]) -> Iterator[Returned]:
    """The broadcasts of one operand of a node, for each reduction that the operand depends on."""
    along = _broadcast_dims(operand, out)
    for node in sorted(found, key=lambda node: node.out.name) if along else ():
        call = as_call(node)
        yield Returned(call.value("arg"), tuple(call.dims()), out, along)


def _broadcast_dims(operand: Value, out: Value) -> tuple[int, ...]:
    """The dims of a result that an operand is broadcast along. Dims are aligned at the last one."""
    more, one = out.tensor.rank - operand.tensor.rank, operand.tensor.sizes
    sizes = enumerate(out.tensor.sizes)
    return tuple(
        dim
        for dim, size in sizes
        if not is_known_equal(size, 1) and (dim < more or is_known_equal(one[dim - more], 1))
    )
