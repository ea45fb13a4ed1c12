"""What every definition that a test runs must hold: its numbers, its printed form, other schedules."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from tritonfuser import DataType, FusionDefinition
from tritonfuser.cache.plan import make_plan
from tritonfuser.cache.signature import signature
from tritonfuser.device import DeviceProperties, known
from tritonfuser.heuristics.params import HeuristicParams
from tritonfuser.lowering.pipeline import Lowered, lower, with_params

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


# --- schedules of a GPU, interpreted -----------------------------------------------------------


@dataclass(frozen=True)
class Schedule:
    """How a definition is cut and tiled: for which device, and with what changes to the params.

    ``shuffle`` None keeps the params that the heuristics propose.
    """

    device: DeviceProperties
    shuffle: random.Random | None = None

    def run(self, fd: FusionDefinition, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The outputs of the kernels that the device would run, on CPU tensors."""
        return list(make_plan(self.lowered(fd, inputs), inputs, CPU, self.device).run(inputs))

    def lowered(self, fd: FusionDefinition, inputs: Sequence[Any]) -> Lowered:
        fusion = fd.fusion.ir
        facts = signature(fusion, inputs, CPU)
        lowered = lower(fusion, facts, self.device)
        if self.shuffle is None:
            return lowered
        params = [self.changed(s.params, s.reduced_extent) for s in lowered.segmented.segments]
        with_params(lowered.segmented, params)
        return lower(fusion, facts, self.device, params)

    def changed(self, params: HeuristicParams, reduced: int) -> HeuristicParams:
        """Params of other tile sizes, loops among them where there were none."""
        rng = self.shuffle
        assert rng is not None
        changes: dict[str, Any] = {}
        if hasattr(params, "block_x"):
            changes["block_x"] = 1 << rng.randint(0, 6)
        if hasattr(params, "block_y"):
            changes["block_y"] = 1 << rng.randint(0, 6)
        if hasattr(params, "block_m"):
            changes["block_m"] = 1 << rng.randint(0, 4)
            changes["block_r"] = max(1, 1 << max(reduced - 1, 0).bit_length())
        elif hasattr(params, "block_r"):
            changes["block_r"] = 1 << rng.randint(0, 7)
            if hasattr(params, "persistent"):
                changes["persistent"] = changes["block_r"] >= reduced
        return replace(params, **changes)


def gpu(sms: int = 132) -> DeviceProperties:
    """An H200 with that many multiprocessors: few make small problems look large."""
    return replace(known("sm_90"), sm_count=sms)
