"""Dims that a reduction drops, with the dims along which its result is broadcast again.

``b * sum(a, -1, keepdim=True)``: the result is needed along the last dim of ``b``, of which nothing
but its size says that it has to do with the last dim of ``a``.
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
    """A result that is broadcast after a reduction.

    Attributes
    ----------
    operand : Value
        What is reduced.
    reduced : tuple of int
        The dims of it that are reduced.
    value : Value
        A value that the result is broadcast for.
    along : tuple of int
        The dims of it in which the result has one element.
    """

    operand: Value
    reduced: tuple[int, ...]
    value: Value
    along: tuple[int, ...]


def returned_dims(fusion: Fusion) -> Iterator[Returned]:
    """Each broadcast of what is computed of a reduction's result, in recording order."""
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
    """What a node returns of the reductions that one of its operands depends on."""
    along = _broadcast_dims(operand, out)
    for node in sorted(found, key=lambda node: node.out.name) if along else ():
        call = as_call(node)
        yield Returned(call.value("arg"), tuple(call.dims()), out, along)


def _broadcast_dims(operand: Value, out: Value) -> tuple[int, ...]:
    """The dims of a result in which an operand has one element. The last dims of both match."""
    more, one = out.tensor.rank - operand.tensor.rank, operand.tensor.sizes
    sizes = enumerate(out.tensor.sizes)
    return tuple(
        dim
        for dim, size in sizes
        if not is_known_equal(size, 1) and (dim < more or is_known_equal(one[dim - more], 1))
    )
