"""Which dims of an op's tensors run together: a concrete node in, ``Links`` out.

What an op does to a part of its operands is then a part of what it does to all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from ...ir import Node, Value
from ...ops.builder import as_call
from ...ops.table import Call, Pointwise, Reduction, View
from ...shapes import Index, Pull, Source
from ...symbolic.index_expr import Affine, Axis, Digit, Indexed, Loaded, digit
from .communicator import ADDED

Label = Hashable
Labels = tuple[Label, ...]


@dataclass(frozen=True)
class Links:
    """A name for each dim, None where all of the dim is needed; equal names can be cut alike.

    Attributes
    ----------
    operands, results : tuple of Labels
        One a tensor, in the node's order.
    combined : dict
        Names of dims that the results do not have: how results of parts are made one, by the
        neutral element ("zero" adds up).
    once : frozenset of int
        Operands that count in one of such results only.
    """

    operands: tuple[Labels, ...]
    results: tuple[Labels, ...]
    combined: dict[Label, str]
    once: frozenset[int] = frozenset()


def tensors_of(node: Node) -> tuple[Value, ...]:
    """The tensors among the operands, in order."""
    return tuple(value for value in node.operands() if value.is_tensor)


def links_of(node: Node) -> Links:
    """What the op's row says of the dims; where it says nothing, all is needed whole."""
    call = as_call(node)
    form = call.op.form
    if call.op.axes is not None:
        return _declared(call)
    if isinstance(form, Pointwise):
        return _pointwise(node)
    if isinstance(form, View):
        return _view(node, call, form)
    if isinstance(form, Reduction):
        return _reduction(node, call, form)
    return whole(node)


def whole(node: Node) -> Links:
    """All of every operand is needed."""
    operands = tuple((None,) * value.tensor.rank for value in tensors_of(node))
    results = tuple((None,) * value.tensor.rank for value in node.outs if value.is_tensor)
    return Links(operands, results, {})


def _declared(call: Call) -> Links:
    assert call.op.axes is not None
    axes = call.op.axes(call)
    operands, results = (
        tuple(tuple(name or None for name in names) for names in side)
        for side in (axes.operands, axes.results)
    )
    return Links(operands, results, dict.fromkeys(axes.summed, ADDED), axes.once)


def _pointwise(node: Node) -> Links:
    sizes = node.out.tensor.sizes if node.out.is_tensor else ()

    def labels(value: Value) -> Labels:
        first = len(sizes) - value.tensor.rank
        own = enumerate(value.tensor.sizes, first)
        return tuple(place if size == sizes[place] else None for place, size in own)

    return Links(tuple(map(labels, tensors_of(node))), (tuple(range(len(sizes))),), {})


def _reduction(node: Node, call: Call, form: Reduction) -> Links:
    rank, dims = call.value("arg").tensor.rank, call.dims()
    kept = tuple(dim for dim in range(rank) if dim not in dims)
    return Links((tuple(range(rank)),), (kept,), dict.fromkeys(dims, form.identity))


# --- views: read off their index maps -----------------------------------------------------------


def _view(node: Node, call: Call, form: View) -> Links:
    """A dim of an operand that is read at a dim of the result runs together with it."""
    axes = [Axis(f"{place}", size) for place, size in enumerate(node.out.tensor.sizes)]
    found: dict[Value, list[Axis | None]] = {}
    blocked: set[Axis] = set()
    for source in _sources(call, form, tuple(digit(axis) for axis in axes)):
        assert isinstance(source.operand, Value)
        own = [_linked(source.index, j, source.operand) for j in range(len(source.index))]
        before = found.setdefault(source.operand, own)
        # Read at two places, or where something else is true: no plain part of the operand.
        for one, other in zip(before, own, strict=True):
            blocked |= {a for a in (one, other) if a is not None and one != other}
        reads = {axis for item in source.index for axis in item.axes()}
        blocked |= {axis for axis in reads if own.count(axis) != 1}
        blocked |= {a for g in source.guards if not g.always for a in g.expr.axes()}
    free = {axis: place for place, axis in enumerate(axes) if axis not in blocked}
    operands = tuple(
        tuple(None if a is None else free.get(a) for a in found.get(v, [None] * v.tensor.rank))
        for v in tensors_of(node)
    )
    return Links(operands, (tuple(free.get(axis) for axis in axes),), {})


def _sources(call: Call, form: View, index: Index) -> Iterator[Source]:
    """What is read, and where: elements, and the indices that are read themselves."""
    read: list[Source] = []

    def reader(value: Value, at: Index, dim: Indexed) -> Affine:
        read.append(Source(value, at))
        return digit(Loaded((value, len(read))))

    pulled = form.pull(call, Pull(index, reader))
    yield from (s for s in (*pulled, *read) if isinstance(s.operand, Value) and s.operand.is_tensor)


def _linked(index: Index, place: int, operand: Value) -> Axis | None:
    """The axis whose steps go through an operand's dim in equal, whole blocks."""
    size = operand.tensor.sizes[place]
    others = [d for p, item in enumerate(index) if p != place for d, _ in item.terms]
    for axis in index[place].axes():
        mixed = [d for d in others if axis in _axes_of(d)]
        if _joins(index[place], axis, size) and not mixed:
            return axis
        block = _taken_apart(index[place], axis, size)
        if block and all(_within(item, axis, block) for item in mixed):
            return axis
    return None


def _joins(item: Affine, axis: Axis, size: int) -> bool:
    """``axis * c + rest`` with ``0 <= rest < c``, and ``c * extent`` the whole dim."""
    steps = {d: c for d, c in item.terms if axis in _axes_of(d)}
    if set(steps) not in ({Digit(axis, 1, axis.extent)}, {Digit(axis, 1, None)}):
        return False
    (step,) = steps.values()
    rest = Affine(tuple(t for t in item.terms if t[0] not in steps), item.const).range
    return rest is not None and rest[0] >= 0 and rest[1] < step and step * axis.extent == size


def _taken_apart(item: Affine, axis: Axis, size: int) -> int:
    """The ``b`` of an index that is ``axis // b``, with ``b * size`` the axis' extent; else 0."""
    if len(item.terms) != 1 or item.const or item.terms[0][1] != 1:
        return 0
    high = item.terms[0][0]
    fits = high.base == axis and high.div * size == axis.extent and high.range == (0, size - 1)
    return high.div if fits else 0


def _within(item: Digit, axis: Axis, block: int) -> bool:
    """Whether a digit depends on the place in a block of an axis alone."""
    return item.base == axis and item.mod is not None and block % (item.div * item.mod) == 0


def _axes_of(item: Digit) -> frozenset[Axis]:
    return Affine(((item, 1),)).axes()
