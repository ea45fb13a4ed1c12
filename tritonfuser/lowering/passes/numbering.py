"""Numbers of values in the order of the printed definition, which may be those of another one.

A printed definition numbers its values anew where it is recorded again. In the order of its lines
both have the same values, so a list of names in that order says which is which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

from ...errors import ParamsError
from ...ir import Fusion, Node, Output, Value
from ...ir_graph import depth_first
from ...ops import registry
from ...ops.builder import op_of
from .substitution import Substitution

_RUN = re.compile(r"(tv|c)(\d{1,6})(?:\.\.(\d{1,6}))?")
_FORM = "expected names of all values as fd.schedule(inputs) has them, such as 'tv0..4 tv7 c0'"


def names_in_order(fusion: Fusion) -> str:
    """The names of inputs and results in the order of the printed definition, tensors first.

    Runs of numbers are written by their ends: ``tv0..2 tv5 tv3 c0``.
    """
    tensors, scalars = _in_order(fusion, depth_first(fusion))
    pairs = (("tv", tensors), ("c", scalars))
    return " ".join(run for kind, values in pairs for run in _runs(kind, values))


def with_names(fusion: Fusion, names: str) -> Fusion:
    """The fusion with its values named so, in the order of the printed definition.

    It is the fusion itself without names, and where it has other numbers of values: it is no print
    of what had these names.

    Raises
    ------
    ParamsError
        The names are not as ``names_in_order`` writes them.
    """
    if not names or names == names_in_order(fusion):
        return fusion
    nodes = depth_first(fusion)
    values = _in_order(fusion, nodes)
    numbers = _numbers(names, "tv"), _numbers(names, "c")
    if [*map(len, numbers)] != [*map(len, values)]:
        return fusion
    return _renumbered(fusion, nodes, values, numbers)


def in_order(fusion: Fusion) -> Fusion:
    """The fusion as its printed definition records it: what has a number is numbered in order.

    It is the same for a definition and for its print that is recorded again.
    """
    nodes = [_as_printed(node) for node in depth_first(fusion)]
    values = _in_order(fusion, nodes)
    return _renumbered(fusion, nodes, values, [range(len(kind)) for kind in values])


def _as_printed(node: Node) -> Node:
    """The node as the op that it is printed as, see ``Op.printed``."""
    op = op_of(node)
    if op.printed is None:
        return node
    given = dict(node.attrs)
    static = (p.name for p in registry.get(op.printed).params if not p.kind.is_operand)
    attrs = tuple((name, given.get(name, node.out.dtype)) for name in static)
    return Node(op.printed, node.args, attrs, node.outs, node.loc)


def _in_order(fusion: Fusion, nodes: Sequence[Node]) -> tuple[list[Value], list[Value]]:
    """The tensors and the scalars: inputs, then results."""
    values = [*fusion.inputs, *(out for node in nodes for out in node.outs)]
    return [v for v in values if v.is_tensor], [v for v in values if not v.is_tensor]


def _renumbered(
    fusion: Fusion,
    nodes: Sequence[Node],
    values: Sequence[Sequence[Value]],
    numbers: Sequence[Sequence[int]],
) -> Fusion:
    known = {
        value: Value(number, value.type)
        for kind, found in zip(values, numbers, strict=True)
        for value, number in zip(kind, found, strict=True)
    }
    substitution = Substitution(known)
    made = (
        Node(n.op, tuple(map(substitution.arg, n.args)), n.attrs, outs, n.loc)
        for n in nodes
        for outs in [tuple(known[out] for out in n.outs)]
    )
    outputs = (
        Output(known[o.value], None if o.alias_of is None else known[o.alias_of], o.hidden)
        for o in fusion.outputs
    )
    return Fusion(tuple(known[v] for v in fusion.inputs), tuple(made), tuple(outputs))


def _runs(kind: str, values: Sequence[Value]) -> Iterator[str]:
    place = 0
    while place < len(values):
        first = values[place].index
        rest = zip(values[place:], count(first), strict=False)
        length = next((n for n, (v, i) in enumerate(rest) if v.index != i), len(values) - place)
        yield f"{kind}{first}" if length == 1 else f"{kind}{first}..{first + length - 1}"
        place += length


def _numbers(names: str, kind: str) -> list[int]:
    """The numbers of one kind.

    Raises
    ------
    ParamsError
        A name is none, or comes twice.
    """
    found: list[int] = []
    for name in names.split():
        run = _RUN.fullmatch(name)
        if run is None:
            raise ParamsError(f"values: {_FORM}, got {name!r}")
        if run[1] == kind:
            found += range(int(run[2]), int(run[3] or run[2]) + 1)
    if len(set(found)) < len(found):
        raise ParamsError(f"values: {_FORM}, got a name twice in {names!r}")
    return found
