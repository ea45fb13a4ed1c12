"""The second step of split reductions whose partial results need more than the same op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch

from ....dtypes import DataType
from ....ir import Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....symbolic.sizes import is_size
from ..substitution import renumber
from .parts import reduced_extents
from .split_factors import CutDims, SplitFactors


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
    powers = builder.call("exp_nonpositive", builder.call("sub", source, base))
    part_sum = builder.call("sum", powers, cut.first)
    whole = insert_dims(maximum, cut.second, part_max.tensor.rank)
    scale = builder.call("exp_nonpositive", builder.call("sub", part_max, whole))
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


def combine_moments_and_rest(
    node: Node, first: Sequence[Value], rest: Value, builder: GraphBuilder
) -> None:
    """Record the second step of a Welford reduction over equal parts and the elements behind them.

    Each of those is a part of one element: ``M2 = sum(M2_i + n_i * (mean_i - mean)**2) +
    sum((x_j - mean)**2)``, from the same paper.

    Parameters
    ----------
    first : sequence of Value
        What a Welford reduction of each part gives.
    rest : Value
        The elements behind, and zeros behind those: as many together as there are parts.
    """
    call, rank = builder.call, rest.tensor.rank
    dim, whole = as_call(node).dims()[0], prod(reduced_extents(node))
    parts = rest.tensor.sizes[dim]
    length, count = (n if is_size(n) else float(n) for n in (whole // parts, whole))
    left = whole - whole // parts * parts

    def spread(value: Value) -> Value:
        made: Value = call("broadcast", value, [place == dim for place in range(rank)])
        return made

    inside = call("lt", call("iota", parts), left)
    inside = call("broadcast", inside, [place != dim for place in range(rank)])
    means, m2, _ = first
    totals = call("add", call("mul", means, length), rest)
    mean = call("div", call("sum", totals, [dim]), count)
    between = call("mul", _square(call, call("sub", means, spread(mean))), length)
    alone = _square(call, call("where", inside, call("sub", rest, spread(mean)), 0.0))
    total = call("sum", call("add", call("add", m2, between), alone), [dim])
    elements = call("add", call("cast", inside, node.outs[2].dtype), whole // parts)
    number = call("sum", call("expand", elements, list(means.tensor.sizes)), [dim])
    renumber(builder, dict(zip((mean, total, number), node.outs, strict=True)))


def combine_padded_moments(
    node: Node, source: Value, split: SplitFactors, cut: CutDims, builder: GraphBuilder
) -> FirstStep:
    """Record both steps of a Welford reduction over parts of which the last ones are shorter.

    The first step reads a part twice, so that the second pass leaves out the zeros that it is
    padded with: ``mean_i = sum(x) / n_i``, ``M2_i = sum((x - mean_i)**2)``. All parts together have
    ``M2 = sum(M2_i + n_i * (mean_i - mean)**2)``, from the same paper.
    """
    call, rank = builder.call, source.tensor.rank
    extents = reduced_extents(node)
    whole = prod(extents)
    count = whole if is_size(whole) else float(whole)

    inside, elements = _parts_of_padded(node, source, split, cut, builder)
    lengths = call("cast", elements, source.dtype)
    totals = call("sum", source, cut.first)
    means = call("div", totals, call("maximum", lengths, 1.0))
    spread = [place in cut.first for place in range(rank)]
    distance = call("sub", source, call("broadcast", means, spread))
    m2 = call("sum", _square(call, call("where", inside, distance, 0.0)), cut.first)
    mean = call("div", call("sum", totals, cut.second), count)
    spread = [place in cut.second for place in range(rank - len(cut.first))]
    shift = call("sub", means, call("broadcast", mean, spread))
    between = call("mul", lengths, _square(call, shift))
    total = call("sum", call("add", m2, between), cut.second)
    number = call("sum", call("expand", elements, list(totals.tensor.sizes)), cut.second)
    renumber(builder, dict(zip((mean, total, number), node.outs, strict=True)))
    return FirstStep(source, totals, cut)


def _parts_of_padded(
    node: Node, source: Value, split: SplitFactors, cut: CutDims, builder: GraphBuilder
) -> tuple[Value, Value]:
    """Which elements of ``source`` are no padding, and how many each part has of those."""
    assert split.padded is not None
    call, rank, (dim, size) = builder.call, source.tensor.rank, split.padded
    sizes = as_call(node).value("arg").tensor.sizes
    extent, parts = sizes[dim], split.factors[dim]
    others = prod(sizes[d] // split.factors[d] for d in as_call(node).dims() if d != dim)

    def along(value: Value, dims: range, ndim: int) -> Value:
        made: Value = call("broadcast", value, [place not in dims for place in range(ndim)])
        return made

    place = call("reshape", call("iota", size), list(source.tensor.sizes[dim : dim + 2]))
    inside = along(call("lt", place, extent), range(dim, dim + 2), rank)
    part = call("iota", parts)
    if split.interleaved:
        # Part ``i`` of ``n`` has the elements ``i, i + n, ...``.
        rest = call("add", call("neg", part), extent + parts - 1)
        length = call("div", call("maximum", rest, 0), parts)
    else:
        rest = call("add", call("neg", call("mul", part, size // parts)), extent)
        length = call("minimum", call("maximum", rest, 0), size // parts)
    length = call("mul", length, others)
    at = dim + split.interleaved - sum(d < dim + split.interleaved for d in cut.first)
    return inside, along(length, range(at, at + 1), rank - len(cut.first))


def _square(call: Callable[..., Value], value: Value) -> Value:
    return call("mul", value, value)
