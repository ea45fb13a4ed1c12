"""Which dim each index tensor indexes, so that its values can be bounded or asserted."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir import Fusion, Node
from ...ops.builder import as_call
from ...ops.table import Scatter, View
from ...shapes import Index
from ...symbolic.index_expr import Axis, digit
from ...symbolic.queries import assume_constant
from .read_footprint import Read, sources_of, target_of


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
