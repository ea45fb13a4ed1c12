"""Reductions in two steps, as graph rewriting: ``sum(t)`` -> ``sum(sum(reshape(t)))``.

The first step has more rows and fills the device, or is what a kernel that walks over rows keeps
a partial result of; the second is small. Both are ordinary reductions for all later passes.
"""

from __future__ import annotations

from math import prod

from ..dtypes import compute_dtype
from ..ir import Fusion, Node, Value
from ..ops.builder import GraphBuilder, as_call
from ..ops.table import Moments
from .simplify import Substitution, next_free, rebuilt


def rfactor(fusion: Fusion, parts: dict[Value, int]) -> Fusion:
    """Split each reduction named by its first result into about that many partial ones."""
    builder = GraphBuilder(*next_free(fusion))
    swap = Substitution()
    for node in fusion.nodes:
        node = swap.node(node)
        wanted = parts.get(node.out)
        split = None if wanted is None else choose_split(_reduced_extents(node), wanted)
        if split is None:
            builder.nodes.append(node)
        else:
            _two_steps(node, split, builder)
    return rebuilt(fusion, builder.nodes, swap)


def _reduced_extents(node: Node) -> tuple[int, ...]:
    sizes = as_call(node).value("arg").tensor.sizes
    return tuple(sizes[d] for d in as_call(node).dims())


def choose_split(extents: tuple[int, ...], parts: int) -> tuple[int, ...] | None:
    """Outer factor of each reduced extent, their product near ``parts`` and at most it.

    ``(4, 512), 128 -> (4, 32)``. None where no divisor gives at least two parts.
    """
    outer: list[int] = []
    left = parts
    for size in extents:
        factor = max(d for d in divisors(size) if d <= max(left, 1))
        outer.append(factor)
        left = left // factor if factor == size else 1
    return tuple(outer) if prod(outer) > 1 else None


def divisors(n: int) -> list[int]:
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


def _two_steps(node: Node, split: tuple[int, ...], builder: GraphBuilder) -> None:
    """Record the partial and the final reduction; the final one keeps the node's values."""
    call = as_call(node)
    builder.loc = node.loc
    operand = call.value("arg")
    dims = call.dims()
    sizes: list[int] = []
    inner: list[int] = []
    outer: list[int] = []
    factors = dict(zip(dims, split, strict=True))
    place = 0
    for dim, size in enumerate(operand.tensor.sizes):
        factor = factors.get(dim)
        if factor is None:
            sizes.append(size)
        elif factor in (1, size):
            (inner if factor == 1 else outer).append(len(sizes))
            sizes.append(size)
        else:
            outer.append(len(sizes))
            inner.append(len(sizes) + 1)
            sizes += [factor, size // factor]
        place = len(sizes)
    kept_before = {d: d - sum(i < d for i in inner) for d in outer}
    wide = compute_dtype(operand.dtype)
    source = operand if wide is operand.dtype else builder.call("cast", operand, wide)
    if place != operand.tensor.rank:
        source = builder.call("reshape", source, sizes)
    last = [kept_before[d] for d in outer]
    if isinstance(call.op.form, Moments):
        _moments(node, source, inner, last, builder)
        return
    partial = builder.call(node.op, source, inner)
    result = builder.call(node.op, partial, last)
    if result.dtype is not node.out.dtype:
        result = builder.call("cast", result, node.out.dtype)
    _rename_last(builder, node.out)


def _moments(
    node: Node, source: Value, inner: list[int], last: list[int], builder: GraphBuilder
) -> None:
    """Join equal-sized parts: ``M2 = sum(M2_i) + n_i * sum((mean_i - mean)**2)``.

    Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample
    variances, 1979.
    """
    mean, m2, _ = builder.call("welford", source, inner)
    count = float(prod(source.tensor.sizes[d] for d in inner))
    of_means, spread, number = builder.call("welford", mean, last)
    within = builder.call("sum", m2, last)
    total = builder.call("add", within, builder.call("mul", spread, count))
    whole = builder.call("mul", number, int(count))
    _rename(builder, {of_means: node.outs[0], total: node.outs[1], whole: node.outs[2]})


def _rename_last(builder: GraphBuilder, value: Value) -> None:
    _rename(builder, {builder.nodes[-1].out: value})


def _rename(builder: GraphBuilder, names: dict[Value, Value]) -> None:
    """Give the recorded values other numbers, in definitions and uses."""
    swap = Substitution()
    for old, new in names.items():
        swap.set(old, new)
    for place, node in enumerate(builder.nodes):
        outs = tuple(names.get(o, o) for o in node.outs)
        node = swap.node(node)
        builder.nodes[place] = Node(node.op, node.args, node.attrs, outs, node.loc)
