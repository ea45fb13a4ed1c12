"""Fusion in, an equal Fusion with choices by an index as concatenations out.

``where(iota(8) < 3, x, y)`` -> ``cat([slice(x, 0, 3), slice(y, 3, 8)])``: no element of ``x`` is
computed where one of ``y`` is wanted, and each part can be stored by itself.
"""

from __future__ import annotations

from typing import NamedTuple

from ....dtypes import DataType
from ....ir import Arg, Const, Fusion, Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.forms import Pointwise
from ....ops.table import View
from ....shapes.broadcasting import broadcast_index
from ....shapes.index_map import Index
from ....symbolic.index_expr import Affine, Axis, digit
from ....symbolic.sizes import is_size
from ...access.node_kinds import is_reducer
from ...access.reads import Read, sources_of
from ..rewriting import SWAPPED_COMPARISONS, rewritten

_INTEGERS = frozenset({DataType.Int, DataType.Int32})
"""The types whose iotas are compared."""

_LARGEST = 2**31 - 1
"""The largest number that all types of iotas hold."""


class _Choice(NamedTuple):
    """A condition that holds on one side of a position.

    Attributes
    ----------
    dim : int
        The dim whose index is compared.
    point : int
        The first position of the second part.
    holds_first : bool
        Whether it holds in the first part.
    """

    dim: int
    point: int
    holds_first: bool


def concatenate_choices(fusion: Fusion) -> Fusion:
    """Choices between tensors by an index along one dim become concatenations.

    Those whose results are reduced stay: a concatenated dim has no axis in common with the tensors.
    """
    reduced = _reduced_values(fusion)

    def rewrite(node: Node, builder: GraphBuilder) -> Value | None:
        if node.op != "where" or node.out in reduced or not node.out.is_tensor:
            return None
        choice = _choice_of(fusion, node)
        if choice is None:
            return None
        made: Value = builder.call("cat", _parts(node, choice, builder), choice.dim)
        return made

    return rewritten(fusion, rewrite)


def _parts(node: Node, choice: _Choice, builder: GraphBuilder) -> list[Value]:
    """The slice of each side of a ``where`` that its result has, in order along the dim."""
    sides = node.args[1:] if choice.holds_first else node.args[:0:-1]
    sizes = list(node.out.tensor.sizes)
    ends = ((0, choice.point), (choice.point, sizes[choice.dim]))
    parts = []
    for side, (start, stop) in zip(sides, ends, strict=True):
        starts, stops = [0] * len(sizes), list(sizes)
        starts[choice.dim], stops[choice.dim] = start, stop
        whole = _as_whole(builder, side, sizes, node.out.dtype)
        parts.append(builder.call("slice", whole, starts, stops, [1] * len(sizes)))
    return parts


def _as_whole(builder: GraphBuilder, side: Arg, sizes: list[int], dtype: DataType) -> Value:
    """One side of a choice as a tensor of the result's shape and dtype."""
    if not (isinstance(side, Value) and side.is_tensor):
        made: Value = builder.call("full", sizes, side, dtype)
        return made
    value: Value = side if side.dtype is dtype else builder.call("cast", side, dtype)
    missing = len(sizes) - value.tensor.rank
    if missing:
        flags = [True] * missing + [False] * value.tensor.rank
        value = builder.call("broadcast", value, flags)
    same = value.tensor.sizes == tuple(sizes)
    return value if same else builder.call("expand", value, sizes)


def _reduced_values(fusion: Fusion) -> set[Value]:
    """The values that reductions and scans are computed from."""
    found: set[Value] = set()
    for node in reversed(fusion.nodes):
        if is_reducer(node) or not found.isdisjoint(node.outs):
            found.update(node.operands())
    return found


def _choice_of(fusion: Fusion, node: Node) -> _Choice | None:
    """How the condition of a ``where`` divides a dim of its result in two; None if it does not."""
    sizes, condition = node.out.tensor.sizes, node.args[0]
    if any(is_size(n) for n in sizes) or not isinstance(condition, Value):
        return None
    if not condition.is_tensor:
        return None
    axes = [Axis(f"d{place}", size) for place, size in enumerate(sizes)]
    index = broadcast_index(tuple(map(digit, axes)), condition.tensor)
    found = _origin(fusion, Read(condition, index))
    if found is None or found[0].op not in SWAPPED_COMPARISONS:
        return None
    compare, at = found
    return _divided(fusion, compare, at, axes)


def _divided(fusion: Fusion, compare: Node, at: Index, axes: list[Axis]) -> _Choice | None:
    """Where the comparison of an iota with a constant begins or ends to hold."""
    first, second = compare.args[:2]
    orders = ((compare.op, first, second), (SWAPPED_COMPARISONS[compare.op], second, first))
    for op, value, limit in orders:
        if not isinstance(value, Value) or not value.is_tensor or _integer(limit) is None:
            continue
        found = _origin(fusion, Read(value, broadcast_index(at, value.tensor)))
        if found is None or found[0].op != "iota":
            return None
        iota, (position,) = found
        start, step, end = (_integer(arg) for arg in (*iota.args[1:3], limit))
        rest = Affine((), position.const)
        dim = next(
            (n for n, a in enumerate(axes) if a.extent > 1 and position - digit(a) == rest), None
        )
        if start is None or step is None or end is None or step < 1 or dim is None:
            return None
        if start + step * axes[dim].extent > _LARGEST or iota.out.dtype not in _INTEGERS:
            return None
        below = end + (op in ("le", "gt"))  # start + step * i < below
        point = -(-(below - start) // step) - position.const
        if not 0 < point < axes[dim].extent:
            return None
        return _Choice(dim, point, op in ("lt", "le"))
    return None


def _integer(arg: Arg) -> int | None:
    """A constant integer that does not vary, and that every type of iotas holds."""
    if not isinstance(arg, Const) or type(arg.value) is not int:
        return None
    return arg.value if abs(arg.value) <= _LARGEST else None


def _origin(fusion: Fusion, read: Read) -> tuple[Node, Index] | None:
    """The op that computes an element, behind views and casts between integers, and where."""
    while (node := fusion.producers.get(read.value)) is not None:
        form = as_call(node).op.form
        if isinstance(form, View):
            sources = sources_of(node, read)
            if len(sources) != 1 or sources[0].guards or not isinstance(sources[0].operand, Value):
                return None
            read = Read(sources[0].operand, sources[0].index)
        elif isinstance(form, Pointwise) and form.copies and _keeps_integers(node):
            assert isinstance(node.args[0], Value)
            read = Read(node.args[0], read.index)
        else:
            return node, read.index
    return None


def _keeps_integers(node: Node) -> bool:
    """Whether a copy keeps integers of up to ``_LARGEST``."""
    source = node.args[0]
    return isinstance(source, Value) and {source.dtype, node.out.dtype} <= _INTEGERS
