"""What a kernel does with a node, by the lowering form of its op."""

from __future__ import annotations

from ...ir import Node
from ...ops.builder import op_of
from ...ops.forms import Contraction, Materialize, Moments, Reduction, Scan
from ...ops.table import Library, Scatter


def is_reducer(node: Node) -> bool:
    """Whether a kernel computes a node at one index only: reductions, scans, products."""
    return isinstance(op_of(node).form, Reduction | Moments | Scan | Contraction)


def is_core(node: Node) -> bool:
    """Whether a kernel is built around a node, with what comes before it and after it."""
    return isinstance(op_of(node).form, Contraction)


def is_library(node: Node) -> bool:
    """Whether torch runs a node, between kernels."""
    return isinstance(op_of(node).form, Library)


def is_scatter(node: Node) -> bool:
    """Whether two kernels write a node's result: a copy, and then elements stored into it."""
    return isinstance(op_of(node).form, Scatter)


def is_materialize(node: Node) -> bool:
    """Whether a node stores its operand in memory, for later kernels."""
    return isinstance(op_of(node).form, Materialize)


def ends_kernel(node: Node) -> bool:
    """Whether only later kernels can use a node's results, from memory."""
    return isinstance(op_of(node).form, Library | Scatter | Materialize)
