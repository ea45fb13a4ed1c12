"""``recomputation_of``: what a kernel computes and loads to compute a value itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...ir import Fusion, Node, Value
from ..access.backward_slice import BackwardSlice


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
    """The nodes and the loads of a value's backward slice.

    Parameters
    ----------
    is_loaded : callable
        Whether the kernel loads a value, from it and its node.
    """
    found = Recomputation([], [])
    for reached, node in BackwardSlice(fusion, value, is_loaded):
        if node is None:
            found.loaded.append(reached)
        else:
            found.nodes.append(node)
    return found
