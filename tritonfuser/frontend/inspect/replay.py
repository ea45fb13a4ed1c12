"""The random numbers of a run once more: its definition with the seeds that it drew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ...cache.keys.signature import signature
from ...cache.plan.random_state import draw
from ...ir import Arg, Const, Fusion, Node
from ...lowering.graph_passes import before_seeds
from ...lowering.passes.concretize import concretize
from ...ops.builder import as_call
from ...ops.forms import Random


@dataclass(frozen=True)
class GeneratorState:
    """The state of torch's generator of a device before a run."""

    device: torch.device
    state: torch.Tensor

    @staticmethod
    def of(device: torch.device) -> GeneratorState:
        """The state as it is now."""
        return GeneratorState(device, _generator(device).get_state())

    def restore(self) -> None:
        """Put the generator into this state."""
        _generator(self.device).set_state(self.state)

    def drawn(self, count: int) -> tuple[int, int]:
        """The seed and first offset of a run of ``count`` random ops; the generator is left."""
        generator = _generator(self.device)
        now = generator.get_state()
        generator.set_state(self.state)
        seed, offset, _ = draw(self.device, count)
        generator.set_state(now)
        return seed, offset


def _generator(device: torch.device) -> torch.Generator:
    if device.type == "cpu":
        return torch.default_generator
    found: torch.Generator = torch.cuda.default_generators[device.index]
    return found


def is_random(fusion: Fusion) -> bool:
    """Whether an op draws numbers without a seed of its own."""
    return any(map(_is_seedless, fusion.nodes))


def replayed(
    fusion: Fusion,
    inputs: Sequence[Any],
    device: torch.device,
    drawn: Callable[[int], tuple[int, int]],
) -> Fusion:
    """The definition with the seeds that a run of it drew.

    Parameters
    ----------
    fusion : Fusion
        As it was recorded.
    inputs : sequence
        Of that run, flat.
    device : torch.device
        Of that run.
    drawn : callable
        Returns the seed and the first offset that it drew for a number of random ops.
    """
    concrete = concretize(fusion, signature(fusion, inputs, device))
    numbered, _ = before_seeds(concrete)
    order = [node.out.index for node in numbered.nodes if _is_seedless(node)]
    if not order:
        return fusion
    seed, offset = drawn(len(order))
    seeds = {index: (seed, offset + place) for place, index in enumerate(order)}
    nodes = (_seeded(node, seeds) if _is_seedless(node) else node for node in fusion.nodes)
    return Fusion(fusion.inputs, tuple(nodes), fusion.outputs)


def _is_seedless(node: Node) -> bool:
    call = as_call(node)
    return isinstance(call.op.form, Random) and call.arg("rng_seed") is None


def _seeded(node: Node, seeds: dict[int, tuple[int, int]]) -> Node:
    """The op with its seed; one that the run did not need keeps none."""
    if node.out.index not in seeds:
        return node
    seed, offset = seeds[node.out.index]
    filled = {"rng_seed": Const.of(seed), "rng_offset": Const.of(offset)}
    names = as_call(node).op.operands
    args: tuple[Arg, ...] = tuple(
        filled.get(name, arg) for name, arg in zip(names, node.args, strict=True)
    )
    return Node(node.op, args, node.attrs, node.outs, node.loc)
