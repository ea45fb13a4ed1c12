"""Definitions that are wrong in one place: what a check of results has to find."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tritonfuser import DataType
from tritonfuser.errors import TritonFuserError
from tritonfuser.ir import Arg, Const, Fusion, Node, Value
from tritonfuser.lowering.passes.substitution import next_free
from tritonfuser.ops import registry
from tritonfuser.ops.builder import GraphBuilder, as_call
from tritonfuser.ops.forms import Pointwise, Reduction

LARGER = (1.01, 1 + 2.0**-12, 1 + 2.0**-18)
"""What a constant may be multiplied by."""


@dataclass(frozen=True)
class Mutant:
    """A fusion, and what is wrong in it."""

    fusion: Fusion
    what: str


def mutants(fusion: Fusion, rng: random.Random, most: int) -> Iterator[Mutant]:
    """Up to ``most`` fusions, each with one op perturbed.

    Parameters
    ----------
    fusion : Fusion
        With sizes written out.
    """
    found = 0
    for _ in range(20 * most):
        place = rng.randrange(len(fusion.nodes)) if fusion.nodes else 0
        if not fusion.nodes or found == most:
            return
        made = _perturbed(fusion, place, rng.choice(_PERTURBATIONS), rng)
        if made is not None:
            found += 1
            yield made


Perturbation = Callable[[Node, GraphBuilder, random.Random], "Node | None"]


def _perturbed(
    fusion: Fusion, place: int, perturb: Perturbation, rng: random.Random
) -> Mutant | None:
    node = fusion.nodes[place]
    builder = GraphBuilder(*next_free(fusion))
    try:
        made = perturb(node, builder, rng)
        if made is None or made == node or not _fits(made):
            return None
    except (TritonFuserError, TypeError, AssertionError):
        return None
    nodes = (*fusion.nodes[:place], *builder.nodes, made, *fusion.nodes[place + 1 :])
    what = f"{perturb.__name__.strip('_')}: {node.op} -> {made.op} of {node.outs[0].name}"
    return Mutant(replace(fusion, nodes=nodes), what)


def _fits(node: Node) -> bool:
    """Whether a changed node still gives what the others take."""
    call = as_call(node)
    return call.op.infer(call) == tuple(out.type for out in node.outs)


# --- perturbations -------------------------------------------------------------------------------


def _another_op(node: Node, builder: GraphBuilder, rng: random.Random) -> Node | None:
    """A pointwise op of as many operands; a reduction by another operation."""
    op = registry.get(node.op)
    alike = [
        other.name
        for other in registry.OPS.values()
        if type(other.form) is type(op.form)
        and other.category == op.category
        and [p.name for p in other.params] == [p.name for p in op.params]
        and other.name != op.name
    ]
    if not isinstance(op.form, Pointwise | Reduction) or not alike:
        return None
    return _node(node, rng.choice(alike), node.args)


def _another_constant(node: Node, builder: GraphBuilder, rng: random.Random) -> Node | None:
    places = [
        place
        for place, arg in enumerate(node.args)
        if isinstance(arg, Const) and isinstance(arg.value, float)
    ]
    if not places or not isinstance(registry.get(node.op).form, Pointwise):
        return None
    place = rng.choice(places)
    old = node.args[place]
    assert isinstance(old, Const)
    assert isinstance(old.value, float)
    args = list(node.args)
    args[place] = Const(old.value * rng.choice(LARGER), old.dtype)
    return _node(node, node.op, tuple(args))


def _swapped(node: Node, builder: GraphBuilder, rng: random.Random) -> Node | None:
    if len(node.args) < 2 or not isinstance(registry.get(node.op).form, Pointwise):
        return None
    return _node(node, node.op, (*node.args[:-2], node.args[-1], node.args[-2]))


def _last_element_missing(node: Node, builder: GraphBuilder, rng: random.Random) -> Node | None:
    """A reduction that stops one element too early along one dim."""
    call = as_call(node)
    if call.op.category != "reduction":
        return None
    arg = call.value("arg")
    dim = rng.choice(call.dims())
    ends = list(arg.tensor.sizes)
    if ends[dim] < 2:
        return None
    ends[dim] -= 1
    cut = builder.call("slice", arg, [0] * len(ends), ends)
    return _node(node, node.op, (cut, *node.args[1:]))


def _rounded(node: Node, builder: GraphBuilder, rng: random.Random) -> Node | None:
    """An operand that went through bf16."""
    arg = node.args[0] if node.args else None
    if not isinstance(arg, Value) or arg.dtype not in (DataType.Float, DataType.Double):
        return None
    narrow = builder.call("cast", arg, DataType.BFloat16)
    return _node(node, node.op, (builder.call("cast", narrow, arg.dtype), *node.args[1:]))


_PERTURBATIONS: tuple[Perturbation, ...] = (
    _another_op,
    _another_constant,
    _swapped,
    _last_element_missing,
    _rounded,
)


def _node(node: Node, op: str, args: tuple[Arg, ...]) -> Node:
    made = Node(op, args, node.attrs, node.outs, node.loc)
    attrs = set(dict(node.attrs))
    assert attrs == {p.name for p in registry.get(op).params if not p.kind.is_operand}
    return made
