"""The narrowest dtype that holds a value exactly, in which it is materialized.

``permute(cast(x, Float))`` of a BFloat16 ``x`` equals ``cast(permute(x), Float)``, and
``permute(x)`` has half of the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ....dtypes import EIGHT_BIT_FLOATS, DataType
from ....ir import Node, Value
from ....ops.builder import GraphBuilder, as_call
from ....ops.table import View
from ..copy_elimination import is_lossless
from ..rewriting import is_copy
from ..substitution import Substitution


def exact_dtype(value: Value, makers: Mapping[Value, Node]) -> DataType:
    """The narrowest dtype that holds every element of a value exactly, by how it is computed.

    Parameters
    ----------
    makers : mapping of Value to Node
        The nodes that compute values.
    """
    chain = _chain(value, makers)
    return _source(chain[-1]).dtype if chain else value.dtype


def exact_bytes(value: Value, makers: Mapping[Value, Node]) -> int:
    """Bytes of an element in ``exact_dtype``."""
    return exact_dtype(value, makers).info.bytes


def widened_source(value: Value, makers: Mapping[Value, Node]) -> tuple[Value, list[Node]]:
    """(source, views): the narrow value that a value is cast from, and the views between them."""
    chain = _chain(value, makers)
    source = _source(chain[-1]) if chain else value
    return source, [node for node in chain if not is_copy(node)]


def narrowed(value: Value, makers: Mapping[Value, Node], builder: GraphBuilder) -> Value:
    """A value with the same elements in ``exact_dtype``: the views that follow the lossless cast
    are applied to its operand instead."""
    chain = _chain(value, makers)
    if not chain:
        return value
    found = _source(chain[-1])
    for node in reversed(chain[:-1]):
        if not is_copy(node):
            operand = _viewed(node)
            assert operand is not None
            made = builder.new_value(replace(node.out.type, dtype=found.dtype))
            moved = Substitution({operand: found}).node(node)
            builder.nodes.append(replace(moved, outs=(made,)))
            found = made
    return found


def _chain(value: Value, makers: Mapping[Value, Node]) -> list[Node]:
    """The views and lossless casts that a value is computed by, back to the last such cast."""
    found: list[Node] = []
    last = 0
    while (node := makers.get(value)) is not None:
        operand = _widened(node) or _viewed(node)
        if operand is None:
            break
        found.append(node)
        last = len(found) if is_copy(node) else last
        value = operand
    return found[:last]


def _source(node: Node) -> Value:
    """The operand of a cast."""
    found = node.args[0]
    assert isinstance(found, Value)
    return found


def _widened(node: Node) -> Value | None:
    """The operand of a lossless cast; None for other nodes, and for 8-bit floats, which take long
    to convert."""
    source = node.args[0] if is_copy(node) else None
    if not isinstance(source, Value) or not source.is_tensor or source.dtype in EIGHT_BIT_FLOATS:
        return None
    return source if is_lossless(source.dtype, node.out.dtype) else None


def _viewed(node: Node) -> Value | None:
    """The only tensor whose elements a view has; None for other nodes, and for pads."""
    call = as_call(node)
    form = call.op.form
    if not isinstance(form, View) or form.pieces:
        return None
    positions = [call.arg(name) for name in form.indices]
    found = [v for v in node.operands() if v.is_tensor and v not in positions]
    return found[0] if len(found) == 1 and found[0].dtype is node.out.dtype else None
