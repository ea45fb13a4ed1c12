"""The connected components of a fusion between tensors in memory, whose ops may share kernels.

An op that no kernel computes and a reduction separate components.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....ir import Fusion, Node, Value
from ....symbolic.sizes import hint
from ...access.node_kinds import is_reducer
from ...access.rough_instructions import (
    LOAD_INSTRUCTIONS,
    is_fused,
    load_instructions,
    rough_instructions,
)
from .counts import Computed


@dataclass
class Component:
    """A connected component of the elementwise ops and views of a fusion.

    Attributes
    ----------
    nodes : list of Node
        In recording order.
    loaded : dict
        The tensors that they read from memory, in order.
    stored : list of Value
        Their results that must be in memory.
    """

    nodes: list[Node] = field(default_factory=list)
    loaded: dict[Value, None] = field(default_factory=dict)
    stored: list[Value] = field(default_factory=list)

    def bytes_moved(self, found: Computed) -> int:
        """Bytes of the elements that are loaded, and of the results that are stored."""
        total = sum(v.tensor.numel * v.dtype.info.bytes for v in self.stored)
        for value in self.loaded:
            used, whole = found.used[value], value.tensor.numel
            total += (used if hint(used) < hint(whole) else whole) * value.dtype.info.bytes
        return total

    def instructions(self, found: Computed) -> int:
        """Instructions of all elements, each counted as often as it is computed."""
        total = sum(rough_instructions(n) * found.times(n.out) for n in self.nodes)
        total += LOAD_INSTRUCTIONS * sum(found.used[value] for value in self.loaded)
        for node in self.nodes:
            if node.out in found.materialized:
                total += load_instructions(node.out.dtype.info.bytes) * found.used[node.out]
        return total


def components_of(fusion: Fusion) -> list[Component]:
    """All components of a fusion (union-find over operands)."""
    leaders: dict[Value, Value] = {}
    nodes = [node for node in fusion.nodes if is_fused(node) and node.out.is_tensor]
    for node in nodes:
        leaders[node.out] = node.out
        for operand in node.operands():
            if operand in leaders:
                leaders[_leader(leaders, operand)] = node.out
    found: dict[Value, Component] = {}
    for node in nodes:
        component = found.setdefault(_leader(leaders, node.out), Component())
        component.nodes.append(node)
        inputs = (v for v in node.operands() if v.is_tensor and v not in leaders)
        component.loaded.update(dict.fromkeys(inputs))
        if _is_stored(fusion, node.out):
            component.stored.append(node.out)
    return list(found.values())


def _leader(leaders: Mapping[Value, Value], value: Value) -> Value:
    """The representative of a value's component."""
    while leaders[value] != value:
        value = leaders[value]
    return value


def _is_stored(fusion: Fusion, value: Value) -> bool:
    """Whether a value must be in memory: a result, or an operand of what no kernel computes."""
    users = fusion.consumers.get(value, ())
    return value in fusion.returned or any(not is_fused(n) and not is_reducer(n) for n in users)
