"""How many elements of each value are needed, propagated back from results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...ir import Node, Value
from ...ops.builder import as_call
from ...ops.forms import Contraction, Moments, Pointwise, Reduction, Scan
from ...ops.table import Library, Scatter, View
from ...symbolic.sizes import hint

_WHOLE = (Contraction, Library, Moments, Reduction, Scan, Scatter)
"""Forms whose results need their operands as a whole, not element by element."""


def demanded(
    nodes: Sequence[Node], results: Mapping[Value, int], *, boxes: bool = False
) -> dict[Value, float]:
    """The number of elements of each tensor that have to be read or computed, each counted once.

    A slice needs as many elements of its operand as it has itself. The needs of several users of a
    value add up, at most to all its elements.

    Parameters
    ----------
    nodes : sequence of Node
        In recording order. Values that none of them computes are read from memory.
    results : mapping of Value to int
        The number of elements that are needed of each result.
    boxes : bool
        Whether results are boxes of a value that is pieced together. ``nodes`` are then those of
        the boxes, and each is needed for all elements of its box.
    """
    sizes = distinct_elements(nodes)
    needs: dict[Value, float] = {
        v: min(count, sizes.get(v, held_elements(v))) for v, count in results.items()
    }
    for node in reversed(nodes):
        wanted = max((needs.get(out, 0.0) for out in node.outs if out.is_tensor), default=0.0)
        if not wanted:
            continue
        share = max(needs.get(o, 0.0) / max(sizes[o], 1) for o in node.outs if o.is_tensor)
        form = as_call(node).op.form
        # All parts that a value is pieced together from are taken to be needed alike.
        pieced = isinstance(form, View) and form.pieces and not boxes
        whole = isinstance(form, _WHOLE) or pieced
        for value in dict.fromkeys(v for v in node.operands() if v.is_tensor):
            held = sizes.get(value, held_elements(value))
            more = share * held if whole else wanted
            needs[value] = min(float(held), needs.get(value, 0.0) + more)
    return needs


def distinct_elements(nodes: Sequence[Node]) -> dict[Value, int]:
    """Distinct elements of each result: a dim that no operand runs along counts as one."""
    dims: dict[Value, tuple[int, ...]] = {}
    for node in nodes:
        pointwise = isinstance(as_call(node).op.form, Pointwise)
        given = [v for v in node.operands() if v.is_tensor]
        for out in node.outs:
            if not out.is_tensor:
                continue
            shapes = [dims.get(v) or _own(v) for v in given]
            shapes = [shape for shape in shapes if len(shape) == out.tensor.rank]
            alike = pointwise and len(shapes) == len(given) and given
            dims[out] = tuple(map(max, zip(*shapes, strict=True))) if alike else _own(out)
    return {value: prod(shape) for value, shape in dims.items()}


def held_elements(value: Value) -> int:
    """Elements of a tensor; a dim that repeats them counts as one."""
    return prod(_own(value))


def _own(value: Value) -> tuple[int, ...]:
    """The sizes of a tensor, with 1 for expanded dims."""
    pairs = zip(value.tensor.dims, value.tensor.sizes, strict=True)
    return tuple(1 if dim.expanded else hint(size) for dim, size in pairs)
