"""Reductions in two steps, as graph rewriting: ``sum(t)`` -> ``sum(sum(reshape(t)))``.

The first step has more rows and fills the device, or is what a kernel that walks over rows keeps
a partial result of, or has the rows of a kernel that reads the same data; the second is small. Both
are ordinary reductions for all later passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd, prod

from ...dtypes import compute_dtype
from ...heuristics.integers import divisors
from ...ir import Fusion, Node, Value
from ...ops.builder import GraphBuilder, as_call
from ...ops.mma import product_bias, product_sizes
from ...ops.table import Call, Contraction, Moments, Reduction
from ...symbolic.sizes import hint, is_size, known_divisor
from .combine_partials import First, exponentials_along, moments, name_as, rename
from .constant_folding import neutral
from .simplify import drop_dead, next_free

POOR = 4
"""A split into fewer than this part of the parts that are wanted is hardly one."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """About ``count`` partial results, of every so many-th element each; a multiple of ``of``."""

    count: int
    of: int


@dataclass(frozen=True, slots=True)
class WithMaximum:
    """As the maximum ``top`` is: this is the sum of exponentials below it."""

    top: Value


Parts = int | tuple[int, ...] | Interleaved | WithMaximum
"""About how many partial results a reduction is split into, of neighbours or in turn, or the factor
of each reduced dim that the second step reduces; or how another one is."""


def split_reductions(fusion: Fusion, parts: Mapping[Value, Parts]) -> Fusion:
    """Split each reduction named by its first result into partial ones."""
    builder = GraphBuilder(*next_free(fusion))
    firsts: dict[Value, First] = {}
    for node in fusion.nodes:
        wanted = parts.get(node.out, 1)
        if isinstance(wanted, WithMaximum):
            done = wanted.top in firsts
            if done:
                exponentials_along(node, wanted.top, firsts[wanted.top], builder)
        else:
            done = wanted != 1 and _two_steps(node, wanted, builder, firsts)
        if not done:
            builder.nodes.append(node)
    return drop_dead(Fusion(fusion.inputs, tuple(builder.nodes), fusion.outputs))


def reduced_extents(node: Node) -> tuple[int, ...]:
    sizes = as_call(node).value("arg").tensor.sizes
    return tuple(sizes[d] for d in as_call(node).dims())


def choose_split(extents: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """Outer factor of each reduced extent, their product near ``parts`` and at most it.

    ``(4, 512), 128 -> (4, 32)``. All 1 where no divisor gives two parts, or all would be outer.
    """
    outer: list[int] = []
    left = parts
    for size in extents:
        outer.append(max(d for d in divisors(known_divisor(size)) if d <= left))
        left //= outer[-1]
    return tuple(outer) if prod(outer) < prod(extents) else (1,) * len(extents)


def interleaved(extents: tuple[int, ...], wanted: Interleaved) -> tuple[int, ...]:
    """As ``choose_split`` for parts in turn: from the innermost extent on.

    ``(4, 510), Interleaved(128, 2) -> (1, 102)``.
    """
    found: list[int] = []
    left, of = wanted.count, wanted.of
    for size in reversed(extents):
        fitting = [d for d in divisors(known_divisor(size)) if d <= left]
        found.append(max(fitting, key=lambda d: (gcd(d, of), d)))
        left, of = left // found[-1], of // gcd(found[-1], of)
    return tuple(reversed(found)) if prod(found) < prod(extents) else (1,) * len(extents)


def splits_well(extents: tuple[int, ...], parts: int) -> bool:
    """Whether reduced extents have divisors that make about as many parts as are wanted."""
    return POOR * prod(choose_split(extents, parts)) >= parts


def _two_steps(
    node: Node,
    wanted: int | tuple[int, ...] | Interleaved,
    builder: GraphBuilder,
    firsts: dict[Value, First],
) -> bool:
    """Record the partial and the final reduction, which keeps the node's values, if it can be."""
    call = as_call(node)
    builder.loc = node.loc
    mark = len(builder.nodes)
    if isinstance(call.op.form, Contraction):
        assert isinstance(wanted, int)
        rename(builder, mark, {_partial_products(call, wanted, builder): node.out})
        return True
    operand = call.value("arg")
    dims = call.dims()
    wide = compute_dtype(operand.dtype)
    source = operand if wide is operand.dtype else builder.call("cast", operand, wide)
    if isinstance(wanted, tuple):
        split = wanted
    elif isinstance(wanted, Interleaved) and prod(interleaved(reduced_extents(node), wanted)) > 1:
        split = interleaved(reduced_extents(node), wanted)
    else:
        wanted = wanted.count if isinstance(wanted, Interleaved) else wanted
        source, split = _split(source, node, wanted, builder)
        if prod(split) < 2:
            del builder.nodes[mark:]
            return False
    factors = dict(zip(dims, split, strict=True))
    sizes, inner, outer = _cut(source.tensor.sizes, factors, isinstance(wanted, Interleaved))
    if len(sizes) != operand.tensor.rank:
        source = builder.call("reshape", source, sizes)
    last = [d - sum(i < d for i in inner) for d in outer]
    if isinstance(call.op.form, Moments):
        rename(builder, mark, moments(node, source, inner, last, builder))
        return True
    first = First(source, builder.call(node.op, source, inner), inner, last)
    firsts[node.out] = first
    name_as(node, builder.call(node.op, first.result, last), builder, mark)
    return True


