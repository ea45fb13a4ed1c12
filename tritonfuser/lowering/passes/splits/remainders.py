"""Split reductions with equal parts and a remainder, which the second step reduces too.

Padded parts take masks, and those of neighbouring rows begin inside vectors. The first step of
equal parts has neither; the second, which is small, reads fewer elements than there are parts.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from ....dtypes import compute_dtype
from ....ir import Node, Value
from ....ops import registry
from ....ops.arguments import bind
from ....ops.builder import GraphBuilder, as_call
from ....ops.table import Moments, Reduction
from ....symbolic.queries import assume_at_most, is_known_equal
from ..constant_folding import neutral
from .combine_partials import FirstStep, combine_moments_and_rest, define_result
from .split_factors import Padded, Remainder, SplitFactors, cut_dims, reduced_extents


def may_leave_remainder(node: Node) -> bool:
    """Whether a reduction can be split so: of neighbouring dims, by an op on two operands or of
    moments."""
    call = as_call(node)
    if not isinstance(call.op.form, Reduction | Moments):
        return False
    dims = call.dims()
    return bool(dims) and all(b == a + 1 for a, b in pairwise(dims))


def padded_if_short(node: Node, wanted: Remainder) -> Remainder | Padded:
    """With padding instead, where there are no two elements for each part."""
    extents = reduced_extents(node)
    if assume_at_most(2, prod(extents) // wanted.count):
        return wanted
    longer = (place for place, extent in enumerate(extents) if not is_known_equal(extent, 1))
    return Padded(next(longer, 0), wanted.count, wanted.multiple_of > 0)


def split_with_remainder(node: Node, wanted: Remainder, builder: GraphBuilder) -> FirstStep:
    """Record ``sum(sum(reshape(x[:whole])) + pad(x)[whole : whole + parts])``.

    The padding is with the neutral element, zeros for moments, and as long as there are parts. So
    what it is behind may have any length, at sizes that vary too. Several dims are merged before.
    """
    call = as_call(node)
    form, (dim, *others), operand = call.op.form, call.dims(), call.value("arg")
    wide = compute_dtype(operand.dtype)
    source = operand if wide is operand.dtype else builder.call("cast", operand, wide)
    if others:
        before, behind = source.tensor.sizes[:dim], source.tensor.sizes[others[-1] + 1 :]
        source = builder.call("reshape", source, [*before, prod(reduced_extents(node)), *behind])
    sizes, parts = list(source.tensor.sizes), wanted.count
    whole = sizes[dim] // parts * parts

    def between(value: Value, first: int, end: int) -> Value:
        starts = [first if d == dim else 0 for d in range(len(sizes))]
        ends = [end if d == dim else size for d, size in enumerate(sizes)]
        # As ``builder.call``, which would guard that whole dims are not cut, or that they are.
        call = bind(registry.get("slice"), (value, starts, ends, [1] * len(sizes), True), {})
        made: Value = builder.append(call)
        return made

    main = between(source, 0, whole)
    cut = cut_dims(main.tensor.sizes, SplitFactors({dim: parts}, wanted.multiple_of > 0))
    main = builder.call("reshape", main, cut.sizes)
    of_parts = builder.call(node.op, main, cut.first)
    widths = [0, 0] * (len(sizes) - 1 - dim) + [0, parts]
    kind = form.identity if isinstance(form, Reduction) else "zero"
    longer = builder.call("pad", source, widths, neutral(kind, source.dtype).value)
    rest = between(longer, whole, whole + parts)
    if not isinstance(form, Reduction):
        combine_moments_and_rest(node, of_parts, rest, builder)
        return FirstStep(main, of_parts[0], cut)
    partial: Value = of_parts
    if rest.dtype is not partial.dtype:
        rest = builder.call("cast", rest, partial.dtype)
    both = builder.call(form.pairwise, partial, rest)
    define_result(node, builder.call(node.op, both, cut.second), builder)
    return FirstStep(main, partial, cut)
