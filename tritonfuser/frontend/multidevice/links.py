"""Which dims of an op's tensors run together (``Links``), for each lowering form.

What an op does to a part of its operands is then a part of what it does to all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import Node, Value
from ...ops.builder import as_call
from ...ops.forms import Moments, Pointwise, Reduction
from ...ops.table import Call, View
from .communicator import ADDED
from .pieces import Dims, Label, named, results_of, tensors_of, unnamed
from .view_links import view_links


@dataclass(frozen=True)
class Links:
    """Which factors of the dims of a node's tensors run together.

    Attributes
    ----------
    operands, results : tuple of Dims
        One a tensor, in the node's order.
    combined : dict
        Labels that the results do not have: how results of parts are made one, by the neutral
        element ("zero" adds up).
    once : frozenset of int
        Operands that count in one of such results only.
    """

    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    combined: dict[Label, str]
    once: frozenset[int] = frozenset()


def links_of(node: Node) -> Links:
    """What the op's row says of the dims; where it says nothing, all is needed whole."""
    call = as_call(node)
    form = call.op.form
    if call.op.axes is not None:
        return _declared(node, call)
    if isinstance(form, Pointwise):
        return _pointwise(node)
    if isinstance(form, View):
        return Links(*view_links(node, call, form), {})
    if isinstance(form, Reduction):
        return _reduction(node, call, form)
    if isinstance(form, Moments):
        return _moments(node, call)
    return whole(node)


def whole(node: Node) -> Links:
    """All of every operand is needed."""
    operands, results = map(unnamed, tensors_of(node)), map(unnamed, results_of(node))
    return Links(tuple(operands), tuple(results), {})


def _declared(node: Node, call: Call) -> Links:
    assert call.op.axes is not None
    axes = call.op.axes(call)
    operands, results = (
        tuple(
            named(v, (name or None for name in own)) for v, own in zip(values, names, strict=True)
        )
        for values, names in (
            (tensors_of(node), axes.operands),
            (results_of(node), axes.results),
        )
    )
    return Links(operands, results, dict.fromkeys(axes.summed, ADDED), axes.once)


def _pointwise(node: Node) -> Links:
    sizes = node.out.tensor.sizes if node.out.is_tensor else ()

    def dims(value: Value) -> Dims:
        first = len(sizes) - value.tensor.rank
        own = enumerate(value.tensor.sizes, first)
        return named(value, [place if size == sizes[place] else None for place, size in own])

    return Links(tuple(map(dims, tensors_of(node))), tuple(map(dims, results_of(node))), {})


def _reduction(node: Node, call: Call, form: Reduction) -> Links:
    arg, dims = call.value("arg"), call.dims()
    rank = arg.tensor.rank
    kept = [dim for dim in range(rank) if dim not in dims]
    combined: dict[Label, str] = dict.fromkeys(dims, form.identity)
    return Links((named(arg, range(rank)),), (named(node.out, kept),), combined)


def _moments(node: Node, call: Call) -> Links:
    arg, dims = call.value("arg"), call.dims()
    kept = [dim for dim in range(arg.tensor.rank) if dim not in dims]
    operand = named(arg, (dim if dim in kept else None for dim in range(arg.tensor.rank)))
    return Links((operand,), tuple(named(out, kept) for out in results_of(node)), {})
