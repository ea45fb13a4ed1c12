"""A scan in three steps: of long rows that few programs would have.

``cumsum(x)`` -> ``cumsum(parts of x) + what all parts before add up to``. One kernel scans the
parts and adds them up, one scans their sums, which is small, and one joins both.
"""

from __future__ import annotations

from ....dtypes import compute_dtype
from ....ir import Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.forms import Scan
from ....ops.shape_rules import int_attr
from ..constant_folding import neutral
from .combine_partials import define_result


def split_scan(node: Node, parts: int, builder: GraphBuilder) -> None:
    """Record a scan over so many parts; the row is padded where they do not divide it."""
    call = as_call(node)
    operand, dim = call.value("arg"), int_attr(call, "dim")
    form = call.op.form
    assert isinstance(form, Scan)
    wide = compute_dtype(operand.dtype)
    source = operand if wide is operand.dtype else builder.call("cast", operand, wide)
    sizes = list(operand.tensor.sizes)
    length = -(-sizes[dim] // parts)
    source = _padded(source, node, dim, (0, parts * length - sizes[dim]), builder)
    apart = builder.call("reshape", source, [*sizes[:dim], parts, length, *sizes[dim + 1 :]])
    before = _before(node, builder.call(form.reduces, apart, [dim + 1]), dim, builder)
    place = [d == dim + 1 for d in range(len(sizes) + 1)]
    before = builder.call("broadcast", before, place)
    found = builder.call(form.joins, before, builder.call(node.op, apart, dim + 1))
    found = builder.call("reshape", found, source.tensor.sizes)
    found = builder.call("slice", found, [0] * len(sizes), sizes)
    define_result(node, found, builder)


def _before(node: Node, totals: Value, dim: int, builder: GraphBuilder) -> Value:
    """For each part the scan's result before it, from what each part is as a whole."""
    wide = compute_dtype(as_call(node).value("arg").dtype)
    totals = totals if totals.dtype is wide else builder.call("cast", totals, wide)
    running = builder.call(node.op, totals, dim)
    ends = list(running.tensor.sizes)
    ends[dim] -= 1
    running = builder.call("slice", running, [0] * len(ends), ends)
    return _padded(running, node, dim, (1, 0), builder)


def _padded(
    value: Value, node: Node, dim: int, widths: tuple[int, int], builder: GraphBuilder
) -> Value:
    """A value with the scan's neutral element at the ends of a dim."""
    form = as_call(node).op.form
    assert isinstance(form, Scan)
    given = [0, 0] * (value.tensor.rank - 1 - dim) + list(widths)
    made: Value = builder.call("pad", value, given, neutral(form.identity, value.dtype).value)
    return made
