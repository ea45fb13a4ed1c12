"""Problems that are random definitions, as ``bench.random_graphs`` grows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tritonfuser import FusionDefinition
from tritonfuser.ops import registry
from tritonfuser.ops.forms import Random

from ..random_graphs.growing import entry
from ..recorded.definitions import make_inputs, record

FAMILY = "graph"


@dataclass(frozen=True)
class GraphProblem:
    """A random definition.

    Attributes
    ----------
    seed, number : int
        Of ``growing.entry``.
    """

    seed: int
    number: int

    @property
    def name(self) -> str:
        return f"{FAMILY}/{self.seed}.{self.number}"

    def recorded(self) -> FusionDefinition:
        return record(entry(self.seed, self.number))

    def tensors(self, device: str) -> list[Any]:
        """Random inputs, the same each time."""
        grown = entry(self.seed, self.number)
        return make_inputs(grown, record(grown).fusion.ir, torch.device(device))

    @property
    def is_random(self) -> bool:
        """Whether results differ from call to call."""
        nodes = self.recorded().fusion.ir.nodes
        return any(isinstance(registry.get(node.op).form, Random) for node in nodes)


def graph_problems(count: int, seed: int) -> list[GraphProblem]:
    """The first definitions of a seed. Seed 0 is what ``bench.random_graphs`` judges by.

    Raises
    ------
    ValueError
        The seed is 0.
    """
    if seed == 0 and count:
        raise ValueError("the definitions of seed 0 are for judging: choose another seed")
    return [GraphProblem(seed, number) for number in range(count)]
