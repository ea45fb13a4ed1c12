"""An estimate of the instructions of a node that a kernel recomputes where it is read.

``instructions.py`` has the least that no code can do without, by kind, for bounds and the cost
model. These are for decisions before there are kernels: what is loaded, and what computed again.
"""

from __future__ import annotations

from ...ir import Const, Node, Value
from ...ops.builder import op_of
from ...ops.forms import Factory, Pointwise, Random
from ...ops.table import View
from ...symbolic.sizes import hint

LOAD_INSTRUCTIONS = 3
"""Instructions of an element that is loaded: its share of a vector's address and load, the cast,
and the digits of its index."""

SPECIAL_CASE = 3
"""Instructions where the last operand is a constant that an op has a cheaper expression for."""

MOVED = 2
"""Instructions of an element of a view that chooses among operands, or shifts them."""

POSITION = 2
"""Instructions of an element that is computed from its position."""

DRAWN = 12
"""Instructions of a random number, of which four share a Philox counter."""

WIDE = 2
"""An op on eight bytes takes at least as many instructions on four."""


def is_fused(node: Node) -> bool:
    """Whether every kernel that needs the node computes it."""
    return isinstance(op_of(node).form, Pointwise | View | Factory | Random)


def is_shift(node: Node) -> bool:
    """Whether a view has elements at another index than its operand, or of several operands."""
    form = op_of(node).form
    if not isinstance(form, View):
        return False
    operand = node.args[0]
    if form.alias is None or not isinstance(operand, Value):
        return True
    return hint(node.out.tensor.numel) < hint(operand.tensor.numel)


def rough_instructions(node: Node) -> int:
    """Instructions of one element where a kernel computes it, about."""
    form = op_of(node).form
    if isinstance(form, View):
        return MOVED if is_shift(node) else 0
    if isinstance(form, Factory):
        return POSITION
    if isinstance(form, Random):
        return DRAWN
    assert isinstance(form, Pointwise)
    last = node.args[-1] if node.args else None
    if isinstance(last, Const) and any(last.value == number for number, _ in form.constants):
        return SPECIAL_CASE
    widest = max(v.dtype.info.bytes for v in (node.out, *node.operands()))
    return form.instructions * (WIDE if widest > 4 else 1)


def load_instructions(item_bytes: int) -> int:
    """Instructions that a load of an element from the L2 cache takes the time of.

    A multiprocessor loads 64 bytes a cycle from it and starts 128 instructions, so a byte takes as
    long as two.
    """
    return LOAD_INSTRUCTIONS + 2 * item_bytes
