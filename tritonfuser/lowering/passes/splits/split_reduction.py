"""Fusion in, an equal Fusion with chosen reductions in two steps out.

``sum(t)`` -> ``sum(sum(reshape(t)))``. The first step computes partial results in more programs;
the second, which is small, combines them. Later passes see two ordinary reductions. Scans and
matrix products are split too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....dtypes import compute_dtype
from ....ir import Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.forms import Contraction, Moments, Reduction, Scan
from ....ops.mma import product_bias, product_sizes
from ....ops.table import Call
from ..constant_folding import neutral
from ..redundant_nodes import eliminate_dead_code
from ..substitution import next_free, renumber
from .combine_partials import (
    FirstStep,
    combine_moments,
    combine_padded_moments,
    define_result,
    split_exponentials,
)
from .parts import AlongMaximum, Interleaved, Padded, Parts, Remainder
from .remainders import padded_if_short, split_with_remainder
from .split_factors import CutDims, SplitFactors, cut_dims, split_factors
from .split_scan import split_scan


class TwoSteps(NamedTuple):
    """A fusion with reductions in two steps.

    Attributes
    ----------
    fusion : Fusion
        The fusion.
    partial : frozenset of Value
        The results of the first steps.
    """

    fusion: Fusion
    partial: frozenset[Value] = frozenset()


def split_reductions(fusion: Fusion, parts: Mapping[Value, Parts]) -> TwoSteps:
    """Split reductions, scans and matrix products into partial ones.

    Parameters
    ----------
    parts : mapping
        For the first result of each node to split, how. A node whose extents do not divide stays.
    """
    builder = GraphBuilder(*next_free(fusion))
    first_steps: dict[Value, FirstStep] = {}
    for node in fusion.nodes:
        builder.loc = node.loc
        if not _split_node(node, parts.get(node.out, 1), builder, first_steps):
            builder.nodes.append(node)
    made = eliminate_dead_code(Fusion(fusion.inputs, tuple(builder.nodes), fusion.outputs))
    return TwoSteps(made, frozenset(step.partial for step in first_steps.values()))


def _split_node(
    node: Node, wanted: Parts, builder: GraphBuilder, first_steps: dict[Value, FirstStep]
) -> bool:
    """Record both steps of a node; False where it is not to be split, or cannot be.

    Parameters
    ----------
    first_steps : dict of Value to FirstStep
        The first steps so far, by the first result of the node. That of this node is added.
    """
    if wanted == 1:
        return False
    if isinstance(as_call(node).op.form, Contraction):
        assert isinstance(wanted, int)
        _split_product(node, wanted, builder)
        return True
    if isinstance(as_call(node).op.form, Scan):
        assert isinstance(wanted, int)
        split_scan(node, wanted, builder)
        return True
    if isinstance(wanted, AlongMaximum):
        first = first_steps.get(wanted.maximum)
        step = None if first is None else split_exponentials(node, wanted.maximum, first, builder)
    else:
        step = _split_reduction(node, wanted, builder)
    if step is not None:
        first_steps[node.out] = step
    return step is not None


def _split_reduction(
    node: Node,
    wanted: int | tuple[int, ...] | Interleaved | Padded | Remainder,
    builder: GraphBuilder,
) -> FirstStep | None:
    """Record both steps of a reduction; None where its extents have no such parts."""
    if isinstance(wanted, Remainder):
        wanted = padded_if_short(node, wanted)
    if isinstance(wanted, Remainder):
        return split_with_remainder(node, wanted, builder)
    split = split_factors(node, wanted)
    if split is None:
        return None
    source, cut = _cut_operand(node, split, builder)
    if isinstance(as_call(node).op.form, Moments):
        if split.padded is None:
            return combine_moments(node, source, cut, builder)
        return combine_padded_moments(node, source, split, cut, builder)
    partial = builder.call(node.op, source, cut.first)
    define_result(node, builder.call(node.op, partial, cut.second), builder)
    return FirstStep(source, partial, cut)


def _cut_operand(node: Node, split: SplitFactors, builder: GraphBuilder) -> tuple[Value, CutDims]:
    """The operand in the dtype of the arithmetic, padded and reshaped for both steps."""
    call = as_call(node)
    operand = call.value("arg")
    wide = compute_dtype(operand.dtype)
    source = operand if wide is operand.dtype else builder.call("cast", operand, wide)
    if split.padded is not None:
        source = _padded(source, call, *split.padded, builder)
    cut = cut_dims(source.tensor.sizes, split)
    if len(cut.sizes) != operand.tensor.rank:
        source = builder.call("reshape", source, cut.sizes)
    return source, cut


def _padded(source: Value, call: Call, dim: int, size: int, builder: GraphBuilder) -> Value:
    """The operand with one dim padded to ``size``: by the neutral element, by zeros for moments."""
    form, sizes = call.op.form, source.tensor.sizes
    kind = form.identity if isinstance(form, Reduction) else "zero"
    widths = [0, 0] * (len(sizes) - 1 - dim) + [0, size - sizes[dim]]
    made: Value = builder.call("pad", source, widths, neutral(kind, source.dtype).value)
    return made


def _split_product(node: Node, parts: int, builder: GraphBuilder) -> None:
    """``[M, K] x [K, N]`` as a sum over a batch of products of equal parts of K."""
    call = as_call(node)
    _, rows, columns, inner = product_sizes(call)
    left = builder.call("reshape", call.value("arg1"), [rows, parts, inner // parts])
    right = builder.call("reshape", call.value("arg2"), [parts, inner // parts, columns])
    left = builder.call("permute", left, [1, 0, 2])
    total = builder.call("sum", builder.call("mma", left, right), [0])
    bias = product_bias(call)
    if bias is not None:
        total = builder.call("add", total, bias)
    renumber(builder, {builder.call("cast", total, call.attrs["dtype"]): node.out})
