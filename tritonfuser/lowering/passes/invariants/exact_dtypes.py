"""The narrowest dtype that holds a value exactly, in which it is stored.

``permute(cast(x, Float))`` of a BFloat16 ``x`` is ``cast(permute(x), Float)``, of which
``permute(x)`` takes half of the bytes in memory.
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
    """The narrowest dtype that holds every number of a value, by how it is computed.

    Parameters
    ----------
    makers : mapping of Value to Node
        The nodes that compute values.
    """
    chain = _chain(value, makers)
    return _source(chain[-1]).dtype if chain else value.dtype


def exact_bytes(value: Value, makers: Mapping[Value, Node]) -> int:
    """Bytes of an element of its narrowest equal."""
    return exact_dtype(value, makers).info.bytes


def widened_source(value: Value, makers: Mapping[Value, Node]) -> tuple[Value, list[Node]]:
    """The narrowest equal of a value before the views behind it, and these views."""
    chain = _chain(value, makers)
    source = _source(chain[-1]) if chain else value
    return source, [node for node in chain if not is_copy(node)]


def narrowed(value: Value, makers: Mapping[Value, Node], builder: GraphBuilder) -> Value:
    """The narrowest equal of a value: the views behind a lossless cast, done before it."""
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
    """What a cast is of."""
    found = node.args[0]
    assert isinstance(found, Value)
    return found


def _widened(node: Node) -> Value | None:
    """What a cast to a wider dtype is of; None of other nodes. Eight bits take long to convert."""
    source = node.args[0] if is_copy(node) else None
    if not isinstance(source, Value) or not source.is_tensor or source.dtype in EIGHT_BIT_FLOATS:
        return None
    return source if is_lossless(source.dtype, node.out.dtype) else None


def _viewed(node: Node) -> Value | None:
    """The one tensor that the elements of a view are of; None of other nodes, and of pads."""
    call = as_call(node)
    form = call.op.form
    if not isinstance(form, View) or form.pieces:
        return None
    positions = [call.arg(name) for name in form.indices]
    found = [v for v in node.operands() if v.is_tensor and v not in positions]
    return found[0] if len(found) == 1 and found[0].dtype is node.out.dtype else None
