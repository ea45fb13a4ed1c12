"""The variants of a definition on a GPU that need not be here: lowered, never compiled or run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tests.e2e.checking import CPU
from tritonfuser import FusionDefinition
from tritonfuser.cache.keys.recompiles import Recompiles
from tritonfuser.cache.keys.signature import key_maker, signature
from tritonfuser.cache.variants import Request, Variants
from tritonfuser.devices import known
from tritonfuser.lowering.kernel_source import KernelSource
from tritonfuser.lowering.lowered import Lowered
from tritonfuser.lowering.pipeline import lower
from tritonfuser.lowering.run_options import DEFAULT, RunOptions
from tritonfuser.symbolic.evaluation import AtomValues, evaluate
from tritonfuser.symbolic.shape_env import ShapeEnv


@dataclass(frozen=True)
class Step:
    source: KernelSource | None


class AbstractPlan:
    """What the variants need of a plan."""

    def __init__(self, lowered: Lowered, atoms: AtomValues) -> None:
        self._open = lowered
        self.lowered = evaluate(lowered, atoms)
        self.text = "\n".join(s.text for s in lowered.sources if s is not None)
        self.steps = [Step(source) for source in lowered.sources]

    def at(self, atoms: AtomValues) -> AbstractPlan:
        return AbstractPlan(self._open, atoms)


class AbstractVariants:
    """Serves signatures as ``FusionExecutorCache`` does, for another device."""

    def __init__(
        self, fd: FusionDefinition, arch: str = "sm_90", options: RunOptions = DEFAULT
    ) -> None:
        self.fusion = fd.fusion.ir
        self.device = known(arch)
        self.options = options
        self.variants = Variants(self.fusion)
        self._key = key_maker(self.fusion, abstract=True)

    def request(self, inputs: Sequence[Any]) -> Request:
        def made(found: Any, env: ShapeEnv | None) -> Any:
            lowered = lower(self.fusion, found, self.device, self.options, env)
            return AbstractPlan(lowered, () if env is None else [a.hint for a in env.atoms])

        facts = signature(self.fusion, inputs, CPU)
        return Request(self._key(inputs), (), lambda: facts, made)

    def serve(self, inputs: Sequence[Any]) -> Lowered:
        """What a run with these inputs executes."""
        found: Any = self.variants.serve(self.request(inputs))
        lowered: Lowered = found.lowered
        return lowered

    def static(self, inputs: Sequence[Any]) -> Lowered:
        """What a first run with these inputs executes."""
        facts = signature(self.fusion, inputs, CPU)
        return lower(self.fusion, facts, self.device, self.options)

    @property
    def records(self) -> Recompiles:
        return Recompiles(self.variants.records)


def programs(found: Lowered) -> list[int]:
    """The number of programs of each kernel."""
    return [prod(source.grid) for source in found.sources if source is not None]
