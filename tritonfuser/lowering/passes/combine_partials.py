"""Results of parts joined: the second step of reductions that need more than their own op again."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch

from ...dtypes import DataType
from ...ir import Node, Value
from ...ops.builder import GraphBuilder
from ...symbolic.sizes import is_size
from .simplify import Substitution


@dataclass(frozen=True, slots=True)
class First:
    """The first step of a reduction: of what, its results, and the dims reduced first and last."""

    source: Value
    result: Value
    inner: list[int]
    last: list[int]


def name_as(node: Node, result: Value, builder: GraphBuilder, mark: int) -> None:
    """Give a result the node's dtype and name."""
    if result.dtype is not node.out.dtype:
        result = builder.call("cast", result, node.out.dtype)
    rename(builder, mark, {result: node.out})


def exponentials_along(node: Node, top: Value, first: First, builder: GraphBuilder) -> None:
    """A sum of exponentials below a maximum, by parts below theirs.

    ``sum(exp(x - top))`` -> ``sum(sum(exp(part - part_top)) * exp(part_top - top))``, as Milakov
    and Gimelshein join them (Online normalizer calculation for softmax, 2018). A part of -inf alone
    has exponentials of -inf less a number: they are 0.
    """
    builder.loc = node.loc
    mark = len(builder.nodes)

    def back(value: Value, dims: list[int], rank: int) -> Value:
        made: Value = builder.call("broadcast", value, [place in dims for place in range(rank)])
        return made

    source, found = first.source, first.result
    rank = source.tensor.rank
    wide = torch.float64 if found.dtype is DataType.Double else torch.float32
    lowest = torch.finfo(wide).min
    base = back(builder.call("maximum", found, lowest), first.inner, rank)
    powers = builder.call("exp_below", builder.call("sub", source, base))
    part = builder.call("sum", powers, first.inner)
    whole = back(top, first.last, found.tensor.rank)
    scale = builder.call("exp_below", builder.call("sub", found, whole))
    total = builder.call("sum", builder.call("mul", part, scale), first.last)
    name_as(node, total, builder, mark)


def moments(
    node: Node, source: Value, inner: list[int], last: list[int], builder: GraphBuilder
) -> dict[Value, Value]:
    """Join equal-sized parts: ``M2 = sum(M2_i) + n_i * sum((mean_i - mean)**2)``.

    Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample
    variances, 1979.
    """
    mean, m2, _ = builder.call("welford", source, inner)
    count = prod(source.tensor.sizes[d] for d in inner)
    of_means, spread, number = builder.call("welford", mean, last)
    within = builder.call("sum", m2, last)
    total = builder.call(
        "add", within, builder.call("mul", spread, count if is_size(count) else float(count))
    )
    whole = builder.call("mul", number, count)
    return {of_means: node.outs[0], total: node.outs[1], whole: node.outs[2]}


def rename(builder: GraphBuilder, mark: int, names: dict[Value, Value]) -> None:
    """Give values recorded since ``mark`` other numbers, in definitions and uses."""
    swap = Substitution()
    for old, new in names.items():
        swap.set(old, new)
    for place, node in enumerate(builder.nodes[mark:], mark):
        outs = tuple(names.get(o, o) for o in node.outs)
        node = swap.node(node)
        builder.nodes[place] = Node(node.op, node.args, node.attrs, outs, node.loc)
