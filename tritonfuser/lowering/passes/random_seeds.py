"""Random ops without a seed, given one: hidden scalar inputs that each run fills anew."""

from __future__ import annotations

from ...dtypes import DataType
from ...ir import Arg, Fusion, Node, ScalarType, Value
from ...ops.builder import as_call
from ...ops.table import Random
from .simplify import next_free

Seeds = tuple[tuple[Value, Value], ...]


def seeded(fusion: Fusion) -> tuple[Fusion, Seeds]:
    """The fusion with a (seed, offset) pair of inputs for each random op that had none.

    ``uniform(0, 1, shape)`` -> ``uniform(0, 1, shape, rng_seed=c4, rng_offset=c5)``.
    """
    free = next_free(fusion)[1]
    nodes: list[Node] = []
    seeds: list[tuple[Value, Value]] = []
    for node in fusion.nodes:
        call = as_call(node)
        if isinstance(call.op.form, Random) and call.arg("rng_seed") is None:
            pair = _scalar(free), _scalar(free + 1)
            free += 2
            seeds.append(pair)
            filled = {"rng_seed": pair[0], "rng_offset": pair[1]}
            names = [p.name for p in call.op.params if p.kind.is_operand]
            args: tuple[Arg, ...] = tuple(
                filled.get(n, a) for n, a in zip(names, node.args, strict=True)
            )
            node = Node(node.op, args, node.attrs, node.outs, node.loc)
        nodes.append(node)
    inputs = (*fusion.inputs, *(value for pair in seeds for value in pair))
    return Fusion(inputs, tuple(nodes), fusion.outputs), tuple(seeds)


def _scalar(index: int) -> Value:
    return Value(index, ScalarType(DataType.Int))
