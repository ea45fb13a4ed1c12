"""What holds of every definition that a test runs: its printed form, other schedules."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.keys.signature import signature
from tritonfuser.cache.plan.execution_plan import make_plan
from tritonfuser.device import DeviceProperties
from tritonfuser.devices import known
from tritonfuser.heuristics.integers import next_power_of_2
from tritonfuser.heuristics.params import HeuristicParams, MatmulParams
from tritonfuser.ir import Const, Node, Value
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.product_policy import ProductPolicy
from tritonfuser.lowering.run_options import RunOptions
from tritonfuser.lowering.segments.segment import Segment
from tritonfuser.ops import registry

MOST_PROGRAMS = 64
CPU = torch.device("cpu")


def copied(inputs: Sequence[Any]) -> list[Any]:
    """Inputs with memory of their own, laid out the same."""
    return [_copied(x) if isinstance(x, torch.Tensor) else x for x in inputs]


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    whole = tensor.untyped_storage().clone()
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(whole, tensor.storage_offset(), tensor.shape, tensor.stride())


def again(fd: FusionDefinition) -> FusionDefinition:
    """The printed definition, recorded again by itself."""
    scope: dict[str, Any] = {
        "FusionDefinition": FusionDefinition,
        "DataType": DataType,
        "torch": torch,
    }
    exec(repr(fd), scope)
    with FusionDefinition() as fresh:
        scope["nvfuser_fusion"](fresh)
    return fresh


def assert_same(found: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> None:
    """Equal numbers, dtypes and strides, output by output."""
    assert len(found) == len(wanted)
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert one.shape == other.shape, place
        assert one.stride() == other.stride(), place
        assert one.dtype is other.dtype, place
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def round_trip(fd: FusionDefinition, inputs: Sequence[Any], wanted: Sequence[torch.Tensor]) -> None:
    """The printed definition gives the same outputs, laid out the same."""
    assert_same(again(fd).run(copied(inputs)), wanted)


def outline(fd: FusionDefinition) -> list[str]:
    """What is computed, whatever the order and the numbers it was recorded in."""
    fusion = fd.fusion.ir
    names = {value: f"in{place} {value.type!r}" for place, value in enumerate(fusion.inputs)}
    lines: list[str] = []

    def name(arg: Any) -> str:
        if isinstance(arg, tuple):
            return f"[{', '.join(name(item) for item in arg)}]"
        if isinstance(arg, Const):
            return str(arg.bits)
        if not isinstance(arg, Value):
            return repr(arg)
        if arg not in names:
            line(fusion.producers[arg])
        return names[arg]

    def line(node: Node) -> None:
        args = [name(arg) for arg in node.args]
        printed, attrs = registry.get(node.op).printed, node.attrs
        if printed is not None:
            attrs = (("dtype", node.out.dtype),)
        for place, out in enumerate(node.outs):
            names[out] = f"{len(lines)}.{place}"
        kinds = [out.dtype for out in node.outs]
        lines.append(f"{printed or node.op} {args} {attrs} -> {kinds}")

    outs = [(name(out.value), name(out.alias_of), out.hidden) for out in fusion.outputs]
    return [*map(str, names.values()), *lines, *map(str, outs)]


def same_outline(fd: FusionDefinition) -> None:
    """The printed definition computes the same from the same, which need not be run again."""
    assert outline(again(fd)) == outline(fd)


# --- schedules of a GPU, interpreted -----------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    """How a definition is cut and tiled: for which device, and with what changes to the params.

    ``shuffle`` None keeps the params that the heuristics propose; ``products`` says who multiplies
    matrices.
    """

    device: DeviceProperties
    shuffle: random.Random | None = None
    products: ProductPolicy = ProductPolicy.AUTO

    def run(self, fd: FusionDefinition, inputs: Sequence[Any]) -> list[torch.Tensor] | None:
        """The outputs of the kernels that the device would run, on CPU tensors.

        None where that takes more programs than are worth their time in the interpreter.
        """
        lowered = self.lowered(fd, inputs)
        if sum(math.prod(s.grid) for s in lowered.sources if s is not None) > MOST_PROGRAMS:
            return None
        return list(make_plan(lowered, inputs, CPU, self.device).run(inputs))

    def lowered(self, fd: FusionDefinition, inputs: Sequence[Any]) -> Lowered:
        fusion = fd.fusion.ir
        facts = signature(fusion, inputs, CPU)
        lowered = lower(fusion, facts, self.device, RunOptions(products=self.products))
        if self.shuffle is None:
            return lowered
        params = tuple(self.changed(segment) for segment in lowered.segmented.segments)
        options = RunOptions(params=params, products=self.products)
        return lower(fusion, facts, self.device, options)

    def changed(self, segment: Segment) -> HeuristicParams:
        """Params of other tile sizes, loops among them where there were none."""
        rng, params = self.shuffle, segment.params
        assert rng is not None
        if isinstance(params, MatmulParams):
            return self.changed_product(params)
        found = {row.name for row in fields(params) if row.name.startswith("block_")}
        least = next_power_of_2(segment.parallel_extent // MOST_PROGRAMS).bit_length()
        # Rows that are reduced together are in one tile.
        least = max(least, (math.prod(axis.extent for axis in segment.co_reduced) - 1).bit_length())
        changes: dict[str, Any] = {name: 1 << rng.randint(0, 6) for name in sorted(found)}
        if "block_x" in found:
            changes["block_x"] = 1 << rng.randint(least, least + 5)
        if "block_m" in found:
            changes["block_r"] = next_power_of_2(segment.reduced_extent)
        if hasattr(params, "persistent"):
            changes["persistent"] = changes["block_r"] >= segment.reduced_extent
        if hasattr(params, "backwards"):
            changes |= {name: rng.random() < 0.5 for name in ("backwards", "evict_hints")}
            if not changes["persistent"] and rng.random() < 0.5:
                left = segment.reduced_extent % changes["block_r"]
                changes["tails"] = (next_power_of_2(left) << rng.randint(0, 2),)
        if getattr(params, "align", 1) > 1:
            kept = changes.get("persistent", True)  # with the edges beside one tile, or none
            edges = params.to_dict()["tails"][-1]
            changes |= {"tails": (edges,)} if kept else {"tails": (), "align": 1}
        if getattr(params, "staged", False):  # several rows, each whole in a thread
            several = min(changes[name] for name in found) > 1
            changes["staged"] = several and changes.get("persistent", True)
        return replace(params, **changes)

    def changed_product(self, params: MatmulParams) -> HeuristicParams:
        """A matrix product's params, with tiles of other sides, or in column parts."""
        rng = self.shuffle
        assert rng is not None
        m, n, k = (rng.choice((16, 32, 64)) for _ in range(3))
        return replace(
            params,
            block_m=m,
            block_n=n,
            block_k=k,
            group_m=rng.choice((1, 2, 8)),
            programs=rng.choice((0, 1, 3)),
            parts=rng.choice((1, 2)),
            descriptors=rng.choice((False, True)),
        )


def gpu(sms: int = 132) -> DeviceProperties:
    """An H200 with that many multiprocessors: few make small problems look large."""
    return replace(known("sm_90"), sm_count=sms)