def _split(
    source: Value, node: Node, parts: int, builder: GraphBuilder
) -> tuple[Value, tuple[int, ...]]:
    """The operand, filled up where that helps, and the outer factor of each reduced extent."""
    form = as_call(node).op.form
    extents = reduced_extents(node)
    if isinstance(form, Reduction) and not splits_well(extents, parts):
        return _padded(source, as_call(node).dims(), parts, form, builder)
    return source, choose_split(extents, parts)


def _cut(
    sizes: tuple[int, ...], factors: dict[int, int], interleaved: bool
) -> tuple[list[int], list[int], list[int]]:
    """The shape with each named dim cut into (factor, rest), and which dims are rests, factors.

    ``(8, 5), {0: 4} -> [4, 2, 5], [1], [0]``; in turn it is ``[2, 4, 5], [0], [1]``.
    """
    cut: list[int] = []
    inner: list[int] = []
    outer: list[int] = []
    for dim, size in enumerate(sizes):
        factor = factors.get(dim)
        if factor is None:
            cut.append(size)
        elif factor in (1, size):
            (inner if factor == 1 else outer).append(len(cut))
            cut.append(size)
        else:
            outer.append(len(cut) + interleaved)
            inner.append(len(cut) + (not interleaved))
            cut += [size // factor, factor] if interleaved else [factor, size // factor]
    return cut, inner, outer


def _padded(
    source: Value, dims: tuple[int, ...], parts: int, form: Reduction, builder: GraphBuilder
) -> tuple[Value, tuple[int, ...]]:
    """The longest reduced dim filled up to a multiple of ``parts``, with what changes nothing.

    A prime number of elements has no divisors: ``[1009], 4 -> [1012]``, four parts of 253.
    """
    sizes = source.tensor.sizes
    longest = max(dims, key=lambda d: hint(sizes[d]))
    count = max(min(parts, hint(sizes[longest]) // 2), 1)
    part = -(-sizes[longest] // count)
    if not is_size(part):
        count = -(-sizes[longest] // part)
    widths = [0, 0] * (len(sizes) - 1 - longest) + [0, count * part - sizes[longest]]
    fill = neutral(form.identity, source.dtype).value
    padded = builder.call("pad", source, widths, fill)
    return padded, tuple(count if d == longest else 1 for d in dims)


def _partial_products(call: Call, parts: int, builder: GraphBuilder) -> Value:
    """``[M, K] x [K, N]`` as the sum of products of equal parts of K, a batch of them."""
    _, rows, columns, inner = product_sizes(call)
    left = builder.call("reshape", call.value("arg1"), [rows, parts, inner // parts])
    right = builder.call("reshape", call.value("arg2"), [parts, inner // parts, columns])
    left = builder.call("permute", left, [1, 0, 2])
    total = builder.call("sum", builder.call("mma", left, right), [0])
    bias = product_bias(call)
    if bias is not None:
        total = builder.call("add", total, bias)
    result = builder.call("cast", total, call.attrs["dtype"])
    assert isinstance(result, Value)
    return result
