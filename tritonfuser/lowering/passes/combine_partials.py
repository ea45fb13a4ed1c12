"""The second step of reductions whose partial results take more than the same op once more."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch

from ...dtypes import DataType
from ...ir import Node, Value
from ...ops.builder import GraphBuilder
from ...symbolic.sizes import is_size
from .split_factors import CutDims
from .substitution import renumber


@dataclass(frozen=True, slots=True)
class FirstStep:
    """The first step of a reduction.

    Attributes
    ----------
    source : Value
        The reshaped operand.
    partial : Value
        The partial results.
    cut : CutDims
        Which dims of the source each step reduces.
    """

    source: Value
    partial: Value
    cut: CutDims


def define_result(node: Node, result: Value, builder: GraphBuilder) -> None:
    """Let the last node recorded define a node's result, cast to the result's dtype."""
    if result.dtype is not node.out.dtype:
        result = builder.call("cast", result, node.out.dtype)
    renumber(builder, {result: node.out})


def split_exponentials(
    node: Node, maximum: Value, first: FirstStep, builder: GraphBuilder
) -> FirstStep:
    """Split a sum of exponentials below a maximum, whose first step is ``first``.

    ``sum(exp(x - maximum))`` -> ``sum(sum(exp(part - part_max)) * exp(part_max - maximum))``
    (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018). The maximum of a
    part that holds only -inf is replaced by the lowest number, so its exponentials are 0.
    """

    def insert_dims(value: Value, dims: list[int], rank: int) -> Value:
        made: Value = builder.call("broadcast", value, [place in dims for place in range(rank)])
        return made

    source, part_max, cut = first.source, first.partial, first.cut
    wide = torch.float64 if part_max.dtype is DataType.Double else torch.float32
    lowest = torch.finfo(wide).min
    base = builder.call("maximum", part_max, lowest)
    base = insert_dims(base, cut.first, source.tensor.rank)
    powers = builder.call("exp_below", builder.call("sub", source, base))
    part_sum = builder.call("sum", powers, cut.first)
    whole = insert_dims(maximum, cut.second, part_max.tensor.rank)
    scale = builder.call("exp_below", builder.call("sub", part_max, whole))
    total = builder.call("sum", builder.call("mul", part_sum, scale), cut.second)
    define_result(node, total, builder)
    return FirstStep(powers, part_sum, cut)


def combine_moments(node: Node, source: Value, cut: CutDims, builder: GraphBuilder) -> FirstStep:
    """Record both steps of a Welford reduction over parts of equal size.

    ``M2 = sum(M2_i) + n_i * sum((mean_i - mean)**2)`` (Chan, Golub, LeVeque: Updating formulae
    and a pairwise algorithm for computing sample variances, 1979).
    """
    means, m2, _ = builder.call("welford", source, cut.first)
    count = prod(source.tensor.sizes[d] for d in cut.first)
    mean, spread, parts = builder.call("welford", means, cut.second)
    within = builder.call("sum", m2, cut.second)
    between = builder.call("mul", spread, count if is_size(count) else float(count))
    total = builder.call("add", within, between)
    number = builder.call("mul", parts, count)
    renumber(builder, dict(zip((mean, total, number), node.outs, strict=True)))
    return FirstStep(source, means, cut)
