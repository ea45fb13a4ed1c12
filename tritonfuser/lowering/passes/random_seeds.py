"""Fusion in, the same Fusion with a seed for every random op out.

The seeds are hidden scalar inputs, which each run draws from torch's generator.
"""

from __future__ import annotations

from ...dtypes import DataType
from ...ir import Fusion, Node, ScalarType, Value
from ...ops.builder import as_call
from ...ops.forms import Random
from ...ops.shape_rules import with_operands
from .substitution import next_free

Seeds = tuple[tuple[Value, Value], ...]
"""(seed, offset) inputs, a pair for each random op that had none."""


def add_seeds(fusion: Fusion) -> tuple[Fusion, Seeds]:
    """The fusion with a (seed, offset) pair of inputs for each random op that had none.

    ``uniform(0, 1, shape)`` -> ``uniform(0, 1, shape, rng_seed=c4, rng_offset=c5)``.
    """
    free = next_free(fusion)[1]
    nodes: list[Node] = []
    seeds: list[tuple[Value, Value]] = []
    for node in fusion.nodes:
        call = as_call(node)
        if isinstance(call.op.form, Random) and call.arg("rng_seed") is None:
            seed, rng_offset = _scalar(free), _scalar(free + 1)
            free += 2
            seeds.append((seed, rng_offset))
            args = with_operands(call, rng_seed=seed, rng_offset=rng_offset).args
            node = Node(node.op, args, node.attrs, node.outs, node.loc)
        nodes.append(node)
    inputs = (*fusion.inputs, *(value for pair in seeds for value in pair))
    return Fusion(inputs, tuple(nodes), fusion.outputs), tuple(seeds)


def _scalar(index: int) -> Value:
    return Value(index, ScalarType(DataType.Int))
