"""Which dims each index tensor indexes, so that its values can be bounded, drawn or asserted."""

from __future__ import annotations

from collections.abc import Iterator

from ...dtypes import Category
from ...ir import Fusion, Node, Value
from ...ops.builder import as_call
from ...ops.forms import Contraction, Moments, Random, Reduction, Scan
from ...ops.table import Library, Scatter, View
from ...shapes.index_map import Index
from ...symbolic.index_expr import Axis, digit
from ...symbolic.queries import assume_constant
from .reads import Read, sources_of, target_of

ANY = 2**31 - 1
"""Of positions in a dim that an op does not tell."""


def assume_index_dims(fusion: Fusion) -> None:
    """Make the extents of dims that are indexed at run time constant, by guards.

    The messages of assertions are constants, and say how many elements a dim has.
    """
    for node in fusion.nodes:
        for extent in _indexed_by(node):
            assume_constant(extent)


def indexes(node: Node) -> bool:
    """Whether a node reads or writes at indices that are read at run time."""
    form = as_call(node).op.form
    return isinstance(form, Scatter) or (isinstance(form, View) and bool(form.indices))


def index_bounds(fusion: Fusion) -> dict[Value, int]:
    """The values that indices are computed from, with the fewest elements of a dim they index.

    What is compared, and floats that are reduced, do not count: the order of numbers picks indices
    then, and not how large they are.
    """
    bounds: dict[Value, int] = {}

    def bound(value: Value, extents: list[int]) -> None:
        if extents:
            bounds[value] = min([*extents, bounds.get(value, ANY)])

    for node in reversed(fusion.nodes):
        positions = _positions(node)
        above = [bounds[out] for out in node.outs if out in bounds and _passes_on(node)]
        for value in node.operands():
            if value not in positions:
                bound(value, above)
        for value in positions:
            bound(value, _extents(node))
    return bounds


def _extents(node: Node) -> list[int]:
    """The elements of the dims that a node indexes, whoever runs it."""
    call = as_call(node)
    if isinstance(call.op.form, Library):
        return [ANY if call.op.form.positions is None else call.op.form.positions(call)]
    return list(_indexed_by(node))


def _positions(node: Node) -> list[Value]:
    """The operands of a node that hold positions."""
    call = as_call(node)
    if not isinstance(call.op.form, View | Scatter | Library):
        return []
    found = [call.arg(name) for name in call.op.form.indices]
    return [value for value in found if isinstance(value, Value)]


def _passes_on(node: Node) -> bool:
    """Whether results of a node are as large as its operands make them."""
    form = as_call(node).op.form
    if isinstance(form, Reduction | Moments | Scan):
        return next(node.operands()).dtype.info.category < Category.FLOAT
    is_bool = node.out.dtype.info.category is Category.BOOL
    return not is_bool and not isinstance(form, Library | Contraction | Random)


def _indexed_by(node: Node) -> Iterator[int]:
    """The elements of the dims that a node indexes by what it reads."""
    call = as_call(node)
    if isinstance(call.op.form, Scatter):
        index = _anywhere(call.value("index").tensor.sizes)
        place = target_of(node, Read(node.out, index))
        items = [*place.index, *(guard.expr for guard in place.guards)]
    elif isinstance(call.op.form, View) and call.op.form.indices:
        sources = sources_of(node, Read(node.out, _anywhere(node.out.tensor.sizes)))
        items = [item for source in sources for item in source.index]
    else:
        return
    for item in items:
        yield from (value.dim.extent for value in item.loaded() if value.dim is not None)


def _anywhere(sizes: tuple[int, ...]) -> Index:
    return tuple(digit(Axis(f"d{place}", size)) for place, size in enumerate(sizes))
