"""Split reductions with equal parts and a remainder, which the second step reduces too.

Padded parts need masks, and parts of neighbouring rows may begin inside vectors. Equal parts avoid
both in the first step. The second step, which is small, reads a remainder of fewer elements than
there are parts.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from ....dtypes import compute_dtype
from ....ir import Node, Value
from ....ops import registry
from ....ops.arguments import bind
from ....ops.builder import GraphBuilder, as_call
from ....ops.forms import Moments, Reduction
from ....symbolic.queries import assume_at_most, is_known_equal
from ..constant_folding import neutral
from .combine_partials import FirstStep, combine_moments_and_rest, define_result
from .parts import Padded, Remainder, reduced_extents
from .split_factors import SplitFactors, cut_dims


def may_leave_remainder(node: Node) -> bool:
    """Whether a reduction can have a remainder: it is no scan, and its dims are neighbours."""
    call = as_call(node)
    if not isinstance(call.op.form, Reduction | Moments):
        return False
    dims = call.dims()
    return bool(dims) and all(b == a + 1 for a, b in pairwise(dims))


def padded_if_short(node: Node, wanted: Remainder) -> Remainder | Padded:
    """The split; with padding instead where parts would have fewer than two elements."""
    extents = reduced_extents(node)
    if assume_at_most(2, prod(extents) // wanted.count):
        return wanted
    longer = (place for place, extent in enumerate(extents) if not is_known_equal(extent, 1))
    return Padded(next(longer, 0), wanted.count, wanted.multiple_of > 0)


def split_with_remainder(node: Node, wanted: Remainder, builder: GraphBuilder) -> FirstStep:
    """Record ``sum(sum(reshape(x[:whole])) + pad(x)[whole : whole + parts])``.

    ``whole`` is the largest multiple of the number of parts. The operand is padded with as many
    neutral elements (zeros for moments) as there are parts, so the slice behind ``whole`` has one
    length at all sizes. Several reduced dims are merged before.
    """
    form = as_call(node).op.form
    source, dim = _merged_operand(node, builder)
    sizes, parts = list(source.tensor.sizes), wanted.count
    whole = sizes[dim] // parts * parts
    equal = _sliced(source, dim, 0, whole, builder)
    cut = cut_dims(equal.tensor.sizes, SplitFactors({dim: parts}, wanted.multiple_of > 0))
    equal = builder.call("reshape", equal, cut.sizes)
    partial = builder.call(node.op, equal, cut.first)
    widths = [0, 0] * (len(sizes) - 1 - dim) + [0, parts]
    kind = form.identity if isinstance(form, Reduction) else "zero"
    padded = builder.call("pad", source, widths, neutral(kind, source.dtype).value)
    rest = _sliced(padded, dim, whole, whole + parts, builder)
    if not isinstance(form, Reduction):
        combine_moments_and_rest(node, partial, rest, builder)
        return FirstStep(equal, partial[0], cut)
    if rest.dtype is not partial.dtype:
        rest = builder.call("cast", rest, partial.dtype)
    both = builder.call(form.pairwise, partial, rest)
    define_result(node, builder.call(node.op, both, cut.second), builder)
    return FirstStep(equal, partial, cut)


def _merged_operand(node: Node, builder: GraphBuilder) -> tuple[Value, int]:
    """The operand in the dtype of the arithmetic, its reduced dims merged into one; that dim."""
    call = as_call(node)
    (dim, *others), operand = call.dims(), call.value("arg")
    wide = compute_dtype(operand.dtype)
    source = operand if wide is operand.dtype else builder.call("cast", operand, wide)
    if others:
        before, behind = source.tensor.sizes[:dim], source.tensor.sizes[others[-1] + 1 :]
        source = builder.call("reshape", source, [*before, prod(reduced_extents(node)), *behind])
    return source, dim


def _sliced(value: Value, dim: int, start: int, end: int, builder: GraphBuilder) -> Value:
    """A tensor from ``start`` to ``end`` along one dim.

    The row of ``slice`` is used directly: ``builder.call`` would record guards on the whole dims.
    """
    sizes = value.tensor.sizes
    starts, ends = [0] * len(sizes), list(sizes)
    starts[dim], ends[dim] = start, end
    call = bind(registry.get("slice"), (value, starts, ends, [1] * len(sizes), True), {})
    made: Value = builder.append(call)
    return made
