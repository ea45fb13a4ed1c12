"""The nodes of a fusion as a graph: the check of its SSA form, live nodes, depth-first order."""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Fusion, Node, Value


def check(fusion: Fusion) -> Fusion:
    """Assert the contract of a Fusion: defined before used, defined once, outputs exist.

    Returns the fusion, so that a pass can end in ``check(...)``.
    """
    defined = set(fusion.inputs)
    if len(defined) != len(fusion.inputs):
        raise AssertionError("an input appears twice")
    for node in fusion.nodes:
        missing = [v.name for v in node.operands() if v not in defined]
        if missing:
            raise AssertionError(f"{node.op} uses {missing} before they are defined")
        twice = [v.name for v in node.outs if v in defined]
        if twice:
            raise AssertionError(f"{node.op} defines {twice} a second time")
        defined.update(node.outs)
    for out in fusion.outputs:
        if out.value not in defined:
            raise AssertionError(f"output {out.value.name} is not defined")
        if out.alias_of is not None and out.alias_of not in fusion.inputs:
            raise AssertionError(f"{out.value.name} aliases {out.alias_of.name}, not an input")
    return fusion


def live_nodes(nodes: Sequence[Node], roots: Sequence[Value]) -> tuple[Node, ...]:
    """The nodes that ``roots`` need, in their order."""
    needed = set(roots)
    kept: list[Node] = []
    for node in reversed(nodes):
        if any(out in needed for out in node.outs):
            kept.append(node)
            needed.update(node.operands())
    return tuple(reversed(kept))


def depth_first(fusion: Fusion) -> list[Node]:
    """The nodes that outputs need, each after its operands, depth first from the outputs."""
    ordered: list[Node] = []
    done: set[Value] = set(fusion.inputs)
    pending = [output.value for output in reversed(fusion.outputs)]
    while pending:
        node = fusion.producers.get(pending[-1])
        if node is None or pending[-1] in done:
            pending.pop()
            continue
        missing = next((value for value in node.operands() if value not in done), None)
        if missing is not None:
            pending.append(missing)
        else:
            ordered.append(node)
            done.update(node.outs)
    return ordered
