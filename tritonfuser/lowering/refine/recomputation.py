"""``recomputation_of``: what a kernel computes and loads to compute a value itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...ir import Fusion, Node, Value


class Recomputation(NamedTuple):
    """What it takes to compute a value.

    Attributes
    ----------
    nodes : list of Node
        The nodes to compute, each once.
    loaded : list of Value
        The tensors to load, each once.
    """

    nodes: list[Node]
    loaded: list[Value]


def recomputation_of(
    fusion: Fusion, value: Value, is_loaded: Callable[[Value, Node], bool]
) -> Recomputation:
    """Walks from a value back to inputs of the fusion, and to what a kernel loads.

    Parameters
    ----------
    is_loaded : callable
        Whether the kernel loads a value, from it and its node.
    """
    found, seen, stack = Recomputation([], []), {value}, [value]
    while stack:
        value = stack.pop()
        node = fusion.producers.get(value)
        if node is None or is_loaded(value, node):
            found.loaded.append(value)
            continue
        found.nodes.append(node)
        fresh = [v for v in dict.fromkeys(node.operands()) if v.is_tensor and v not in seen]
        seen.update(fresh)
        stack += fresh
    return found
